import { defineCommand } from "../command.ts";
import { duration } from "../lines.ts";
import { scheduleRequest } from "./schedule-request.ts";

export const after = defineCommand({
  name: "after",
  summary: "Send a prompt once, later",
  argumentHint: "<30s|5m|2h|1d> <prompt>",
  needs: ["schedules"],
  async run(argumentText, { schedules }) {
    const { id, intervalMs } = await schedules.add(scheduleRequest(argumentText, "after"));
    const text = `Schedule ${id}: once, in ${duration(intervalMs)}. /schedules stop ${id} cancels it.`;
    return { kind: "completed", text };
  },
});
