/** Stored sessions: finding, measuring, closing and deleting them. */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod";
import type { Runtime } from "../../../runtime/runtime.ts";
import { sessionHolder } from "../../../runtime/sessions/session-holder.ts";
import { type Call, type MethodTable, method, noParams } from "../method.ts";
import { Filter, fits, metadataOf } from "./sessions.ts";

const byId = () => z.object({ sessionId: z.string() });
const manyIds = () => z.object({ sessionIds: z.array(z.string()).max(10_000) });
const DAY_MS = 24 * 60 * 60 * 1000;

export const storedSessionsMethods: MethodTable = {
  "sessions.list": method(
    () =>
      z.object({
        source: z.enum(["local", "remote", "all"]).default("local"),
        filter: Filter.optional(),
        metadataLimit: z.number().optional(),
      }),
    async ({ filter, source }, { server }) => {
      if (source === "remote") return { sessions: [] };
      const kept = await server.runtime.store.list();
      return { sessions: kept.filter((summary) => fits(summary, filter)).map(metadataOf) };
    },
  ),
  "sessions.findByPrefix": method(
    () => z.object({ prefix: z.string().min(1) }),
    async ({ prefix }, { server }) => {
      const found = (await server.runtime.store.ids()).filter((id) => id.startsWith(prefix));
      return found.length === 1 ? { sessionId: found[0] } : {};
    },
  ),
  "sessions.findByTaskId": method(
    () => z.object({ taskId: z.string() }),
    () => ({}), // tasks of a service; sessions of this machine have none
  ),
  "sessions.getLastForContext": method(
    () => z.object({ context: z.object({ ...Filter.shape }).optional() }),
    async ({ context }, { server }) => {
      const filter = context?.cwd === undefined ? undefined : { cwd: context.cwd };
      const last = (await server.runtime.store.list()).find((summary) => fits(summary, filter));
      return last ? { sessionId: last.sessionId } : {};
    },
  ),
  "sessions.getSizes": method(noParams, async (_, { server }) => {
    const ids = await server.runtime.store.ids();
    const sizes = await Promise.all(ids.map(async (id) => [id, await bytesOf(server.runtime, id)] as const));
    return { sizes: Object.fromEntries(sizes) };
  }),
  "sessions.checkInUse": method(manyIds, ({ sessionIds }, { hub }) => ({
    inUse: sessionIds.filter((id) => hub.isOpen(id)),
  })),
  // Unlike `checkInUse`, it knows of other processes too.
  "sessions.getHolders": method(manyIds, async ({ sessionIds }, { server }) => {
    const { home } = server.runtime;
    const holders = sessionIds.map(async (sessionId) => ({ sessionId, holder: await sessionHolder(home, sessionId) }));
    return { ownPid: process.pid, holders: await Promise.all(holders) };
  }),
  "sessions.close": method(byId, async ({ sessionId }, { hub }) => {
    await hub.closeSession(sessionId);
    return {};
  }),
  "sessions.releaseLock": method(byId, async ({ sessionId }, { hub }) => {
    await hub.closeSession(sessionId);
    return {};
  }),
  "sessions.save": method(byId, async ({ sessionId }, { hub }) => {
    await hub.require(sessionId).session.record.log.flush();
    return {};
  }),
  "sessions.bulkDelete": method(manyIds, async ({ sessionIds }, call) => ({
    freedBytes: Object.fromEntries(await Promise.all(sessionIds.map(async (id) => [id, await remove(id, call)]))),
  })),
  "sessions.pruneOld": method(
    () =>
      z.object({
        olderThanDays: z.number().min(0),
        dryRun: z.boolean().default(false),
        includeNamed: z.boolean().default(false),
        excludeSessionIds: z.array(z.string()).default([]),
      }),
    (params, call) => prune(params, call),
  ),
  "sessions.enrichMetadata": method(
    () => z.object({ sessions: z.array(z.looseObject({ sessionId: z.string() })) }),
    async ({ sessions }, { server }) => {
      const kept = new Map((await server.runtime.store.list()).map((summary) => [summary.sessionId, summary]));
      return {
        sessions: sessions.map((given) => {
          const known = kept.get(given.sessionId);
          return known ? { ...metadataOf(known), ...given } : given;
        }),
      };
    },
  ),
  // The board of a session is available only while the session is open.
  "sessions.getBoardEntryCount": method(byId, async ({ sessionId }, { hub }) => {
    const board = hub.find(sessionId)?.session.workspace.services?.board;
    return board ? { count: await board.count() } : {};
  }),
  "sessions.reloadPluginHooks": method(byId, ({ sessionId }, { hub }) => {
    hub.require(sessionId);
    return {};
  }),
  "sessions.loadDeferredRepoHooks": method(byId, ({ sessionId }, { hub }) => {
    hub.require(sessionId);
    return { startupPrompts: [], hookCount: 0 };
  }),
};

async function remove(sessionId: string, { hub, server }: Call): Promise<number> {
  const freed = await bytesOf(server.runtime, sessionId);
  const { success } = await hub.delete(sessionId);
  return success ? freed : 0;
}

async function prune(
  params: { olderThanDays: number; dryRun: boolean; includeNamed: boolean; excludeSessionIds: readonly string[] },
  call: Call,
): Promise<object> {
  const { olderThanDays, dryRun, includeNamed, excludeSessionIds } = params;
  const before = Date.now() - olderThanDays * DAY_MS;
  const old = (await call.server.runtime.store.list()).filter(({ updatedAt }) => Date.parse(updatedAt) <= before);
  const isKept = ({ sessionId, name }: (typeof old)[number]): boolean =>
    call.hub.isOpen(sessionId) || excludeSessionIds.includes(sessionId) || (name !== undefined && !includeNamed);
  const skipped = old.filter(isKept).map(({ sessionId }) => sessionId);
  const candidates = old.filter((summary) => !isKept(summary)).map(({ sessionId }) => sessionId);
  if (dryRun) return { deleted: [], candidates, skipped, freedBytes: 0, dryRun };
  const freed = await Promise.all(candidates.map((id) => remove(id, call)));
  return { deleted: candidates, candidates, skipped, freedBytes: freed.reduce((sum, bytes) => sum + bytes, 0), dryRun };
}

async function bytesOf({ home }: Runtime, sessionId: string): Promise<number> {
  const folder = join(home, "session-state", sessionId);
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const sizes = entries
    .filter((entry) => entry.isFile())
    .map((entry) =>
      stat(join(entry.parentPath, entry.name)).then(
        ({ size }) => size,
        () => 0,
      ),
    );
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}
