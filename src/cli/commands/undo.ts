import { lstatSync } from "node:fs";
import { Checkpoints, describeChange, type StoredChange } from "../../checkpoints/checkpoints.ts";
import { type UndoTarget, undo } from "../../checkpoints/undo.ts";
import { workingDirectory } from "../../context/working-directory.ts";
import { nodeDisk } from "../../lib/node/disk.ts";
import { systemStamp } from "../../lib/stamp.ts";
import { plural, sanitise } from "../../lib/text.ts";
import { requireFree, TroupeError } from "../../protocol/errors.ts";
import { createRuntime } from "../../runtime/runtime.ts";
import { findSession, sessionHere } from "../../runtime/sessions/select-session.ts";
import { undoSeal } from "../../runtime/undo-seal.ts";
import { type Arguments, usage, wantsJson } from "../args.ts";
import { chosenDatabase } from "../cluster/database-url.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { jsonList } from "../output/output.ts";

export interface UndoContext {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  print(text: string): void;
}

const context = (): UndoContext => ({
  environment: process.env,
  cwd: process.cwd(),
  print: (text) => void process.stdout.write(text),
});

/** `troupe undo`: restores files to the state before the agent changed or deleted them. */
export async function undoCommand(given: Arguments, around: UndoContext = context()): Promise<ExitCode> {
  const { environment, cwd } = around;
  const print = (text: string): ExitCode => {
    around.print(text);
    return exitCodes.done;
  };
  const [, word, ...more] = given.words;
  if (more.length > 0) throw usage(`troupe undo takes one tool call at most, not ${given.words.length - 1} words.`);

  if (given.flags.includes("database") && chosenDatabase(given) !== undefined) throw isElsewhere();
  const { store, home } = createRuntime({ environment });
  const wanted = given.text("session");
  const sessionId =
    wanted === undefined ? await sessionHere(store, workingDirectory(cwd)) : await findSession(store, wanted);
  const log = await store.open(sessionId);
  try {
    const { directory } = log;
    const checkpoints = new Checkpoints({
      directory,
      disk: nodeDisk,
      stamp: systemStamp,
      seal: undoSeal({ stateRoot: home, disk: nodeDisk }),
    });
    if (given.has("list") || word === "list") {
      const changes = await checkpoints.changes();
      return print(wantsJson(given) ? jsonList(changes.map(changeRow)) : listText(changes));
    }
    requireFree(log, "Undo it there with /undo, or end that process first: it works on with the files.");
    const report = await undo(targetOf(word), { checkpoints, disk: nodeDisk, force: given.has("force") });
    if (report.conflicts.length > 0 && !given.has("force")) throw changedSince(report.conflicts);
    return print(reportText(report));
  } finally {
    await log.close();
  }
}

/** The variable alone does not count: sessions of this machine can be undone although it is set. */
function isElsewhere(): TroupeError {
  return new TroupeError(
    "usage",
    "Sessions of a database cannot be undone here: their files are on the machines of workers.",
    {
      hint: "Look with troupe diff <session> --database <url>, then ask the session to revert it: troupe -p \"Undo …\" --resume <session>. Or take an earlier state from its repository: git fetch origin 'refs/troupe/<session>/*'.",
    },
  );
}

function targetOf(word: string | undefined): UndoTarget {
  if (word === undefined) return { kind: "last" };
  return word === "turn" ? { kind: "message" } : { kind: "back-to", toolCallId: word };
}

function changedSince(paths: readonly string[]): TroupeError {
  const shown = paths.slice(0, 5).join(", ") + (paths.length > 5 ? ` and ${paths.length - 5} more` : "");
  return new TroupeError("failed", sanitise(`Nothing was undone: these files have changed since: ${shown}.`), {
    hint: "Use --force to restore them anyway; their current content is saved.",
  });
}

const changeRow = ({ toolCallId, time, path }: StoredChange): object => ({ toolCallId, time, path });

function listText(changes: readonly StoredChange[]): string {
  if (changes.length === 0) return "Nothing to undo in this session.\n";
  const rows: string[] = [];
  let call: string | undefined;
  for (const change of changes) {
    if (change.toolCallId !== call) rows.push(`${change.toolCallId}  ${change.time.slice(0, 19).replace("T", " ")}`);
    call = change.toolCallId;
    rows.push(`  ${describeChange(change)}`);
  }
  return sanitise(`${rows.join("\n")}\n`);
}

function reportText({ restored, savedAs, left }: Awaited<ReturnType<typeof undo>>): string {
  if (restored.length === 0) return "Nothing to restore: the files are as they were before the call.\n";
  const saved = Object.entries(savedAs).map(([path, copy]) => `The previous content of ${path} is saved in ${copy}`);
  const made = left.length === 0 ? [] : ["Created since, and unchanged:", ...left.map((path) => `  ${path}`)];
  const lines = [
    `Restored ${plural(restored.length, "file")}:`,
    ...restored.map((path) => `  ${path}${lstatSync(path, { throwIfNoEntry: false }) ? "" : " (removed: it was new)"}`),
    ...saved,
    ...made,
  ];
  return sanitise(`${lines.join("\n")}\n`);
}
