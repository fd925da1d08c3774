import { workingDirectory } from "../../context/working-directory.ts";
import { defined } from "../../lib/defined.ts";
import { nodeDisk } from "../../lib/node/disk.ts";
import { systemStamp } from "../../lib/stamp.ts";
import { clip, plural, sanitise, sanitiseLine } from "../../lib/text.ts";
import { createRuntime, type Runtime } from "../../runtime/runtime.ts";
import { findSession, sessionHere } from "../../runtime/sessions/select-session.ts";
import { storedRewinds } from "../../runtime/sessions/stored-rewinds.ts";
import type { PastRewind, RewindPoint, Rewinds, Rewound } from "../../session/rewind/rewinds.ts";
import { type Arguments, usage, wantsJson } from "../args.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { jsonLine, write } from "../output/output.ts";

/** `troupe rewind`: rewinds a conversation to before a message, and optionally the files. */
export async function rewindCommand(given: Arguments): Promise<ExitCode> {
  if (given.words.length > 1) throw usage("troupe rewind takes no arguments; name the message with --to.");
  const runtime = createRuntime({ environment: process.env });
  const sessionId = await chooseSession(runtime, given);
  const ports = { stateRoot: runtime.home, store: runtime.store, disk: nodeDisk, stamp: systemStamp };
  const { rewinds, close } = await storedRewinds(sessionId, ports);
  try {
    return await carryOut(given, rewinds, sessionId);
  } finally {
    await close();
    await runtime.close();
  }
}

/** `troupe fork`: creates a second session from the first. */
export async function forkCommand(given: Arguments): Promise<ExitCode> {
  if (given.words.length > 1) throw usage("troupe fork takes no arguments; name the message with --at.");
  const runtime = createRuntime({ environment: process.env });
  try {
    const sessionId = await chooseSession(runtime, given);
    const [at, name] = [given.text("at"), given.text("name")];
    const toEventId = at === undefined ? undefined : eventOf(at, await pointsOf(runtime, sessionId));
    const fork = await runtime.forkSession({
      sessionId,
      ...defined({ toEventId, name }),
    });
    if (wantsJson(given)) return await print(`${jsonLine(fork, process.stdout)}\n`);
    const called = fork.name === undefined ? "" : ` "${sanitiseLine(fork.name)}"`;
    return await print(
      `Forked into${called} ${fork.sessionId}.\nTo continue there: troupe -p "<prompt>" --resume ${fork.sessionId}\n`,
    );
  } finally {
    await runtime.close();
  }
}

async function carryOut(given: Arguments, rewinds: Rewinds, sessionId: string): Promise<ExitCode> {
  const to = given.text("to");
  const isDry = given.has("dry-run");
  if (given.has("restore")) {
    if (isDry) throw usage("Use either --dry-run or --restore.");
    const meant = to === undefined ? {} : { rewindId: to };
    return print(
      await doneText(await rewinds.restore({ ...meant, files: given.has("files") }), "The rewind was undone."),
    );
  }
  const points = await rewinds.points();
  if (to === undefined) {
    if (isDry || given.has("files")) throw usage("Name the message to go back to with --to.");
    const past = await rewinds.past();
    return print(
      wantsJson(given) ? `${jsonLine({ sessionId, points, past }, process.stdout)}\n` : listText(points, past),
    );
  }
  const eventId = eventOf(to, points);
  if (isDry) return print(await previewText(rewinds, eventId, given));
  return print(await doneText(await rewinds.rewind(eventId, { files: given.has("files") }), "Rewound."));
}

async function chooseSession({ store }: Runtime, given: Arguments): Promise<string> {
  const wanted = given.text("session");
  return wanted === undefined ? sessionHere(store, workingDirectory(process.cwd())) : findSession(store, wanted);
}

async function pointsOf({ home, store }: Runtime, sessionId: string): Promise<readonly RewindPoint[]> {
  const { rewinds, close } = await storedRewinds(sessionId, {
    stateRoot: home,
    store,
    disk: nodeDisk,
    stamp: systemStamp,
  });
  try {
    return await rewinds.points();
  } finally {
    await close();
  }
}

/** Returns the event of a message number in the list. Other text is an event id. */
function eventOf(wanted: string, points: readonly RewindPoint[]): string {
  if (!/^\d{1,6}$/.test(wanted)) return wanted;
  const point = points[Number(wanted) - 1];
  if (!point) throw usage(`There is no message ${wanted}; the session has ${plural(points.length, "message")}.`);
  return point.eventId;
}

function listText(points: readonly RewindPoint[], past: readonly PastRewind[]): string {
  if (points.length === 0) return "This session has no message to rewind to.\n";
  const time = (timestamp: string): string => timestamp.slice(0, 16).replace("T", " ");
  const rows = points.map(
    ({ userMessage, timestamp, fileCount, linesAdded, linesRemoved, turnChangedFiles }, index) => {
      const lines = turnChangedFiles ? ` +${linesAdded} −${linesRemoved}` : "";
      const files = fileCount === 0 ? "" : `  [${plural(fileCount, "file")} since${lines}]`;
      return `${String(index + 1).padStart(4)}  ${time(timestamp)}  ${clip(sanitiseLine(userMessage), 80)}${files}`;
    },
  );
  const rewound = past.map(
    ({ rewindId, timestamp, userMessage = "", eventsRemoved }) =>
      `      ${time(timestamp)}  ${clip(sanitiseLine(userMessage), 60)}  (${plural(eventsRemoved, "event")}, ${rewindId})`,
  );
  const more = rewound.length === 0 ? [] : ["Earlier rewinds, newest first (--restore undoes one):", ...rewound];
  return sanitise(`${[...rows, ...more].join("\n")}\n`);
}

async function previewText(rewinds: Rewinds, eventId: string, given: Arguments): Promise<string> {
  const preview = await rewinds.preview(eventId);
  if (wantsJson(given)) return `${jsonLine(preview, process.stdout)}\n`;
  const files = given.has("files")
    ? preview.files.map(
        ({ path, changeType, linesAdded, linesRemoved }) =>
          `  ${changeType} since, would be restored: ${path} (+${linesAdded} −${linesRemoved})`,
      )
    : [];
  const skipped = given.has("files")
    ? preview.skipped.map((path) => `  changed by others since, would not be restored: ${path}`)
    : [];
  return sanitise([`${plural(preview.eventsRemoved, "event")} would be removed.`, ...files, ...skipped, ""].join("\n"));
}

async function doneText(rewound: Rewound, done: "Rewound." | "The rewind was undone."): Promise<string> {
  if (rewound.outcome === "session-busy") throw usage("The session is busy.");
  const { eventsRemoved, restoredFiles, skippedFiles } = rewound;
  const lines = [
    done === "Rewound."
      ? `Rewound: ${plural(eventsRemoved, "event")} taken back. Undo this with: troupe rewind --restore`
      : done,
    ...(restoredFiles.length === 0 ? [] : [`${plural(restoredFiles.length, "file")} changed back:`]),
    ...restoredFiles.map((path) => `  ${path}`),
    ...(skippedFiles.length === 0 ? [] : ["Not restored:"]),
    ...skippedFiles.map(
      ({ path, reason }) =>
        `  ${path} (${reason === "user-modified" ? "changed since" : "its content was not stored"})`,
    ),
    ...(rewound.error === undefined ? [] : [`Not all files could be restored: ${rewound.error}`]),
  ];
  return sanitise(`${lines.join("\n")}\n`);
}

async function print(text: string): Promise<ExitCode> {
  await write(text);
  return exitCodes.done;
}
