/** The plan of a session, and its to-do list. */
import * as z from "zod";
import { planPath, readPlan, removePlan, writePlan } from "../../sessions/session-files.ts";
import { type MethodTable, nothing, sessionMethod } from "../method.ts";

export const planMethods: MethodTable = {
  "session.plan.read": sessionMethod(nothing, async (_, { session }) => {
    const content = await readPlan(session);
    return { exists: content !== undefined, content: content ?? null, path: planPath(session) };
  }),
  "session.plan.update": sessionMethod(
    () => ({ content: z.string() }),
    async ({ content }, { session }) => {
      const { isNew } = await writePlan(session, content);
      await session.record.emit("session.plan_changed", { operation: isNew ? "create" : "update" });
    },
  ),
  "session.plan.delete": sessionMethod(nothing, async (_, { session }) => {
    if (await removePlan(session)) await session.record.emit("session.plan_changed", { operation: "delete" });
  }),
  "session.plan.readSqlTodos": sessionMethod(nothing, async (_, { session }) => ({
    rows: (await session.workspace.services?.readTodos()) ?? [],
  })),
  "session.plan.readSqlTodosWithDependencies": sessionMethod(nothing, async (_, { session }) => ({
    rows: (await session.workspace.services?.readTodos()) ?? [],
    dependencies: (await session.workspace.services?.readDependencies()) ?? [],
  })),
};
