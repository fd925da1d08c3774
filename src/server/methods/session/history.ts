/** The conversation of a session: compaction, handoff summary, clearing and rewind. */

import * as z from "zod";
import { defined } from "../../../lib/defined.ts";
import { TroupeError } from "../../../protocol/errors.ts";
import type { Session } from "../../../session/session.ts";
import { type MethodTable, method, nothing, sessionMethod } from "../method.ts";

const byEvent = () => ({ eventId: z.string().min(1) });

export const historyMethods: MethodTable = {
  "session.history.compact": sessionMethod(
    () => ({ customInstructions: z.string().optional(), trigger: z.enum(["manual", "model_switch"]).optional() }),
    async ({ customInstructions, trigger }, { session, signal }) => {
      const { context } = session.mainAgent;
      if (!context) throw new TroupeError("usage", "There is nothing to compact yet.");
      const end = await context.compact({
        ...(customInstructions && { focus: customInstructions }),
        ...defined({ trigger }),
        signal,
      });
      const contextWindow = context.usage();
      if (!end.success) {
        if (!end.started) throw new TroupeError("failed", end.error);
        return { success: false, messagesRemoved: 0, tokensRemoved: 0, error: end.error, contextWindow };
      }
      const { messagesRemoved, tokensRemoved, summaryContent } = end;
      return { success: true, messagesRemoved, tokensRemoved, summaryContent, contextWindow };
    },
  ),
  "session.history.cancelBackgroundCompaction": sessionMethod(nothing, async (_, { session }) => ({
    cancelled: (await session.mainAgent.context?.cancelBackground()) ?? false,
  })),
  "session.history.abortManualCompaction": sessionMethod(nothing, (_, { session }) => ({
    aborted: session.mainAgent.context?.abortBlocking() ?? false,
  })),
  "session.history.summarizeForHandoff": sessionMethod(nothing, (_, { session }) => ({
    summary: lastSummary(session),
  })),
  "session.history.clearContext": sessionMethod(
    () => ({ prompt: z.string().min(1) }),
    async ({ prompt }, { session }) => ({ messagesCleared: await session.record.rewinds.clear(prompt) }),
  ),
  "session.history.truncate": sessionMethod(byEvent, async ({ eventId }, { session }) => {
    const end = await session.record.rewinds.rewind(eventId);
    if (end.outcome === "session-busy") throw new TroupeError("failed", "The session is busy. Stop it first.");
    return { eventsRemoved: end.eventsRemoved };
  }),
  "session.history.listRewindPoints": sessionMethod(nothing, async (_, { session }) => ({
    fileChangeTrackingEnabled: session.record.files !== undefined,
    points: await session.record.rewinds.points(),
  })),
  "session.history.previewRewind": sessionMethod(byEvent, async ({ eventId }, { session }) => {
    const { files, skipped } = await session.record.rewinds.preview(eventId);
    return { available: true, fileCount: files.length, files, skippedFiles: skipped };
  }),
  "session.history.rewind": sessionMethod(
    () => ({ ...byEvent(), mode: z.enum(["conversation", "conversation-and-files"]) }),
    async ({ eventId, mode }, { session }) => {
      return session.record.rewinds.rewind(eventId, { files: mode === "conversation-and-files" });
    },
  ),
  // Takes the last rewind back.
  "session.history.restoreRewind": sessionMethod(
    () => ({ files: z.boolean().default(true) }),
    async ({ files }, { session }) => session.record.rewinds.restore({ files }),
  ),
  "sessions.fork": method(
    () => z.object({ sessionId: z.string(), toEventId: z.string().optional(), name: z.string().optional() }),
    async ({ sessionId, toEventId, name }, { server, hub }) => {
      const session = hub.isOpen(sessionId) ? hub.require(sessionId).session : undefined;
      return server.runtime.forkSession({
        sessionId,
        ...defined({ toEventId, name, session }),
      });
    },
  ),
};

/** Returns the summary of the last compaction. It is empty before the first one, and after a new beginning. */
function lastSummary(session: Session): string {
  const last = session.events.findLast(
    ({ type, data }) => type === "session.context_cleared" || (type === "session.compaction_complete" && data.success),
  );
  return last?.type === "session.compaction_complete" ? (last.data.summaryContent ?? "") : "";
}
