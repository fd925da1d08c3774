/** The skills of a session. */

import * as z from "zod";
import { defined } from "../../../lib/defined.ts";
import { eventsOf } from "../../../session/event-log.ts";
import type { Session } from "../../../session/session.ts";
import { type MethodTable, nothing, sessionMethod } from "../method.ts";

const byName = () => ({ name: z.string() });

export const skillsMethods: MethodTable = {
  "session.skills.list": sessionMethod(nothing, (_, { session }) => ({
    skills: servicesOf(session).skills.map((skill) => ({
      name: skill.name,
      commandName: skill.name.toLowerCase().replaceAll(" ", "-"),
      description: skill.description,
      source: skill.source,
      userInvocable: skill.userInvocable,
      enabled: skill.enabled,
      path: skill.path,
      ...defined({ pluginName: skill.pluginName, argumentHint: skill.argumentHint }),
    })),
  })),
  "session.skills.getInvoked": sessionMethod(nothing, async (_, { session }) => ({ skills: await invokedIn(session) })),
  "session.skills.enable": sessionMethod(byName, ({ name }, { session }) =>
    servicesOf(session).setSkillEnabled(name, true),
  ),
  "session.skills.disable": sessionMethod(byName, ({ name }, { session }) =>
    servicesOf(session).setSkillEnabled(name, false),
  ),
  "session.skills.reload": sessionMethod(nothing, async (_, { session }) => {
    await servicesOf(session).reloadSkills();
    return { warnings: [], errors: [] };
  }),
  "session.skills.ensureLoaded": sessionMethod(nothing, () => undefined), // skills are loaded when a session is opened
  "session.instructions.getSources": sessionMethod(nothing, (_, { session }) => ({
    sources: servicesOf(session)
      .instructions()
      .map(({ path, scope, content }) => ({
        id: path,
        label: path,
        sourcePath: path,
        content,
        type: scope === "user" ? "home" : "repo",
        location: scope === "user" ? "user" : scope === "working-directory" ? "working-directory" : "repository",
      })),
  })),
  "session.plugins.list": sessionMethod(nothing, (_, { session }) => ({
    plugins: servicesOf(session)
      .plugins()
      .map(({ name, version }) => ({
        name,
        marketplace: "",
        ...defined({ version }),
        enabled: true,
      })),
  })),
  "session.plugins.reload": sessionMethod(
    () => ({ reloadCustomAgents: z.boolean().optional() }),
    async (_, { session }) => servicesOf(session).reloadSkills(),
  ),
};

export function servicesOf(session: Session): NonNullable<Session["workspace"]["services"]> {
  const { services } = session.workspace;
  if (!services) throw new Error(`Session ${session.id} has no workspace services.`);
  return services;
}

/** Returns the last use of each skill, with the main agent's turn in which it was used. */
async function invokedIn(session: Session): Promise<object[]> {
  const invoked = new Map<string, object>();
  let turn = 0;
  for await (const event of eventsOf(session)) {
    if (event.type === "assistant.turn_start" && event.agentId === undefined) turn++;
    if (event.type !== "skill.invoked" || event.agentId !== undefined) continue;
    const { name, path, content, allowedTools } = event.data;
    invoked.set(name, { name, path, content, ...defined({ allowedTools }), invokedAtTurn: turn });
  }
  return [...invoked.values()];
}
