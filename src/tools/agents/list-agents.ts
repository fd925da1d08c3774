import * as z from "zod";
import { defined } from "../../lib/defined.ts";
import { plural } from "../../lib/text.ts";
import { defineTool, fixed } from "../tool.ts";
import { age, cost, line, reasonOf, tasksOf } from "./agent-text.ts";
import description from "./list-agents.md";
import type { TaskView } from "./task-port.ts";

const MAX_ROWS = 100;
const COLUMNS = [
  "id",
  "type",
  "status",
  "relation",
  "description",
  "model",
  "age",
  "intent",
  "last activity",
  "tool calls",
  "tokens",
  "cost",
  "waiting for",
];

export const listAgents = defineTool({
  name: "list_agents",
  companionOf: "task",
  managesAgents: true,
  description,
  input: fixed("list_agents", () =>
    z.object({
      scope: z.enum(["siblings", "children", "all"]).optional().describe("Whose"),
      include_completed: z.boolean().optional().describe("Include ended"),
    }),
  ),
  readOnly: true,
  async run({ scope, include_completed = false }, context) {
    const all = tasksOf(context).list({ includeEnded: true, ...defined({ scope }) });
    const wanted = include_completed ? all : all.filter((task) => !hasEnded(task));
    return { content: [...tableOf(wanted), ...notes(all, wanted)].join("\n") };
  },
});

function hasEnded({ status }: TaskView): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

function tableOf(tasks: readonly TaskView[]): string[] {
  if (tasks.length === 0) return ["No agents."];
  return [COLUMNS, ...tasks.slice(0, MAX_ROWS).map(rowOf)].map((cells) => cells.join(" | "));
}

function notes(all: readonly TaskView[], wanted: readonly TaskView[]): string[] {
  const cut = wanted.length - MAX_ROWS;
  const ended = all.length - wanted.length;
  return [
    ...(cut > 0 ? [`[${plural(cut, "more agent")} not shown; narrow with scope]`] : []),
    ...(ended > 0 ? [`[${plural(ended, "ended agent")} not shown; include_completed shows them]`] : []),
  ];
}

function rowOf(task: TaskView): string[] {
  const reason = reasonOf(task);
  const status = reason === "finished" ? task.status : `${task.status} (${reason})`;
  const unread = task.unreadMessages > 0 ? ` (${task.unreadMessages} unread)` : "";
  return [
    cell(task.id),
    cell(task.agentType),
    `${status}${unread}`,
    task.relation,
    cell(task.description),
    cell(task.model ?? "-"),
    age(task.elapsedMs),
    cell(task.intent ?? "-"),
    task.lastActivity === undefined ? "-" : `${cell(task.lastActivity)} (${age(task.quietMs)} ago)`,
    String(task.toolCalls),
    String(task.tokens),
    cost(task.costUsd),
    cell(task.waitingFor ?? "-"),
  ];
}

/** Replaces the column separator, so that the text cannot look like another column. */
function cell(text: string): string {
  return line(text, 80).replaceAll("|", "/");
}
