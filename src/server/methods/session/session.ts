/** Methods about one session and its conversation. This file: opening, stopping and leaving a session. */
import * as z from "zod";
import { openWithToken } from "../../clients/github-token.ts";
import { createParams, resumeParams } from "../../sessions/session-options.ts";
import { type MethodTable, method, nothing, sessionMethod } from "../method.ts";

const sessionId = (): z.ZodObject<{ sessionId: z.ZodString }> => z.object({ sessionId: z.string() });

const leave = method(sessionId, async (params, { hub, connection }) => {
  await hub.leave(connection, params.sessionId);
  return { success: true };
});

export const sessionMethods: MethodTable = {
  "session.create": method(createParams, (params, call) =>
    openWithToken(call, params, (given) => call.hub.create(call.connection, given)),
  ),
  "session.resume": method(resumeParams, (params, call) => {
    const { hub, connection, signal } = call;
    if (connection.extension) return hub.joinExtension(connection, params, signal);
    return openWithToken(call, params, (given) => hub.resume(connection, given));
  }),
  "session.abort": sessionMethod(nothing, (_, { session }) => {
    session.abort();
    return { success: true };
  }),
  "session.getMessages": sessionMethod(nothing, async (_, { hosted }) => ({ events: await hosted.deliveredEvents() })),
  "session.destroy": leave,
  // The name since SDK 1.0.13.
  "session.detach": leave,
  "session.shutdown": sessionMethod(
    () => ({ type: z.enum(["routine", "error"]).default("routine"), reason: z.string().optional() }),
    async ({ type, reason = "" }, { hub, hosted }) => {
      await hub.shutDown(hosted, type === "error" ? { error: reason } : {});
    },
  ),
  "session.suspend": sessionMethod(nothing, async (_, { hub, hosted }) => {
    await hub.suspend(hosted);
  }),
  "session.log": sessionMethod(
    () => ({
      message: z.string(),
      level: z.enum(["info", "warning", "error"]).default("info"),
      ephemeral: z.boolean().default(false),
    }),
    async ({ message, level, ephemeral }, { hosted }) => ({
      eventId: await hosted.log(message, { level, ephemeral }),
    }),
  ),
};
