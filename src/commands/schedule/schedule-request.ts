import { clip } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { ScheduleRequest } from "../ports.ts";

/** Limits of the wire: ten seconds to a day. */
export const MIN_INTERVAL_MS = 10_000;
export const MAX_INTERVAL_MS = 86_400_000;
export const MAX_SCHEDULED_CHARACTERS = 100_000;

const UNITS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Parses `<interval> <prompt>`, the arguments of `/every` and `/after`. */
export function scheduleRequest(argumentText: string, command: "every" | "after"): ScheduleRequest {
  const [, interval = "", prompt = ""] = /^(\S+)(?:\s+([\s\S]*))?$/.exec(argumentText.trim()) ?? [];
  const intervalMs = intervalOf(interval, command);
  const text = prompt.trim();
  const usage = `Write /${command} 5m and the prompt.`;
  if (text === "") throw new TroupeError("usage", "The prompt to schedule is missing.", { hint: usage });
  // No user may be present to see the effect of a command at that time.
  if (text.startsWith("/")) {
    throw new TroupeError("usage", "Commands cannot be scheduled.", { hint: "Describe the task in words." });
  }
  if (text.length > MAX_SCHEDULED_CHARACTERS) {
    const message = `A scheduled prompt has at most ${MAX_SCHEDULED_CHARACTERS} characters.`;
    throw new TroupeError("usage", message, { hint: "Put it into a file and name the file in the prompt." });
  }
  return { prompt: text, displayPrompt: clip(text, 200), intervalMs, recurring: command === "every" };
}

/** Parses `30s`, `5m`, `2h`, `1d`. */
function intervalOf(text: string, command: string): number {
  const [, digits = "", unit = ""] = /^(\d{1,9})([smhd])$/i.exec(text) ?? [];
  const milliseconds = Number(digits) * (UNITS[unit.toLowerCase()] ?? Number.NaN);
  const isValid = digits !== "" && milliseconds >= MIN_INTERVAL_MS && milliseconds <= MAX_INTERVAL_MS;
  if (isValid) return milliseconds;
  const what = text === "" ? "A time is missing" : `${JSON.stringify(clip(text, 40))} is not a time from 10 s to 1 day`;
  throw new TroupeError("usage", `${what}.`, { hint: `Write /${command} 30s, 5m, 2h or 1d, and then the prompt.` });
}
