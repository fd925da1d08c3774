import type { CommandPorts } from "../../commands/ports.ts";
import { clip, plural } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { RewindPoint, Rewound } from "../../session/rewind/rewinds.ts";
import type { Session } from "../../session/session.ts";

/** Returns the ports for rewinding, restoring, forking and undoing. */
export function historyPort(session: Session): Partial<Pick<CommandPorts, "history" | "undo">> {
  const { rewinds, files } = session.record;
  return {
    history: {
      list: async () => listText(await rewinds.points()),
      rewind: async (number, how) => doneText(await rewinds.rewind(await eventOf(session, number), how)),
      restore: async (how) => doneText(await rewinds.restore(how)),
      async fork(number) {
        const toEventId = number === undefined ? undefined : await eventOf(session, number);
        const forked = await session.workspace.services?.fork?.(toEventId);
        if (!forked) throw new TroupeError("usage", "This session cannot be forked here.");
        return `Forked into ${forked.sessionId}. To continue there: troupe -p "<prompt>" --resume ${forked.sessionId}`;
      },
    },
    ...(files && {
      async undo() {
        const { undo } = await import("../../checkpoints/undo.ts");
        const { restored, conflicts } = await undo({ kind: "message" }, files);
        if (conflicts.length === 0) return `Restored ${plural(restored.length, "file")}.`;
        throw new TroupeError(
          "failed",
          `Nothing was undone: these files have changed since: ${conflicts.join(", ")}.`,
          { hint: "To restore them anyway, end this session and run: troupe undo --force" },
        );
      },
    }),
  };
}

async function eventOf({ record: { rewinds } }: Session, number: number): Promise<string> {
  const points = await rewinds.points();
  const point = points[number - 1];
  if (point) return point.eventId;
  const hint = "/rewind lists them.";
  throw new TroupeError("usage", `There is no message ${number} of ${points.length}.`, { hint });
}

function listText(points: readonly RewindPoint[]): string {
  if (points.length === 0) return "This session has no messages yet.";
  const rows = points.map(({ userMessage, fileCount }, index) => {
    const files = fileCount === 0 ? "" : ` [${plural(fileCount, "file")} since]`;
    return `${String(index + 1).padStart(4)}  ${clip(userMessage.replace(/\s+/g, " "), 80)}${files}`;
  });
  return [...rows, "/rewind <number> goes back to before that message; add the word files to restore files too."].join(
    "\n",
  );
}

function doneText(rewound: Rewound): string {
  if (rewound.outcome === "session-busy") {
    throw new TroupeError("usage", "The session is busy.", { hint: "Wait until it is idle, or stop it." });
  }
  const { restoredFiles, skippedFiles, error } = rewound;
  const files = restoredFiles.length === 0 ? "" : ` ${plural(restoredFiles.length, "file")} restored.`;
  const skipped = skippedFiles.length === 0 ? "" : ` Not restored: ${skippedFiles.map(({ path }) => path).join(", ")}.`;
  const failed = error === undefined ? "" : ` Not all files could be restored: ${error}`;
  return `Done.${files}${skipped}${failed} /rewind restore undoes it.`;
}
