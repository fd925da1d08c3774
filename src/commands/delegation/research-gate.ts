/** Decides whether research may end: enough agents have reported, and the report is written. */
import { plural } from "../../lib/text.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import type { StopGate } from "../gate.ts";
import { argumentOf, plainName, RESEARCH_AGENT } from "./research-limits.ts";

/** A thorough run has 6 to 10. */
const MIN_DISPATCHES = 6;
const MAX_REMINDERS = 2;

export interface ResearchFacts {
  /** Successful calls of `task` for a research agent. */
  readonly dispatches: number;
  readonly reportExists: boolean;
}

/** Returns the gate. `reportExists` checks the disk; without it, the events of the run decide. */
export function researchGate(options: { readonly reportPath: string; reportExists?(): Promise<boolean> }): StopGate {
  let reminders = 0;
  return async (events) => {
    if (reminders >= MAX_REMINDERS) return undefined;
    const told = researchFacts(events, options.reportPath);
    const facts = { ...told, reportExists: (await options.reportExists?.()) ?? told.reportExists };
    const message = judgeResearch(facts, options.reportPath);
    if (message !== undefined) reminders++;
    return message;
  };
}

/** Counts from the events of the run. Calls of subagents do not count. */
export function researchFacts(events: readonly SessionEvent[], reportPath: string): ResearchFacts {
  const open = new Map<string, "dispatch" | "report">();
  let dispatches = 0;
  let reportExists = false;
  for (const event of events) {
    if (event.agentId !== undefined) continue;
    if (event.type === "tool.execution_start") {
      const { toolCallId, toolName } = event.data;
      const given = event.data.arguments;
      if (toolName === "task" && isDispatch(given)) open.set(toolCallId, "dispatch");
      if (toolName === "create" && argumentOf(given, "path") === reportPath) open.set(toolCallId, "report");
    }
    if (event.type === "tool.execution_complete" && event.data.success) {
      const what = open.get(event.data.toolCallId);
      if (what === "dispatch" && !WITHOUT_ANSWER.test(event.data.result?.content ?? "")) dispatches++;
      if (what === "report") reportExists = true;
    }
  }
  return { dispatches, reportExists };
}

function isDispatch(given: unknown): boolean {
  return plainName(argumentOf(given, "agent_type")) === RESEARCH_AGENT && argumentOf(given, "mode") !== "background";
}

/** Result of a call that was moved to the background, so its answer is missing. */
const WITHOUT_ANSWER = /^Agent started in background/;

/** Returns the message that names what is missing; undefined if nothing is. */
export function judgeResearch({ dispatches, reportExists }: ResearchFacts, reportPath: string): string | undefined {
  const missing = MIN_DISPATCHES - dispatches;
  if (missing > 0) {
    return [
      `The research is not thorough yet: ${dispatches} of at least ${MIN_DISPATCHES} dispatches have come back.`,
      "Go through the parts of the question: which have no answer, a single weak source, or sources that disagree?",
      `Start at least ${plural(missing, "more research agent")} for them, in one reply, then update the report at ${reportPath}.`,
    ].join(" ");
  }
  if (reportExists) return undefined;
  return `The report is missing. Write it now with create at exactly this path: ${reportPath}`;
}
