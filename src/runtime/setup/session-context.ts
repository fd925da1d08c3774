import { workingDirectory } from "../../context/working-directory.ts";
import type { SessionEvent, WorkingDirectory } from "../../protocol/event.ts";
import type { SessionSetup } from "./session-setup.ts";

/** Emits an event when the session's branch or repository changes. */
export function contextWatch({ context, log, channel }: Pick<SessionSetup, "context" | "log" | "channel">): {
  look(): void;
} {
  let last = lastDirectory(log.events) ?? context;
  // A new session has just read its context.
  let isFresh = log.events.length === 0;
  return {
    look() {
      const now = isFresh ? context : currentDirectory(context);
      isFresh = false;
      if (isSame(last, now)) return;
      last = now;
      void channel.emit("session.context_changed", now);
    },
  };
}

function lastDirectory(events: readonly SessionEvent[]): WorkingDirectory | undefined {
  for (let index = events.length - 1; index >= 0; index--) {
    const event = events[index];
    if (event?.type === "session.context_changed") return event.data;
    if ((event?.type === "session.start" || event?.type === "session.resume") && event.data.context) {
      return event.data.context;
    }
  }
  return undefined;
}

/** A deleted folder does not count as a change. */
function currentDirectory(context: WorkingDirectory): WorkingDirectory {
  try {
    return workingDirectory(context.cwd);
  } catch {
    return context;
  }
}

/** A new commit does not count as a change. */
const isSame = (a: WorkingDirectory, b: WorkingDirectory): boolean =>
  a.cwd === b.cwd && a.gitRoot === b.gitRoot && a.repository === b.repository && a.branch === b.branch;
