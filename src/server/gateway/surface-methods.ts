/** Methods that a terminal needs beside those of programs: the past in pages, and answers for what workers do not have. */

import * as z from "zod";
import { TroupeError } from "../../protocol/errors.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import { type GatewayMethod, method, ofSession } from "./gateway-method.ts";

const MAX_PAGE = 1_000;
const ids = () => z.object({ sessionIds: z.array(z.string()).max(10_000) });

/** For what the session's worker would have to do, and is not carried to it. */
const notCarried = (what: string): GatewayMethod =>
  method(
    () => ofSession({}).loose(),
    () => {
      throw new TroupeError("usage", `${what} cannot be used in a session that workers run.`, {
        hint: "Send a message, or submit the prompt with other flags.",
      });
    },
  );

export const surfaceMethods: Readonly<Record<string, GatewayMethod>> = {
  // Cursors are positions in the view of the log, which grows while it is read.
  "session.eventLog.read": method(
    () =>
      ofSession({
        cursor: z.string().optional(),
        max: z.number().int().min(1).max(MAX_PAGE).default(MAX_PAGE),
        types: z.union([z.literal("*"), z.array(z.string())]).default("*"),
      }),
    async ({ sessionId, cursor = "0", max, types }, { gateway }) => {
      const { store } = gateway.sessions;
      const from = Number(cursor);
      const events: SessionEvent[] = [];
      let position = 0;
      let hasMore = false;
      if ((await store.revision(sessionId)) === undefined) return { events, cursor, cursorStatus: "ok", hasMore };
      for await (const event of store.events(sessionId)) {
        if (position < from) position++;
        else if (events.length < max) {
          position++;
          if (types === "*" || types.includes(event.type)) events.push(event);
        } else {
          hasMore = true;
          break;
        }
      }
      return { events, cursor: String(position), cursorStatus: "ok", hasMore };
    },
  ),
  "session.eventLog.tail": method(
    () => ofSession({}),
    async ({ sessionId }, { gateway }) => ({ cursor: String((await gateway.sessions.state(sessionId)).lastSeq) }),
  ),
  // Open requests are announced to each client that joins.
  "session.ui.pendingRequests": method(
    () => ofSession({}),
    () => ({ events: [] }),
  ),
  "session.commands.list": method(
    () => ofSession({}),
    () => ({ commands: [] }),
  ),
  // The rules are those of the workers.
  "session.permissions.configure": method(
    () => ofSession({}).loose(),
    () => ({ success: true }),
  ),
  "session.interruptMainTurn": method(
    () => ofSession({}).loose(),
    async ({ sessionId }, { gateway }) => {
      await gateway.sessions.abort(sessionId);
      return { success: true };
    },
  ),
  "session.commands.submit": notCarried("Slash commands"),
  "session.mode.set": notCarried("Modes"),
  "session.model.switchTo": notCarried("Other models"),
  "sessions.getLastForContext": method(
    () => z.object({}).loose(),
    async (_, { gateway }) => {
      const [last] = (await gateway.sessions.store.list()).filter(({ detachedFrom }) => detachedFrom === undefined);
      return last ? { sessionId: last.sessionId } : {};
    },
  ),
  "sessions.checkInUse": method(ids, () => ({ inUse: [] })),
  // No process of this machine has to be joined: every client reaches the session through the database.
  "sessions.getHolders": method(ids, ({ sessionIds }) => ({
    ownPid: process.pid,
    holders: sessionIds.map((sessionId) => ({ sessionId, holder: { kind: "nobody" } })),
  })),
};
