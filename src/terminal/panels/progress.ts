/** Shows the activity beside the conversation in one row: the plan, workflows, autopilot, scheduled prompts. */
import { plural } from "../../lib/text.ts";
import type { View } from "../../view/view.ts";
import { safeLine } from "../screen/safe.ts";
import type { Style } from "../screen/style.ts";

const MAX_TITLE = 50;

export function progressRows(view: View, style: Style): string[] {
  const parts = [...planPart(view), ...runParts(view), ...autopilotPart(view), ...schedulePart(view)];
  return parts.length === 0 ? [] : [style.dim(`▸ ${parts.join(" · ")}`)];
}

function planPart({ plan: { items }, main, agents }: View): string[] {
  const done = items.filter(({ status }) => status === "done").length;
  const isAtWork = main.status === "running" || [...agents.values()].some(({ status }) => status === "running");
  if (items.length === 0 || (done === items.length && !isAtWork)) return [];
  const blocked = items.filter(({ status }) => status === "blocked").length;
  const current = items.find(({ status }) => status === "in_progress");
  const title = current ? `: ${safeLine(current.title).slice(0, MAX_TITLE)}` : "";
  return [`plan ${done} of ${items.length}${blocked > 0 ? `, ${blocked} blocked` : ""}${title}`];
}

function runParts({ runs }: View): string[] {
  return [...runs.values()]
    .filter(({ status }) => status === "running")
    .map(({ name, phase, agents }) => {
      const where = phase === undefined ? "" : `: ${phase}`;
      return safeLine(`${name}${where} (${plural(agents.length, "agent")})`).slice(0, MAX_TITLE + 20);
    });
}

function autopilotPart({ session, autopilot, main }: View): string[] {
  if (session.mode !== "autopilot" || main.status !== "running" || autopilot.continues === 0) return [];
  return [`autopilot went on ${plural(autopilot.continues, "time")}`];
}

function schedulePart({ schedules }: View): string[] {
  if (schedules.size === 0) return [];
  const [first] = schedules.values();
  const prompt = safeLine(first?.prompt ?? "").slice(0, 30);
  return [`${plural(schedules.size, "scheduled prompt")}: ${prompt} (/schedules)`];
}
