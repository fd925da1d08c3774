/** One session: opening it, talking to it, leaving it. */
import * as z from "zod";
import { GivenAttachment } from "../../protocol/define-event.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { sendOn } from "../../runtime/submit.ts";
import { createParams, resumeParams, traceOf, traceParams } from "../session-options.ts";
import { type MethodTable, method, nothing, sessionMethod } from "./method.ts";

const sessionId = (): z.ZodObject<{ sessionId: z.ZodString }> => z.object({ sessionId: z.string() });

const leave = method(sessionId, async (params, { hub, connection }) => {
  await hub.leave(connection, params.sessionId);
  return { success: true };
});

export const sessionMethods: MethodTable = {
  "session.create": method(createParams, (params, { hub, connection }) => hub.create(connection, params)),
  "session.resume": method(resumeParams, (params, { hub, connection, signal }) =>
    connection.extension ? hub.joinExtension(connection, params, signal) : hub.resume(connection, params),
  ),
  "session.send": sessionMethod(
    () => ({
      prompt: z.string(),
      displayPrompt: z.string().exactOptional(),
      attachments: z.array(GivenAttachment).exactOptional(),
      mode: z.enum(["enqueue", "immediate"]).exactOptional(),
      agentMode: z.enum(["interactive", "plan", "autopilot", "shell"]).exactOptional(),
      requestHeaders: z.record(z.string(), z.string()).exactOptional(),
      ...traceParams(),
    }),
    async ({ prompt, displayPrompt, attachments, mode, agentMode, requestHeaders, ...rest }, call) => {
      const { session, live, connection } = call;
      const trace = traceOf(rest) ?? live.trace;
      const { extension } = connection;
      // Words of an extension are a prompt: they choose no mode, run no command and reach for no files of a person's.
      if (extension && (agentMode || requestHeaders || (attachments && extension.scope === "project"))) {
        const what = agentMode ? "choose a mode" : requestHeaders ? "choose headers" : "attach files";
        throw new TroupeError("usage", `The extension ${extension.name} may not ${what} with a message.`);
      }
      if (agentMode !== undefined && agentMode !== "shell") await session.modes.set(agentMode);
      const messageId = await sendOn(session, {
        prompt,
        ...(extension && { source: `extension-${extension.name}` }),
        ...(displayPrompt !== undefined && { displayPrompt }),
        ...(attachments && { attachments }),
        ...(mode && { mode }),
        ...(agentMode && { agentMode }),
        answering: { ...(requestHeaders && { headers: requestHeaders }), ...(trace && { trace }) },
      });
      return { messageId };
    },
  ),
  "session.abort": sessionMethod(nothing, (_, { session }) => {
    session.abort();
    return { success: true };
  }),
  "session.getMessages": sessionMethod(nothing, (_, { live }) => ({ events: live.toldEvents() })),
  "session.destroy": leave,
  // The same since SDK 1.0.13.
  "session.detach": leave,
  "session.shutdown": sessionMethod(
    () => ({ type: z.enum(["routine", "error"]).default("routine"), reason: z.string().optional() }),
    async ({ type, reason = "" }, { hub, live }) => {
      await hub.shutDown(live, type === "error" ? { error: reason } : {});
    },
  ),
  "session.suspend": sessionMethod(nothing, async (_, { hub, live }) => {
    await hub.suspend(live);
  }),
  "session.log": sessionMethod(
    () => ({
      message: z.string(),
      level: z.enum(["info", "warning", "error"]).default("info"),
      ephemeral: z.boolean().default(false),
    }),
    async ({ message, level, ephemeral }, { live }) => ({
      eventId: await live.log(message, { level, ephemeral }),
    }),
  ),
};
