import { ScheduleRegistry } from "../../session/modes/schedules.ts";
import type { Session } from "../../session/session.ts";

/** The scheduled prompts of a session, restored from its log. They run while the session is open. */
export function sessionSchedules(session: Session): ScheduleRegistry {
  return ScheduleRegistry.restored(session.events, {
    stamp: session.record.stamp,
    // Both events come from the same table; the registry passes matching data.
    record: (type: "session.schedule_created" | "session.schedule_cancelled", data: { id: number }) =>
      session.record.emit(type as "session.schedule_cancelled", data),
    enqueue: async (prompt, displayPrompt) => {
      await session.sendAndWait({ prompt, displayPrompt, source: "schedule" });
    },
    onTrouble: (error) => {
      if (!session.queue.closed.aborted)
        session.record.warn("schedule", error instanceof Error ? error.message : String(error));
    },
  });
}
