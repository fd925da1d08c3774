import { workingDirectory } from "../../context/working-directory.ts";
import type { SessionEvent, WorkingDirectory } from "../../protocol/event.ts";
import type { SessionSetup } from "./session-setup.ts";

/** Tells when a session finds itself elsewhere than before: on another branch, in another repository. */
export function contextWatch({ context, log, listener }: Pick<SessionSetup, "context" | "log" | "listener">): {
  look(): void;
} {
  let last = lastPlace(log.events) ?? context;
  // A new session has just looked.
  let isFresh = log.events.length === 0;
  return {
    look() {
      const now = isFresh ? context : placeNow(context);
      isFresh = false;
      if (isSame(last, now)) return;
      last = now;
      void listener.say("session.context_changed", now);
    },
  };
}

function lastPlace(events: readonly SessionEvent[]): WorkingDirectory | undefined {
  for (let index = events.length - 1; index >= 0; index--) {
    const event = events[index];
    if (event?.type === "session.context_changed") return event.data;
    if ((event?.type === "session.start" || event?.type === "session.resume") && event.data.context) {
      return event.data.context;
    }
  }
  return undefined;
}

/** A folder that is gone is no other place. */
function placeNow(context: WorkingDirectory): WorkingDirectory {
  try {
    return workingDirectory(context.cwd);
  } catch {
    return context;
  }
}

/** A new commit is no other place either. */
const isSame = (a: WorkingDirectory, b: WorkingDirectory): boolean =>
  a.cwd === b.cwd && a.gitRoot === b.gitRoot && a.repository === b.repository && a.branch === b.branch;
