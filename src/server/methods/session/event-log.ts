/** Events for clients that poll. Returns pages, and can wait for new events. */

import * as z from "zod";
import { defined } from "../../../lib/defined.ts";
import type { SessionEvent } from "../../../protocol/event.ts";
import type { ClientConnection } from "../../connection.ts";
import type { Cursor } from "../../sessions/event-window.ts";
import type { HostedSession } from "../../sessions/hosted-session.ts";
import { servicesOf } from "../agents/skills.ts";
import { type MethodTable, nothing, sessionMethod } from "../method.ts";

const MAX_PAGE = 1_000;
const MAX_PAGE_CHARACTERS = 8 * 1024 * 1024;
const MAX_WAIT_MS = 60_000;

const query = () => ({
  cursor: z.string().optional(),
  max: z.number().int().min(1).max(MAX_PAGE).default(200),
  waitMs: z.number().min(0).default(0),
  types: z.union([z.literal("*"), z.array(z.string()).min(1)]).default("*"),
  agentScope: z.enum(["primary", "all"]).default("all"),
  agentIds: z.array(z.string()).min(1).optional(),
  direction: z.enum(["forward", "backward"]).default("forward"),
  includeEphemeral: z.boolean().default(true),
});
type Query = z.infer<z.ZodObject<ReturnType<typeof query>>>;

export const eventLogMethods: MethodTable = {
  "session.eventLog.read": sessionMethod(query, async (params, { hosted, signal }) => {
    const from = cursorIn(hosted, params.cursor);
    const matches = matcher(params);
    const until = performance.now() + Math.min(params.waitMs, MAX_WAIT_MS);
    const { max, direction } = params;
    for (;;) {
      const { last } = hosted.window;
      const { events, cursor, hasMore } = await hosted.window.read({
        ...defined({ from }),
        max,
        maxCharacters: MAX_PAGE_CHARACTERS,
        direction,
        matches,
      });
      const left = until - performance.now();
      if (events.length > 0 || hasMore || left <= 0 || direction === "backward" || signal.aborted) {
        const cursorStatus = params.cursor !== undefined && from === undefined ? "expired" : "ok";
        return { events, cursor: cursorOf(hosted, cursor), cursorStatus, hasMore };
      }
      // An event may have been added while the page was read.
      if (hosted.window.last === last) await hosted.window.next(left, signal);
    }
  }),
  "session.eventLog.tail": sessionMethod(nothing, (_, { hosted }) => ({
    cursor: cursorOf(hosted, hosted.window.last),
  })),
  "session.eventLog.registerInterest": sessionMethod(
    () => ({ eventType: z.string() }),
    ({ eventType }, { hosted, connection }) => {
      if (eventType === "mcp.oauth_required") askForTokens(hosted, connection);
      return { handle: hosted.interests.register(eventType, connection) };
    },
  ),
  "session.eventLog.releaseInterest": sessionMethod(
    () => ({ handle: z.string() }),
    ({ handle }, { hosted }) => {
      hosted.interests.release(handle);
      return { success: true };
    },
  ),
};

/** Asks a client that provides tokens for all pending ones, and again for those that other clients did not have. */
function askForTokens(hosted: HostedSession, connection: ClientConnection): void {
  const { session } = hosted;
  for (const request of session.requests.pending("mcp_oauth")) {
    const { kind: _, ...data } = request;
    hosted.tell(connection, "mcp.oauth_required", data);
  }
  servicesOf(session).mcp?.askAgain();
}

const cursorOf = (hosted: HostedSession, { kept, passing }: Cursor): string => `${hosted.openedAs}|${kept}|${passing}`;

/** Returns undefined without a cursor, and for a cursor of an earlier opening: reading then starts at the beginning. */
function cursorIn(hosted: HostedSession, cursor: string | undefined): Cursor | undefined {
  const [opening, kept, passing] = cursor?.split("|") ?? [];
  return opening === hosted.openedAs ? { kept: Number(kept), passing: Number(passing) } : undefined;
}

function matcher(params: Query): (event: SessionEvent) => boolean {
  const { types, agentScope, agentIds, includeEphemeral } = params;
  return (event) => {
    if (types !== "*" && !types.includes(event.type)) return false;
    if (agentScope === "primary" && event.agentId !== undefined) return false;
    if (agentIds && !agentIds.includes(event.agentId ?? "")) return false;
    return includeEphemeral || !event.ephemeral;
  };
}
