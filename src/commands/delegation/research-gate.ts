/** Whether a piece of research may end: enough was looked up, and the report is written. */
import { plural } from "../../lib/text.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import type { StopGate } from "../gate.ts";
import { argumentOf, plainName, RESEARCH_AGENT } from "./research-limits.ts";

/** A thorough run has 6 to 10. */
const MIN_DISPATCHES = 6;
const MAX_REMINDERS = 2;

export interface ResearchFacts {
  /** Calls of `task` for a research agent that succeeded. */
  readonly dispatches: number;
  readonly reportExists: boolean;
}

/** `reportExists` looks at the disk, where it can be asked; else the calls of the run tell. */
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

/** From the events of the run; what agents below the leader did does not count. */
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

/** The result of a call that was moved to the background: its answer did not come back. */
const WITHOUT_ANSWER = /^Agent started in background/;

/** What is missing, as the next message; undefined when nothing is. */
export function judgeResearch({ dispatches, reportExists }: ResearchFacts, reportPath: string): string | undefined {
  const missing = MIN_DISPATCHES - dispatches;
  if (missing > 0) {
    return [
      `The research is not thorough yet: ${dispatches} of at least ${MIN_DISPATCHES} dispatches have come back.`,
      "Go through the parts of the question: which have no answer, a single weak source, or sources that disagree?",
      `Send out at least ${plural(missing, "more research agent")} for them, in one reply, then bring the report up to date at ${reportPath}.`,
    ].join(" ");
  }
  if (reportExists) return undefined;
  return `The report is not there. Write it now with create at exactly this path: ${reportPath}`;
}
