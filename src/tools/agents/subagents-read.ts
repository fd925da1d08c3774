import * as z from "zod";
import { pageOf, RESULT_PARTS } from "../coordination/result-pages.ts";
import { limitSubmission, submissionFrom, withoutSubmission } from "../coordination/submission.ts";
import { defineTool, fixed } from "../tool.ts";
import { ToolError } from "../tool-error.ts";
import { agentId, idMeant, namingAgents, tasksOf } from "./agent-text.ts";
import description from "./subagents-read.md";
import type { TaskReport } from "./task-port.ts";

export const subagentsRead = defineTool({
  name: "subagents_read",
  companionOf: "subagents_run",
  managesAgents: true,
  description,
  input: fixed("subagents_read", () =>
    z.object({
      agent_id: agentId().describe("The worker"),
      part: z.enum(RESULT_PARTS).default("findings").describe("Which list"),
      from: z.number().refine(isIndex).optional().describe("First item, from 0"),
      offset: z.number().refine(isIndex).optional().describe("Only for an item longer than a page"),
    }),
  ),
  readOnly: true,
  async run({ agent_id, part, from = 0, offset = 0 }, context) {
    const tasks = tasksOf(context);
    const id = idMeant(agent_id, tasks);
    const { signal, toolCallId } = context;
    const read = tasks.read({ id, wait: false, timeoutMs: 0, toolCallId }, signal);
    const report = await namingAgents(id, tasks, read);
    const page = pageOf(resultOf(report), { part, from, offset });
    if (from > 0 && from >= page.of) {
      throw new ToolError(`${report.task.id} has ${page.of} ${part}, counted from 0; there is none at ${from}.`);
    }
    return { content: JSON.stringify({ agent_id: report.task.id, ...page }) };
  },
});

/** Returns the worker's result with the same bounds as in the result of `subagents_run`. */
function resultOf({ task, answers, error }: TaskReport) {
  if (task.status === "queued" || task.status === "running") {
    throw new ToolError(`${task.id} is still running. Wait for the result of subagents_run.`);
  }
  const payload = jsonOf(answers.at(-1)?.response);
  if (payload !== undefined) return limitSubmission(submissionFrom(payload));
  if (error === undefined) {
    throw new ToolError(`${task.id} submitted no structured result. Use read_agent to read its answer.`);
  }
  return limitSubmission(withoutSubmission("blocked", error));
}

function jsonOf(text: string | undefined): unknown {
  try {
    const value: unknown = JSON.parse(text ?? "");
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

function isIndex(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}
