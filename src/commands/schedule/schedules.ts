/** The command `/schedules`. This folder holds the commands for scheduled prompts. */
import { TroupeError } from "../../protocol/errors.ts";
import { defineCommand } from "../command.ts";
import { clipLine, duration, joinLines } from "../lines.ts";
import type { ScheduleEntry } from "../ports.ts";

export const schedules = defineCommand({
  name: "schedules",
  summary: "Show the scheduled prompts, or stop one",
  harmless: "alone",
  argumentHint: "[stop <number>]",
  needs: ["schedules"],
  async run(argumentText, { schedules: port, now }) {
    if (argumentText === "") return { kind: "completed", text: overview(port.list(), now()) };
    const [, digits] = /^stop\s+(\d{1,9})$/i.exec(argumentText) ?? [];
    if (digits === undefined) {
      const hint = "Write /schedules, or /schedules stop and the number of one.";
      throw new TroupeError("usage", "/schedules does not understand this.", { hint });
    }
    const stopped = await port.stop(Number(digits));
    if (!stopped) {
      throw new TroupeError("usage", `There is no schedule ${digits}.`, { hint: "/schedules lists them." });
    }
    return { kind: "completed", text: `Schedule ${stopped.id} is stopped.` };
  },
});

function overview(entries: readonly ScheduleEntry[], now: number): string {
  if (entries.length === 0) return "Nothing is scheduled. /every and /after schedule a prompt.";
  return joinLines(
    entries.map(({ id, recurring, intervalMs, nextRunAt, displayPrompt }) => {
      const when = recurring ? `every ${duration(intervalMs)}, next in` : "once, in";
      return `${id}  ${when} ${duration(nextRunAt - now)}: ${clipLine(displayPrompt)}`;
    }),
  );
}
