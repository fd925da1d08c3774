/** Messages to a session's agent. */

import * as z from "zod";
import { defined } from "../../../lib/defined.ts";
import type { Json } from "../../../lib/json.ts";
import { GivenAttachment } from "../../../protocol/define-event.ts";
import { TroupeError } from "../../../protocol/errors.ts";
import { readTyped, sendingOf, sendOn } from "../../../runtime/submit.ts";
import type { SendOptions } from "../../../session/session.ts";
import { traceOf, traceParams } from "../../sessions/session-options.ts";
import { type MethodTable, type SessionCall, sessionMethod } from "../method.ts";

const MAX_MESSAGES = 100;
const JsonValue: z.ZodType<Json> = z.json();

const item = () => ({
  prompt: z.string(),
  displayPrompt: z.string().exactOptional(),
  attachments: z.array(GivenAttachment).exactOptional(),
  /** Has no effect: the model chooses its tools. */
  requiredTool: z.string().exactOptional(),
});

const ResponseFormat = () =>
  z.object({
    type: z.literal("json_schema"),
    jsonSchema: z.object({
      name: z.string().min(1).max(200),
      schema: JsonValue,
      description: z.string().exactOptional(),
      strict: z.boolean().exactOptional(),
    }),
  });

const forAll = () => ({
  mode: z.enum(["enqueue", "immediate"]).exactOptional(),
  agentMode: z.enum(["interactive", "plan", "autopilot", "shell"]).exactOptional(),
  requestHeaders: z.record(z.string(), z.string()).exactOptional(),
  responseFormat: ResponseFormat().exactOptional(),
  /** Origin of the message, when no user typed it. */
  source: z.string().max(200).exactOptional(),
  /** True: responds when the session is idle again. */
  wait: z.boolean().default(false),
  ...traceParams(),
});

export const sendMethods: MethodTable = {
  "session.send": sessionMethod(
    () => ({ ...item(), ...forAll() }),
    async ({ prompt, displayPrompt, attachments, requiredTool, ...how }, call) => {
      const [messageId] = await send([{ prompt, displayPrompt, attachments, requiredTool }], how, call);
      return { messageId };
    },
  ),
  "session.sendMessages": sessionMethod(
    () => ({ messages: z.array(z.object(item())).min(1).max(MAX_MESSAGES), ...forAll() }),
    async ({ messages, ...how }, call) => ({ messageIds: await send(messages, how, call) }),
  ),
};

interface Item {
  readonly prompt: string;
  readonly displayPrompt?: string | undefined;
  readonly attachments?: SendOptions["attachments"] | undefined;
  readonly requiredTool?: string | undefined;
}
type ForAll = z.infer<z.ZodObject<ReturnType<typeof forAll>>>;

async function send(items: readonly Item[], how: ForAll, call: SessionCall): Promise<readonly string[]> {
  const { session, hosted, connection } = call;
  const { mode, agentMode, requestHeaders, responseFormat, wait } = how;
  const trace = traceOf(how) ?? hosted.trace;
  requireExtensionMay(call, { ...how, attaches: items.some(({ attachments }) => attachments) });
  if (items.some(({ requiredTool }) => requiredTool !== undefined))
    session.record.warn(
      "options",
      "requiredTool is not used: the model chooses its tools. Name the tool in the prompt.",
    );
  if (agentMode !== undefined && agentMode !== "shell") await session.mainAgent.modes.set(agentMode);
  const source = connection.extension ? `extension-${connection.extension.name}` : sourceOf(how.source);
  const shared = {
    ...defined({ source, mode, agentMode }),
    answering: defined({ headers: requestHeaders, responseFormat, trace }),
  };
  const ids: string[] = [];
  for (const { prompt, displayPrompt, attachments } of items) {
    const command = source === undefined ? await commandOf(prompt, call) : undefined;
    if (command?.kind === "said") {
      ids.push(announce(command.text, call));
      continue;
    }
    const { mode: _, ...queued } = shared;
    const message: SendOptions = {
      // A command's rules apply to an answer of its own, so its message never steers another one.
      ...(command ? { ...queued, ...command.message } : { ...shared, prompt }),
      answering: { ...command?.message.answering, ...shared.answering },
      ...defined({ displayPrompt, attachments }),
    };
    ids.push(await sendOn(session, message));
  }
  if (wait) await session.queue.whenIdle();
  return ids;
}

type CommandMessage = { kind: "said"; text: string } | { kind: "message"; message: SendOptions };

/**
 * Returns the message of a command that the prompt calls: by its name, or with a prompt that `session.commands.invoke`
 * returned. Returns undefined for an ordinary prompt.
 */
async function commandOf(prompt: string, { session, hosted }: SessionCall): Promise<CommandMessage | undefined> {
  const invoked = hosted.commands.invoked(prompt);
  // The client chooses the mode for a prompt that it received from `session.commands.invoke`.
  if (invoked) return { kind: "message", message: await invoked.message(() => prompt) };
  const read = await readTyped(session, prompt, "program");
  if (read?.kind !== "prompt") return read;
  return { kind: "message", message: await sendingOf(session, read) };
}

/** Notifies clients of a command's output, and that nothing follows. Returns an id in place of a message id. */
function announce(text: string, { session, hosted }: SessionCall): string {
  hosted.commands.showMessage(text);
  if (!session.queue.isWorking) void session.record.emit("session.idle", {});
  return crypto.randomUUID();
}

/** Returns undefined for messages of the user, which have no source. */
const sourceOf = (source: string | undefined): string | undefined =>
  source === undefined || source === "" || source === "user" ? undefined : source;

/**
 * Throws unless an extension's message is a plain prompt: it may not choose a mode, run a command or attach the user's
 * files.
 */
function requireExtensionMay({ connection }: SessionCall, message: ForAll & { readonly attaches: boolean }): void {
  const { extension } = connection;
  if (!extension) return;
  const { agentMode, requestHeaders, source, attaches } = message;
  const refused = [
    agentMode && "choose a mode",
    requestHeaders && "choose headers",
    source !== undefined && "name another source",
    attaches && extension.scope === "project" && "attach files",
  ].find((what) => typeof what === "string");
  if (refused) throw new TroupeError("usage", `The extension ${extension.name} may not ${refused} with a message.`);
}
