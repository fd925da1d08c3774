/** Metadata that clients store for sessions, and events of sessions that are not open. */
import { join } from "node:path";
import * as z from "zod";
import { TroupeError } from "../../../protocol/errors.ts";
import { type ClientMetadata, readClientMetadata, updateClientMetadata } from "../../clients/client-metadata.ts";
import { type Call, type MethodTable, method, nothing, sessionMethod } from "../method.ts";

const MAX_PAGE = 1_000;

export const clientMetadataMethods: MethodTable = {
  "session.metadata.getClientMetadata": sessionMethod(nothing, (_, { session }) =>
    readClientMetadata(session.record.log.directory),
  ),
  "session.metadata.updateClientMetadata": sessionMethod(
    () => ({
      clear: z.boolean().default(false),
      remove: z.array(z.string()).default([]),
      set: z.record(z.string().min(1).max(200), z.string().max(16_384)).default({}),
    }),
    ({ clear, remove, set }, { hosted, session }) =>
      hosted.inOrder(() => updateClientMetadata(session.record.log.directory, { clear, remove, set })),
  ),
  "sessions.getClientMetadata": method(
    () => z.object({ sessionIds: z.array(z.string()).max(1000), keys: z.array(z.string()).optional() }),
    ({ sessionIds, keys }, call) => Promise.all(sessionIds.map((sessionId) => metadataOf(sessionId, keys, call))),
  ),
  "sessions.readPersistedEvents": method(
    () =>
      z.object({
        sessionId: z.string().min(1),
        cursor: z.string().optional(),
        max: z.number().int().min(1).max(MAX_PAGE).default(200),
        direction: z.enum(["forward", "backward"]).default("forward"),
      }),
    async ({ sessionId, ...paging }, call) => {
      const events = await eventsOf(sessionId, call);
      return pageOf(events, paging);
    },
  ),
};

async function metadataOf(sessionId: string, keys: readonly string[] | undefined, call: Call): Promise<object> {
  const { store, home } = call.server.runtime;
  if (!call.hub.isOpen(sessionId) && (await store.revision(sessionId)) === undefined) {
    return { sessionId, status: "notFound" };
  }
  const hosted = call.hub.find(sessionId);
  const folder = hosted?.session.record.log.directory ?? join(home, "session-state", sessionId);
  try {
    return { sessionId, status: "ok", metadata: chosen(await readClientMetadata(folder), keys) };
  } catch {
    return { sessionId, status: "corrupt" };
  }
}

const chosen = (metadata: ClientMetadata, keys: readonly string[] | undefined): ClientMetadata =>
  keys ? Object.fromEntries(Object.entries(metadata).filter(([key]) => keys.includes(key))) : metadata;

async function eventsOf(sessionId: string, { hub, server }: Call): Promise<readonly { readonly id: string }[]> {
  const hosted = hub.find(sessionId);
  if (hosted) return hosted.session.events;
  if ((await server.runtime.store.revision(sessionId)) === undefined) {
    throw new TroupeError("usage", `Session not found: ${sessionId}`);
  }
  return (await server.runtime.store.read(sessionId)).events;
}

/**
 * Returns one page. A cursor is the id of the last event that was read. It has expired if the log no longer has that
 * event.
 */
function pageOf(
  events: readonly { readonly id: string }[],
  { cursor, max, direction }: { cursor?: string | undefined; max: number; direction: "forward" | "backward" },
): object {
  const at = cursor === undefined || cursor === "" ? -1 : events.findIndex(({ id }) => id === cursor);
  const isExpired = cursor !== undefined && cursor !== "" && at < 0;
  const candidates =
    direction === "forward" ? events.slice(at + 1) : [...(at < 0 ? events : events.slice(0, at))].reverse();
  const page = candidates.slice(0, max);
  return {
    events: page,
    cursor: page.at(-1)?.id ?? (isExpired ? "" : (cursor ?? "")),
    hasMore: candidates.length > page.length,
    cursorStatus: isExpired ? "expired" : "ok",
  };
}
