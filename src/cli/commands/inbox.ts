import { clip, nearest, plural, sanitise, sanitiseLine } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { readSidekicks, type SidekickRunSummary, type StoredSidekicks } from "../../runtime/agents/sidekick-runs.ts";
import { createRuntime } from "../../runtime/runtime.ts";
import { type Arguments, unknownSubcommand, usage, wantsJson } from "../args.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import type { Launcher } from "../launcher.ts";
import { jsonLine, jsonList, write } from "../output/output.ts";
import { sessionOf } from "./tasks.ts";

type Entry = StoredSidekicks["entries"][number];

/** `troupe inbox`: reads the messages of sidekicks. */
export async function inboxCommand(given: Arguments, launcher: Launcher): Promise<ExitCode> {
  const [, verb = "list", ...words] = given.words;
  if (verb !== "list" && verb !== "show") throw unknownSubcommand("inbox", verb, ["list", "show"]);
  const runtime = createRuntime({ environment: process.env, importModule: launcher.importModule });
  try {
    const sessionId = await sessionOf(given, runtime);
    const { entries } = await readSidekicks(runtime.store, sessionId);
    if (verb === "show") return await show(given, words, entries);
    if (words.length > 0) throw usage(`troupe inbox list takes no arguments, but got "${words.join(" ")}".`);
    if (wantsJson(given)) await write(jsonList(entries));
    else await write(entries.length === 0 ? `The inbox of session ${sessionId} is empty.\n` : entryLines(entries));
    return exitCodes.done;
  } finally {
    await runtime.close();
  }
}

async function show(given: Arguments, words: readonly string[], entries: readonly Entry[]): Promise<ExitCode> {
  const [id, ...more] = words;
  if (id === undefined || more.length > 0) throw usage("troupe inbox show takes the id of one entry.");
  const entry = entries.find(({ entryId }) => entryId === id);
  if (!entry) {
    const close = nearest(
      id,
      entries.map(({ entryId }) => entryId),
    );
    throw new TroupeError("usage", `There is no inbox entry "${clip(id, 80)}" in this session.`, {
      hint: close === undefined ? "See: troupe inbox list" : `Did you mean ${close}?`,
    });
  }
  const { entryId, senderName, sentAt, state, summary, content } = entry;
  const text = `${entryId} from ${senderName}, ${sentAt}, ${state}\n${summary}\n\n${content}`;
  await write(wantsJson(given) ? `${jsonLine(entry, process.stdout)}\n` : `${sanitise(text).trimEnd()}\n`);
  return exitCodes.done;
}

function entryLines(entries: readonly Entry[]): string {
  return inColumns(
    entries.map(({ entryId, senderName, state, summary }) => [entryId, senderName, state, clip(summary, 100)]),
  );
}

/** For `troupe tasks list --all`: one line per sidekick run, with its result and usage. */
export function runLines(runs: readonly SidekickRunSummary[]): string {
  return inColumns(
    runs.map(({ id, state, turns, tokens, costUsd, sent, error }) => [
      id,
      error === undefined ? state : `${state}: ${clip(error, 60)}`,
      plural(turns, "turn"),
      `${tokens.toLocaleString("en-US")} tokens`,
      costUsd === null ? "?" : `$${costUsd.toFixed(4)}`,
      sent === 0 ? "sent nothing" : `sent ${sent}`,
    ]),
  );
}

function inColumns(rows: readonly (readonly string[])[]): string {
  const clean = rows.map((row) => row.map(sanitiseLine));
  const widths = clean[0]?.map((_, column) => Math.max(...clean.map((row) => row[column]?.length ?? 0))) ?? [];
  return clean
    .map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  "))
    .map((line) => `${line.trimEnd()}\n`)
    .join("");
}
