import { defineCommand } from "../command.ts";
import { duration } from "../lines.ts";
import { scheduleRequest } from "./schedule-request.ts";

export const every = defineCommand({
  name: "every",
  summary: "Send a prompt repeatedly while the session is open",
  argumentHint: "<30s|5m|2h|1d> <prompt>",
  needs: ["schedules"],
  async run(argumentText, { schedules }) {
    const { id, intervalMs } = await schedules.add(scheduleRequest(argumentText, "every"));
    const text = `Schedule ${id}: every ${duration(intervalMs)}. /schedules stop ${id} ends it.`;
    return { kind: "completed", text };
  },
});
