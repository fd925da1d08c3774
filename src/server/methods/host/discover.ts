/** Skills, agents, instructions and MCP servers of folders and of the user, listed without a session. */

import { join } from "node:path";
import * as z from "zod";
import { defined } from "../../../lib/defined.ts";
import {
  changeOwnSettings,
  discoverIn,
  ownServers,
  readOwnSettings,
  searchedFolders,
} from "../../../runtime/workspace/discovery.ts";
import { describedAgent } from "../agents/agent.ts";
import { type Call, type MethodTable, method, noParams } from "../method.ts";

const folders = () => ({
  projectPaths: z.array(z.string()).default([]),
});

const hostOf = ({ server }: Call) => ({ runtime: server.runtime, environment: server.options.environment });

export const discoverMethods: MethodTable = {
  "skills.discover": method(
    () =>
      z.object({
        ...folders(),
        skillDirectories: z.array(z.string()).default([]),
        excludeHostSkills: z.boolean().default(false),
      }),
    async ({ projectPaths, skillDirectories, excludeHostSkills }, call) => {
      const disabled = new Set(disabledSkills(call));
      const found = await Promise.all(
        orHere(projectPaths, call).map((folder) => discoverIn(folder, hostOf(call), { skillDirectories })),
      );
      const skills = found.flatMap((workspace) => workspace.skills);
      const wanted = skills.filter(
        ({ scope, source }) => !(excludeHostSkills && scope === "user" && source !== "custom"),
      );
      return { skills: distinct(wanted, ({ path }) => path).map((skill) => skillEntry(skill, disabled)) };
    },
  ),
  "skills.getDiscoveryPaths": method(
    () => z.object({ ...folders(), excludeHostSkills: z.boolean().default(false) }),
    ({ projectPaths, excludeHostSkills }, call) => ({
      paths: paths("skills", projectPaths, call).filter(({ scope }) => !excludeHostSkills || scope === "project"),
    }),
  ),
  "skills.config.setDisabledSkills": method(
    () => z.object({ disabledSkills: z.array(z.string()) }),
    async ({ disabledSkills: names }, call) =>
      changeOwnSettings(hostOf(call), { disabledSkills: names.length > 0 ? names : null }),
  ),
  "skills.config.setSkillDisabled": method(
    () => z.object({ name: z.string(), disabled: z.boolean() }),
    async ({ name, disabled }, call) => {
      const others = disabledSkills(call).filter((other) => other !== name);
      const names = disabled ? [...others, name] : others;
      await changeOwnSettings(hostOf(call), { disabledSkills: names.length > 0 ? names : null });
    },
  ),
  "hooks.discover": method(
    () => z.object({ ...folders(), excludeHostHooks: z.boolean().default(false) }),
    async ({ projectPaths, excludeHostHooks }, call) => {
      const found = await Promise.all(
        orHere(projectPaths, call).map(async (folder) => {
          const { hooks, notices } = await discoverIn(folder, hostOf(call));
          return { hooks: hooks.map((hook) => hookInfo(hook, folder)), notices };
        }),
      );
      const hooks = distinct(
        found.flatMap((one) => one.hooks),
        ({ id }) => id,
      );
      return {
        hooks: hooks.filter(({ origin }) => !excludeHostHooks || origin === "repository"),
        warnings: [...new Set(found.flatMap((one) => one.notices))],
        errors: [],
      };
    },
  ),
  "agents.discover": method(
    () => z.object({ ...folders(), excludeHostAgents: z.boolean().default(false) }),
    async ({ projectPaths, excludeHostAgents }, call) => {
      const found = await Promise.all(orHere(projectPaths, call).map((folder) => discoverIn(folder, hostOf(call))));
      const agents = found.flatMap((workspace) => workspace.agents.agents).filter(({ source }) => source !== "builtin");
      const wanted = agents.filter(({ source }) => !(excludeHostAgents && source === "user"));
      return {
        agents: distinct(wanted, ({ path, name }) => path ?? name).map((agent) =>
          describedAgent(agent, { includePrompt: true }),
        ),
      };
    },
  ),
  "agents.getDiscoveryPaths": method(
    () => z.object({ ...folders(), excludeHostAgents: z.boolean().default(false) }),
    ({ projectPaths, excludeHostAgents }, call) => ({
      paths: paths("agents", projectPaths, call).filter(({ scope }) => !excludeHostAgents || scope === "project"),
    }),
  ),
  "instructions.discover": method(
    () => z.object({ ...folders(), excludeHostInstructions: z.boolean().default(false) }),
    async ({ projectPaths, excludeHostInstructions }, call) => {
      const sources = await Promise.all(
        orHere(projectPaths, call).map(async (folder) => {
          const { instructions } = await discoverIn(folder, hostOf(call));
          return instructions.files
            .filter(({ scope }) => !(excludeHostInstructions && scope === "user"))
            .map(({ path, scope, content }) => ({
              id: path,
              label: path,
              sourcePath: path,
              content,
              type: scope === "user" ? "home" : "repo",
              location: scope === "user" ? "user" : "repository",
              ...(scope !== "user" && { projectPath: folder }),
            }));
        }),
      );
      return { sources: distinct(sources.flat(), ({ id }) => id) };
    },
  ),
  "instructions.getDiscoveryPaths": method(
    () => z.object({ ...folders(), excludeHostInstructions: z.boolean().default(false) }),
    ({ projectPaths, excludeHostInstructions }, call) => ({
      paths: [
        ...orHere(projectPaths, call).flatMap((folder) => [
          { path: join(folder, "AGENTS.md"), ...ofProject(folder), kind: "file", preferredForCreation: true },
          {
            path: join(folder, ".github/instructions"),
            ...ofProject(folder),
            kind: "directory",
            preferredForCreation: false,
          },
        ]),
        ...(excludeHostInstructions
          ? []
          : [
              {
                path: join(call.server.runtime.home, "instructions.md"),
                location: "user",
                kind: "file",
                preferredForCreation: true,
              },
            ]),
      ],
    }),
  ),
  "mcp.discover": method(
    () => z.object({ workingDirectory: z.string().optional() }),
    async ({ workingDirectory }, call) => {
      const { servers } = await discoverIn(workingDirectory ?? call.server.options.cwd, hostOf(call));
      const entries = [
        ...servers.servers.map((config) => ({ config, enabled: true })),
        ...servers.disabled.map(({ config }) => ({ config, enabled: false })),
      ];
      return {
        servers: entries.map(({ config: { name, transport, scope }, enabled }) => ({
          name,
          type: transport.type,
          source: scope === "project" ? "workspace" : scope === "plugin" ? "plugin" : "user",
          enabled,
        })),
      };
    },
  ),
  "mcp.config.list": method(noParams, (_, call) => ({ servers: ownServers(hostOf(call)).entries() })),
  "mcp.config.add": method(serverEntry, ({ name, config }, call) => ownServers(hostOf(call)).set(name, config, "add")),
  "mcp.config.update": method(serverEntry, ({ name, config }, call) =>
    ownServers(hostOf(call)).set(name, config, "update"),
  ),
  "mcp.config.remove": method(
    () => z.object({ name: z.string() }),
    async ({ name }, call) => {
      await ownServers(hostOf(call)).remove(name);
    },
  ),
  "mcp.config.enable": method(names, ({ names: given }, call) => ownServers(hostOf(call)).setEnabled(given, true)),
  "mcp.config.disable": method(names, ({ names: given }, call) => ownServers(hostOf(call)).setEnabled(given, false)),
  "mcp.config.reload": method(noParams, () => undefined), // read on every request
};

