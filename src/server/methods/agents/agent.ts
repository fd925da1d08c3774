/** Methods about agents, tools, skills and extensions. This file: the main agent, and agents that could replace it. */

import * as z from "zod";
import { defined } from "../../../lib/defined.ts";
import { TroupeError } from "../../../protocol/errors.ts";
import type { Session } from "../../../session/session.ts";
import { type MethodTable, nothing, sessionMethod } from "../method.ts";

export const agentMethods: MethodTable = {
  "session.agent.list": sessionMethod(
    () => ({ includeBuiltInAgents: z.boolean().default(false), includePrompt: z.boolean().default(false) }),
    ({ includeBuiltInAgents, includePrompt }, { session }) => ({
      agents: definitionsOf(session)
        .filter(({ source }) => includeBuiltInAgents || source !== "builtin")
        .map((definition) => describedAgent(definition, { includePrompt })),
    }),
  ),
  "session.agent.getCurrent": sessionMethod(nothing, (_, { session }) => ({ agent: currentOf(session) ?? null })),
  "session.agent.select": sessionMethod(
    () => ({ name: z.string() }),
    async ({ name }, { session }) => {
      await choiceOf(session).select(name);
      return { agent: currentOf(session) };
    },
  ),
  "session.agent.deselect": sessionMethod(nothing, async (_, { session }) => {
    await choiceOf(session).select(undefined);
  }),
  "session.agent.reload": sessionMethod(nothing, async (_, { session }) => {
    await session.workspace.services?.reloadAgents?.();
    return {
      agents: definitionsOf(session)
        .filter(({ source }) => source !== "builtin")
        .map((definition) => describedAgent(definition, { includePrompt: false })),
    };
  }),
};

type Definition = ReturnType<Session["agents"]["definitions"]>[number];

const definitionsOf = (session: Session): readonly Definition[] => session.agents.definitions();

function choiceOf(session: Session) {
  const choice = session.workspace.services?.agents;
  if (!choice) throw new TroupeError("usage", "The main agent of this session cannot be changed.");
  return choice;
}

function currentOf(session: Session): object | undefined {
  const name = session.workspace.services?.agents?.selected();
  if (name === undefined) return undefined;
  const definition = definitionsOf(session).find((known) => known.name === name);
  return definition ? describedAgent(definition, { includePrompt: false }) : { id: name, name, displayName: name };
}

/** Returns an agent in the form of the protocol, which has no source for a program's own agents. */
export function describedAgent(definition: Definition, { includePrompt }: { includePrompt: boolean }): object {
  const { id, name, displayName, description, source, userInvocable, tools, models, skills, mcpServers, path, prompt } =
    definition;
  return {
    id,
    name,
    displayName,
    description,
    ...(source !== "program" && { source }),
    userInvocable,
    ...(tools && { tools }),
    ...(models[0] !== undefined && { model: models[0] }),
    ...(skills.length > 0 && { skills }),
    ...defined({ mcpServers, path }),
    ...(includePrompt && { prompt }),
  };
}
