import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { sessionDatabase } from "../../src/tools/database/session-database.ts";
import { updateTodo } from "../../src/tools/user/update-todo.ts";
import { call, contextFor, failureOf, workspace } from "./workspace.ts";

const list = '# Plan\n- [x] read\n- [-] write it\'s "quoted"\n  - [ ] nested\n1. [ ] numbered\nnot an item';

test("the list is kept, replaced as a whole, and counted", async () => {
  const { root } = workspace();
  const database = sessionDatabase({ path: join(root, "session.db"), disk: nodeDisk });
  onTestFinished(() => database.close());
  const context = { ...contextFor(root), database };
  expect(await database.readTodoList()).toBeUndefined();
  expect(await call(updateTodo, { todos: list }, context)).toEqual({
    content: "Todo list updated: 1 done, 1 in progress, 2 open.",
    detailedContent: list,
  });
  expect(await database.readTodoList()).toBe(list);
  await call(updateTodo, { todos: "- [X] all" }, context);
  expect(await database.readTodoList()).toBe("- [X] all");
  await call(updateTodo, { todos: "" }, context);
  expect(await database.readTodoList()).toBe("");
});

test("text without an item is refused with an example", async () => {
  expect(await failureOf(updateTodo, { todos: "read, write" }, contextFor("/"))).toEqual({
    code: "failure",
    message: "The list holds no item. Write each as a line such as: - [ ] Add the test",
  });
  expect((await failureOf(updateTodo, { todos: "x".repeat(30_000) }, contextFor("/"))).message).toContain("todos");
});