function serverEntry() {
  return z.object({ name: z.string().min(1), config: z.looseObject({}) });
}
function names() {
  return z.object({ names: z.array(z.string()) });
}

const ofProject = (folder: string) => ({ location: "repository", projectPath: folder });
const orHere = (given: readonly string[], { server }: Call): readonly string[] =>
  given.length > 0 ? given : [server.options.cwd];

function paths(kind: "skills" | "agents", given: readonly string[], call: Call) {
  return distinct(
    orHere(given, call).flatMap((folder) => searchedFolders(kind, folder, hostOf(call))),
    ({ path }) => path,
  );
}

function disabledSkills(call: Call): readonly string[] {
  const { value } = readOwnSettings(hostOf(call)).disabledSkills ?? { value: null };
  return Array.isArray(value) ? value.map(String) : [];
}

type FoundSkill = Awaited<ReturnType<typeof discoverIn>>["skills"][number];

function skillEntry(skill: FoundSkill, disabled: ReadonlySet<string>): object {
  const { name, description, source, userInvocable, enabled, path, argumentHint } = skill;
  return {
    name,
    commandName: name.toLowerCase().replaceAll(" ", "-"),
    description,
    source,
    userInvocable,
    enabled: enabled && !disabled.has(name),
    path,
    ...defined({ argumentHint }),
  };
}

function distinct<T>(items: readonly T[], key: (item: T) => string): T[] {
  return [...new Map([...items].reverse().map((item) => [key(item), item])).values()].reverse();
}

type Hook = Awaited<ReturnType<typeof discoverIn>>["hooks"][number];

/** A listed hook would run. Hooks of untrusted folders are not listed. */
function hookInfo({ point, source }: Hook, folder: string) {
  const { file, index, owner, plugin, scope } = source;
  const origin = plugin ? "plugin" : scope === "policy" ? "policy" : owner === "project" ? "repository" : "user";
  const where = origin === "repository" ? { projectPath: folder } : {};
  return { id: `${file}#${index}`, hookType: point, origin, source: file, ...where, enabled: true };
}
