/** The plan of a session, and its list of things to do. */
import { stat } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod";
import { nodeDisk } from "../../lib/node/disk.ts";
import { filesFolderOf, readSessionFile, writeSessionFile } from "../session-files.ts";
import { type MethodTable, nothing, sessionMethod } from "./method.ts";

const PLAN = "plan.md";

export const planMethods: MethodTable = {
  "session.plan.read": sessionMethod(nothing, async (_, { session }) => {
    const path = join(filesFolderOf(session), PLAN);
    const exists = await stat(path).then(
      () => true,
      () => false,
    );
    return { exists, content: exists ? await readSessionFile(session, PLAN) : null, path };
  }),
  "session.plan.update": sessionMethod(
    () => ({ content: z.string() }),
    async ({ content }, { session }) => {
      const { isNew } = await writeSessionFile(session, PLAN, content);
      await session.say("session.plan_changed", { operation: isNew ? "create" : "update" });
    },
  ),
  "session.plan.delete": sessionMethod(nothing, async (_, { session }) => {
    const gone = await nodeDisk.unlink(join(filesFolderOf(session), PLAN)).then(
      () => true,
      () => false,
    );
    if (gone) await session.say("session.plan_changed", { operation: "delete" });
  }),
  "session.plan.readSqlTodos": sessionMethod(nothing, async (_, { session }) => ({
    rows: (await session.settings.surroundings?.readTodos()) ?? [],
  })),
  "session.plan.readSqlTodosWithDependencies": sessionMethod(nothing, async (_, { session }) => ({
    rows: (await session.settings.surroundings?.readTodos()) ?? [],
    dependencies: (await session.settings.surroundings?.readDependencies()) ?? [],
  })),
};
