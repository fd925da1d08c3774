/** All sessions that are kept, open or not. */
import * as z from "zod";
import type { Runtime } from "../../runtime/runtime.ts";
import { type MethodTable, method, noParams } from "./method.ts";

type SessionSummary = Awaited<ReturnType<Runtime["store"]["list"]>>[number];

const sessionId = (): z.ZodObject<{ sessionId: z.ZodString }> => z.object({ sessionId: z.string() });
const Filter = z.object({
  cwd: z.string().optional(),
  gitRoot: z.string().optional(),
  repository: z.string().optional(),
  branch: z.string().optional(),
});

export const sessionsMethods: MethodTable = {
  "session.list": method(
    () => z.object({ filter: Filter.optional() }),
    async ({ filter = {} }, { server }) => {
      const wanted = Object.entries(filter).filter(([, value]) => value !== undefined);
      const kept = (await server.runtime.store.list()).filter(hadActivity);
      const fits = (summary: SessionSummary): boolean =>
        wanted.every(([name, value]) => summary[name as keyof typeof filter] === value);
      return { sessions: kept.filter(fits).map(metadataOf) };
    },
  ),
  "session.getLastId": method(noParams, async (_, { server }) => {
    const last = (await server.runtime.store.list()).find(hadActivity);
    return last ? { sessionId: last.sessionId } : {};
  }),
  "session.getMetadata": method(sessionId, async (params, { server }) => {
    const found = (await server.runtime.store.list()).find((summary) => summary.sessionId === params.sessionId);
    return found && hadActivity(found) ? { session: metadataOf(found) } : {};
  }),
  "session.delete": method(sessionId, (params, { hub }) => hub.delete(params.sessionId)),
  "session.getForeground": method(noParams, () => ({})),
  "session.setForeground": method(sessionId, () => ({
    success: false,
    error: "Not running in TUI+server mode",
  })),
};

/** One that nobody has said anything in is nothing to come back to. */
const hadActivity = ({ title, turns }: SessionSummary): boolean => title !== undefined || turns > 0;

function metadataOf(summary: SessionSummary): object {
  const { sessionId: id, createdAt, updatedAt, title, name, cwd, gitRoot, repository, branch } = summary;
  return {
    sessionId: id,
    startTime: createdAt,
    modifiedTime: updatedAt,
    ...(title !== undefined && { summary: title, name: name ?? title }),
    ...(name !== undefined && { name }),
    isRemote: false,
    isDetached: false,
    context: {
      cwd,
      ...(gitRoot !== undefined && { gitRoot }),
      ...(repository !== undefined && { repository }),
      ...(branch !== undefined && { branch }),
    },
  };
}
