import { workingDirectory } from "../../context/working-directory.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { consolidate } from "../../runtime/knowledge/consolidate.ts";
import { reportText } from "../../runtime/knowledge/consolidation.ts";
import { createRuntime, type Runtime } from "../../runtime/runtime.ts";
import { findSession, sessionHere } from "../../runtime/sessions/select-session.ts";
import { type Arguments, usage, wantsJson } from "../args.ts";
import { type ExitCode, exitCodeOf, exitCodes } from "../exit-codes.ts";
import { changeText } from "../output/board-lines.ts";
import { jsonLine, write } from "../output/output.ts";
import { printMessage } from "../output/print-message.ts";
import { onInterrupt } from "../signals.ts";
import type { BoardRequest } from "./board.ts";

/** `troupe board consolidate`: consolidates the learnings of a session on the board now, while the user watches. */
export async function boardConsolidate({ given, words, launcher, board }: BoardRequest): Promise<ExitCode> {
  if (words.length > 0) throw usage("Usage: troupe board consolidate [--session <id|name>] [--model <model>]");
  if (given.text("branch") !== undefined || given.text("repository") !== undefined) {
    throw usage(
      "Leave out --repository and --branch: a session is consolidated on the board of its own folder and branch.",
    );
  }
  const runtime = createRuntime({ environment: process.env, importModule: launcher.importModule });
  const stop = new AbortController();
  const removeInterrupt = onInterrupt(() => stop.abort());
  try {
    const sessionId = await wanted(given, runtime);
    const { outcome, report, by } = await consolidate(runtime, {
      cwd: process.cwd(),
      sessionId,
      signal: stop.signal,
      workspace: { trustFolder: given.has("trust-folder") },
      model: { name: given.text("model") },
    });
    const changes = await board.changes();
    const change = changes.find(({ id }) => id === report?.change);
    if (wantsJson(given)) await write(`${jsonLine({ sessionId, by, report, change }, process.stdout)}\n`);
    else if (report) await write(`${reportText(report)}\n${change ? changeText(change) : ""}`);
    if (outcome.kind === "failed" || outcome.kind === "error") printMessage(outcome.error.message);
    return stop.signal.aborted ? exitCodes.interrupted : exitCodeOf(outcome);
  } finally {
    removeInterrupt();
    await runtime.close();
  }
}

/**
 * Returns the session to consolidate. It must belong to this folder, since its learnings belong on the folder's board.
 */
async function wanted(given: Arguments, { store }: Runtime): Promise<string> {
  const here = workingDirectory(process.cwd());
  const name = given.text("session");
  if (name === undefined) return sessionHere(store, here);
  const sessionId = await findSession(store, name);
  const summary = (await store.list()).find((one) => one.sessionId === sessionId);
  const isHere = summary?.cwd === here.cwd || (here.gitRoot !== undefined && summary?.gitRoot === here.gitRoot);
  if (isHere) return sessionId;
  throw new TroupeError("usage", `Session ${sessionId} worked in another folder: ${summary?.cwd ?? "unknown"}.`, {
    hint: "Go there: troupe -C <folder> board consolidate --session …",
  });
}
