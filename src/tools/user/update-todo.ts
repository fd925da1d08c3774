import * as z from "zod";
import type { ToolContext } from "../tool.ts";
import { defineTool, fixed } from "../tool.ts";
import { ToolError } from "../tool-error.ts";
import description from "./update-todo.md";

const MAX_LIST_CHARACTERS = 20_000;

export const updateTodo = defineTool({
  name: "update_todo",
  forReadOnlyAgents: true,
  description,
  input: fixed("update_todo", () =>
    z.object({
      todos: z.string().max(MAX_LIST_CHARACTERS).describe("The whole list, as markdown with check boxes"),
    }),
  ),
  async run({ todos }, { database, signal }: ToolContext) {
    const items = itemsOf(todos);
    if (items.length === 0 && todos.trim() !== "") {
      throw new ToolError("The list holds no item. Write each as a line such as: - [ ] Add the test");
    }
    await database?.writeTodoList(todos, signal);
    const count = (state: Item["state"]): number => items.filter((item) => item.state === state).length;
    return {
      content: `Todo list updated: ${count("done")} done, ${count("in progress")} in progress, ${count("open")} open.`,
      detailedContent: todos,
    };
  },
});

interface Item {
  readonly state: "open" | "in progress" | "done";
  readonly title: string;
}

function itemsOf(markdown: string): Item[] {
  return [...markdown.matchAll(/^[ \t]*(?:[-*+]|\d{1,4}[.)])[ \t]+\[([ xX~/>-])\][ \t]*(.*)$/gm)].map(
    ([, mark = " ", title = ""]) => ({ state: stateOf(mark), title }),
  );
}

function stateOf(mark: string): Item["state"] {
  if (mark === " ") return "open";
  return mark.toLowerCase() === "x" ? "done" : "in progress";
}
