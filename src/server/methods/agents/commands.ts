/** Slash commands: built-in commands, skills, and commands that clients provide. */

import * as z from "zod";
import { defined } from "../../../lib/defined.ts";
import { GivenAttachment } from "../../../protocol/define-event.ts";
import { TroupeError } from "../../../protocol/errors.ts";
import { offeredCommands, offeredPrompts, sendTyped } from "../../../runtime/submit.ts";
import { type MethodTable, type SessionCall, sessionMethod } from "../method.ts";

const requestId = z.string();

export const commandMethods: MethodTable = {
  "session.commands.list": sessionMethod(
    () => ({
      includeBuiltins: z.boolean().default(true),
      includeSkills: z.boolean().default(true),
      includeClientCommands: z.boolean().default(true),
    }),
    async ({ includeBuiltins, includeSkills, includeClientCommands }, { hosted, session }) => {
      const builtin = includeBuiltins ? await offeredCommands(session) : [];
      const prompts = includeBuiltins ? await offeredPrompts(session) : [];
      const skills = includeSkills ? (session.workspace.services?.skills ?? []) : [];
      const ofClients = includeClientCommands ? hosted.clients.commands : [];
      const usual = { allowDuringAgentExecution: false };
      return {
        commands: [
          ...builtin.map(({ name, aliases, summary: description, argumentHint: hint }) => ({
            name,
            aliases,
            description,
            kind: "builtin",
            ...(hint !== undefined && { input: { hint } }),
            ...usual,
          })),
          ...prompts.map((prompt) => ({ ...prompt, kind: "builtin", ...usual })),
          ...skills
            .filter(({ enabled, userInvocable }) => enabled && userInvocable)
            .map(({ name, description }) => ({ name, description, kind: "skill", ...usual })),
          ...ofClients.map(({ name, description = "" }) => ({ name, description, kind: "client", ...usual })),
        ],
      };
    },
  ),
  "session.commands.invoke": sessionMethod(
    () => ({ name: z.string(), input: z.string().default("") }),
    async ({ name, input }, { hosted }) => {
      const read = await hosted.commands.invoke(`/${name.replace(/^\//, "")} ${input}`.trim());
      if (read.kind === "said") return { kind: "text", text: read.text };
      const { prompt, displayPrompt, mode } = read;
      return { kind: "agent-prompt", prompt, displayPrompt, ...defined({ mode }) };
    },
  ),
  // An extension of the protocol: runs a user's input, and sends the message that a command produces.
  "session.commands.submit": sessionMethod(
    () => ({
      text: z.string().min(1),
      data: z.string().exactOptional(),
      attachments: z.array(GivenAttachment).exactOptional(),
    }),
    async (typed, call) => {
      const client = await clientCommand(typed.text, call);
      if (client) {
        const error = await call.hosted.commands.run(client.name, client.args);
        if (error !== undefined) throw new TroupeError("failed", `/${client.name} failed: ${error}`);
        return { kind: "text", text: "" };
      }
      const result = await sendTyped(call.session, typed);
      return result.kind === "said" ? { kind: "text", text: result.text } : result;
    },
  ),
  "session.commands.execute": sessionMethod(
    () => ({ commandName: z.string(), args: z.string().default("") }),
    async ({ commandName, args }, { hosted }) => {
      const error = await hosted.commands.run(commandName, args);
      return error === undefined ? {} : { error };
    },
  ),
  "session.commands.handlePendingCommand": sessionMethod(
    () => ({ requestId, error: z.string().optional() }),
    ({ requestId: id, error }, { hosted }) => {
      hosted.commands.answer(id, error);
      return { success: true };
    },
  ),
  "session.commands.enqueue": sessionMethod(
    () => ({ command: z.string().min(1) }),
    ({ command }, { hosted }) => {
      hosted.commands.enqueue(command);
      return { queued: true };
    },
  ),
  "session.commands.respondToQueuedCommand": sessionMethod(
    () => ({
      requestId,
      result: z.object({ handled: z.boolean(), stopProcessingQueue: z.boolean().optional() }),
    }),
    ({ requestId: id, result }, { hosted }) => ({ success: hosted.commands.respond(id, result) }),
  ),
};

/** Returns the client command that the text calls. Built-in commands take precedence. */
async function clientCommand(
  text: string,
  { session, hosted }: SessionCall,
): Promise<{ readonly name: string; readonly args: string } | undefined> {
  const [, name, args = ""] = /^\/(\S+)(?:\s+([\s\S]*))?$/.exec(text.trim()) ?? [];
  if (name === undefined || !hosted.clients.withCommand(name)) return undefined;
  const builtin = await offeredCommands(session);
  const isOurs = builtin.some((command) => command.name === name || command.aliases.includes(name));
  return isOurs ? undefined : { name, args: args.trim() };
}
