/** All stored sessions, open or not. */

import * as z from "zod";
import { defined } from "../../../lib/defined.ts";
import type { Runtime } from "../../../runtime/runtime.ts";
import { type MethodTable, method, noParams } from "../method.ts";

type SessionSummary = Awaited<ReturnType<Runtime["store"]["list"]>>[number];

const sessionId = (): z.ZodObject<{ sessionId: z.ZodString }> => z.object({ sessionId: z.string() });
export const Filter = z.object({
  cwd: z.string().optional(),
  gitRoot: z.string().optional(),
  repository: z.string().optional(),
  branch: z.string().optional(),
});

export const sessionsMethods: MethodTable = {
  "session.list": method(
    () => z.object({ filter: Filter.optional() }),
    async ({ filter }, { server }) => {
      const kept = (await server.runtime.store.list()).filter(hadActivity);
      return { sessions: kept.filter((summary) => fits(summary, filter)).map(metadataOf) };
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

/** Excludes sessions without a message and without a name: there is nothing to resume or to join. */
const hadActivity = ({ title, name, turns }: SessionSummary): boolean =>
  title !== undefined || name !== undefined || turns > 0;

/** Whether a session belongs to the requested location. */
export function fits(summary: SessionSummary, filter: z.infer<typeof Filter> | undefined): boolean {
  return Object.entries(filter ?? {}).every(
    ([name, value]) => value === undefined || summary[name as keyof z.infer<typeof Filter>] === value,
  );
}

export function metadataOf(summary: SessionSummary): object {
  const { sessionId: id, createdAt, updatedAt, title, name, cwd, gitRoot, repository, branch } = summary;
  return {
    sessionId: id,
    startTime: createdAt,
    modifiedTime: updatedAt,
    ...(title !== undefined && { summary: title, name: name ?? title }),
    ...defined({ name }),
    isRemote: false,
    isDetached: summary.detachedFrom !== undefined,
    context: {
      cwd,
      ...defined({ gitRoot, repository, branch }),
    },
  };
}
