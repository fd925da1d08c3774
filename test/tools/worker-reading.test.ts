import { describe, expect, it } from "vitest";
import { taskList } from "../../src/tools/agents/task-list.ts";
import type { SessionDatabase } from "../../src/tools/database/session-database.ts";
import { memoryRead } from "../../src/tools/memory/memory-read.ts";
import type { ToolContext } from "../../src/tools/tool.ts";
import { planRead } from "../../src/tools/user/plan-read.ts";
import { contentOf, contextFor, failureOf } from "./workspace.ts";

const planned = (plan: string) => contextFor("/", { knowledge: { memory: () => "", plan: async () => plan } });

function withTodos(todos: readonly { id: string; status: string; description?: string }[], list?: string) {
  const rows = todos.map((todo) => ({ title: `Title of ${todo.id}`, description: "", createdAt: "", ...todo }));
  const database: SessionDatabase = {
    execute: async () => [],
    writeTodoList: async () => {},
    readTodoList: async () => list,
    readTodos: async () => rows,
    readDependencies: async () => [],
    close: async () => {},
  };
  const context: ToolContext = { ...contextFor("/"), database };
  return context;
}

describe("tools that workers read the session with", () => {
  it("plan_read returns a long plan in pages, and the pages together are the plan", async () => {
    const plan = Array.from({ length: 4_000 }, (_, index) => `step ${index}`).join("\n");
    let read = "";
    let offset: number | undefined = 0;
    while (offset !== undefined) {
      const page = await contentOf(planRead, { offset }, planned(plan));
      expect(page.length).toBeLessThan(17_000);
      const next = /\n\[\d+ more characters: call plan_read with offset (\d+)\]$/.exec(page);
      read += next ? page.slice(0, next.index) : page;
      offset = next ? Number(next[1]) : undefined;
    }
    expect(read).toBe(plan);
  });

  it("plan_read says how long the plan is when the offset is behind its end", async () => {
    expect((await failureOf(planRead, { offset: 9 }, planned("short"))).message).toBe(
      "The plan has 5 characters. Use a smaller offset than 9.",
    );
  });

  it("task_list lists the todos with one status, and says how many it left out", async () => {
    const todos = Array.from({ length: 103 }, (_, index) => ({
      id: `t${index}`,
      status: index < 102 ? "done" : "open",
    }));
    expect(await contentOf(taskList, { status: "open" }, withTodos(todos))).toBe("[open] t102: Title of t102");
    const lines = (await contentOf(taskList, {}, withTodos(todos))).split("\n");
    expect([lines.length, lines.at(-1)]).toEqual([101, "[3 more todos not shown: name a status]"]);
    expect(await contentOf(taskList, { status: "lost" }, withTodos(todos))).toBe("No todo has the status lost.");
  });

  it("task_list keeps each todo on one line and shows the checklist after them", async () => {
    const todos = [{ id: "a", status: "open", description: "one\ntwo" }];
    expect(await contentOf(taskList, {}, withTodos(todos, "- [x] first\n- [ ] second"))).toBe(
      "[open] a: Title of a. one two\nChecklist:\n- [x] first\n- [ ] second",
    );
  });

  it.each([
    ["memory_read", memoryRead, /no memory to read/],
    ["plan_read", planRead, /no plan to read/],
    ["task_list", taskList, /no todos to list/],
  ])("%s fails with a clear error where the session gives it nothing to read from", async (_name, tool, message) => {
    expect((await failureOf(tool, {}, contextFor("/"))).message).toMatch(message);
  });
});
