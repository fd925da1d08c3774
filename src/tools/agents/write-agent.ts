import * as z from "zod";
import { defineTool, fixed } from "../tool.ts";
import { ToolError } from "../tool-error.ts";
import { agentId, idMeant, line, namingAgents, tasksOf, textUpTo } from "./agent-text.ts";
import type { MessageReceipt, Tasks } from "./task-port.ts";
import description from "./write-agent.md";

const MAX_MESSAGE_CHARACTERS = 50_000;
const MAX_AGENTS = 50;

export const writeAgent = defineTool({
  name: "write_agent",
  companionOf: "task",
  managesAgents: true,
  forReadOnlyAgents: true,
  description,
  input: fixed("write_agent", () =>
    z.object({
      message: textUpTo(MAX_MESSAGE_CHARACTERS).describe("Text"),
      agent_id: agentId().optional().describe("To one"),
      agent_ids: z
        .array(agentId())
        .refine(({ length }) => length <= MAX_AGENTS, { error: `at most ${MAX_AGENTS} at once` })
        .optional()
        .describe("To several"),
      scope: z.enum(["siblings", "children"]).optional().describe("To all"),
    }),
  ),
  async run({ message, ...whom }, context) {
    const tasks = tasksOf(context);
    const target = targetOf(whom, tasks);
    const written = tasks.write(target, message);
    const [only] = "ids" in target && target.ids.length === 1 ? target.ids : [];
    const receipts = await (only === undefined ? written : namingAgents(only, tasks, written));
    if (receipts.length === 0)
      throw new ToolError("No message was sent: no agent matches. Use list_agents to list the agents.");
    const content = receipts.map(receiptText).join("\n");
    if (receipts.every(({ outcome }) => outcome === "refused")) throw new ToolError(content);
    return { content };
  },
});

interface Recipients {
  readonly agent_id?: string | undefined;
  readonly agent_ids?: readonly string[] | undefined;
  readonly scope?: "siblings" | "children" | undefined;
}

function targetOf({ agent_id, agent_ids, scope }: Recipients, tasks: Tasks): Parameters<Tasks["write"]>[0] {
  const named = [...(agent_id === undefined ? [] : [agent_id]), ...(agent_ids ?? [])];
  if (named.length > 0 && scope !== undefined) throw new ToolError("Give ids or a scope, not both.");
  if (scope !== undefined) return { scope };
  if (named.length === 0) throw new ToolError("Name the recipients: agent_id, agent_ids or scope.");
  return { ids: [...new Set(named.map((each) => idMeant(each, tasks)))] };
}

function receiptText({ id: to, outcome, error }: MessageReceipt): string {
  switch (outcome) {
    case "delivered":
      return `Message delivered to agent "${line(to)}".`;
    case "queued":
      return `Message queued for agent "${line(to)}": it reads it at its next pause between tools.`;
    case "refused":
      return `Message NOT delivered to agent "${line(to)}": ${error === undefined ? "it was refused." : line(error, 1000)}`;
  }
}
