import * as z from "zod";
import { defineTool, fixed } from "../tool.ts";
import { agentId, endSentence, idMeant, namingAgents, reasonOf, remains, tasksOf } from "./agent-text.ts";
import { header } from "./read-agent.ts";
import description from "./stop-agent.md";

export const stopAgent = defineTool({
  name: "stop_agent",
  companionOf: "task",
  managesAgents: true,
  forReadOnlyAgents: true,
  description,
  input: fixed("stop_agent", () => z.object({ agent_id: agentId().describe("Its id") })),
  async run({ agent_id }, context) {
    const tasks = tasksOf(context);
    const id = idMeant(agent_id, tasks);
    const report = await namingAgents(id, tasks, tasks.stop(id, context.toolCallId));
    const { task } = report;
    if (task.status === "cancelled") return { content: `Agent stopped. ${header(task)}${remains(report)}` };
    return { content: `Nothing to stop: the agent ${endSentence(reasonOf(task))} ${header(task)}` };
  },
});
