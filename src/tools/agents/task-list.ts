import * as z from "zod";
import { quoted } from "../../lib/quoting.ts";
import { clip, plural } from "../../lib/text.ts";
import type { ToolContext } from "../tool.ts";
import { defineTool, fixed } from "../tool.ts";
import { ToolError } from "../tool-error.ts";
import description from "./task-list.md";

const MAX_TODOS = 100;
const MAX_TODO_CHARACTERS = 400;
const MAX_LIST_CHARACTERS = 8000;

/** For coordinated workers, which have no `sql`. */
export const taskList = defineTool({
  name: "task_list",
  description,
  input: fixed("task_list", () =>
    z.object({ status: z.string().optional().describe("Only todos with this status, such as pending") }),
  ),
  readOnly: true,
  async run({ status }, { database }: ToolContext) {
    if (database === undefined) throw new ToolError("This session has no todos to list. Continue without them.");
    const todos = (await database.readTodos()).filter((todo) => status === undefined || todo.status === status);
    const lines = todos.slice(0, MAX_TODOS).map(({ id, title, description: details, ...todo }) => {
      const text = [`[${todo.status}] ${id}: ${title}`, details].filter((part) => part.trim() !== "").join(". ");
      return clip(quoted(text.replace(/\s+/g, " ")), MAX_TODO_CHARACTERS);
    });
    const hidden = todos.length - lines.length;
    if (hidden > 0) lines.push(`[${plural(hidden, "more todo")} not shown: name a status]`);
    // `update_todo` stores one text beside the table.
    const checklist = status === undefined ? ((await database.readTodoList()) ?? "").trim() : "";
    if (checklist !== "") lines.push(`Checklist:\n${clip(quoted(checklist), MAX_LIST_CHARACTERS)}`);
    const none = status === undefined ? "This session has no todos." : `No todo has the status ${status}.`;
    return { content: lines.join("\n") || none };
  },
});
