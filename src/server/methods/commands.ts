/** Commands that people type with a slash: ours, skills, and those that clients bring. */
import * as z from "zod";
import { invokeCommand, offeredCommands } from "../../runtime/submit.ts";
import { type MethodTable, sessionMethod } from "./method.ts";

const requestId = z.string();

export const commandMethods: MethodTable = {
  "session.commands.list": sessionMethod(
    () => ({
      includeBuiltins: z.boolean().default(true),
      includeSkills: z.boolean().default(true),
      includeClientCommands: z.boolean().default(true),
    }),
    async ({ includeBuiltins, includeSkills, includeClientCommands }, { live, session }) => {
      const builtin = includeBuiltins ? await offeredCommands(session) : [];
      const skills = includeSkills ? (session.settings.surroundings?.skills ?? []) : [];
      const ofClients = includeClientCommands ? live.clients.commands : [];
      const usual = { allowDuringAgentExecution: false };
      return {
        commands: [
          ...builtin.map(({ name, aliases, summary: description }) => ({
            ...{ name, aliases, description, kind: "builtin" },
            ...usual,
          })),
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
    async ({ name, input }, { session }) => {
      const result = await invokeCommand(session, `/${name.replace(/^\//, "")} ${input}`.trim());
      if (result.kind === "said") return { kind: "text", text: result.text };
      const { prompt, displayPrompt = prompt } = result.send;
      return { kind: "agent-prompt", prompt, displayPrompt, ...(result.mode && { mode: result.mode }) };
    },
  ),
  "session.commands.execute": sessionMethod(
    () => ({ commandName: z.string(), args: z.string().default("") }),
    async ({ commandName, args }, { live }) => {
      const error = await live.commands.run(commandName, args);
      return error === undefined ? {} : { error };
    },
  ),
  "session.commands.handlePendingCommand": sessionMethod(
    () => ({ requestId, error: z.string().optional() }),
    ({ requestId: id, error }, { live }) => {
      live.commands.answer(id, error);
      return { success: true };
    },
  ),
  "session.commands.enqueue": sessionMethod(
    () => ({ command: z.string().min(1) }),
    ({ command }, { live }) => {
      live.commands.enqueue(command);
      return { queued: true };
    },
  ),
  "session.commands.respondToQueuedCommand": sessionMethod(
    () => ({
      requestId,
      result: z.object({ handled: z.boolean(), stopProcessingQueue: z.boolean().optional() }),
    }),
    ({ requestId: id, result }, { live }) => ({ success: live.commands.respond(id, result) }),
  ),
};
