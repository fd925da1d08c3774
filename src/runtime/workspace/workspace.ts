/**
 * Loads everything that a folder adds to a session beside its files: settings, hooks, skills, plugins, MCP servers,
 * instructions and values for commands. Executable parts are used only in a trusted folder and as approved. Parts that
 * are left out cause a notice.
 */

import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { type AgentCatalog, type AgentSources, loadAgents } from "../../catalog/agents/agents.ts";
import { rememberRemote } from "../../catalog/agents/agents-remote-memory.ts";
import { workspaceEnvironment } from "../../catalog/dotenv.ts";
import type { ExtensionsFound } from "../../catalog/extensions.ts";
import { digestOf } from "../../catalog/pins.ts";
import { loadPlugins, type Plugin, pluginEnvironment } from "../../catalog/plugins/plugins.ts";
import { type LoadedSettings, loadSettings } from "../../catalog/settings/settings.ts";
import { readTrust, type Trust } from "../../catalog/trust.ts";
import { type Instructions, readInstructions } from "../../context/instructions.ts";
import { skillLocations } from "../../context/skills/locations.ts";
import type { Skill } from "../../context/skills/skill.ts";
import { discoverSkills } from "../../context/skills/skills.ts";
import { workingDirectory } from "../../context/working-directory.ts";
import type { HookDefinition, HookNotice } from "../../hooks/hooks.ts";
import { defined } from "../../lib/defined.ts";
import type { PinnedItem } from "../../lib/pinned-item.ts";
import type { WorkingDirectory } from "../../protocol/event.ts";
import { type FlagSources, type Flags, flagsFrom, isNamed } from "../../protocol/flags.ts";
import { type ResolvedServers, resolveServers, type ServerSources } from "../../tools/mcp/config/config.ts";
import { noticeText } from "../../tools/mcp/config/config-notice.ts";
import { mayReadBy } from "../permissions/policy.ts";

export interface WorkspaceRequest {
  /** Trusts the folder for this run, as it is. */
  readonly trustFolder?: boolean;
  /**
   * "given": agents, skills, MCP servers, plugins and project hooks come only from this request; nothing is searched in
   * the folder or the user's own folders. Settings, instructions and the user's hooks apply in any case.
   */
  readonly discovery?: "all" | "given";
  /** With "given": uses the project's hooks nevertheless. */
  readonly fileHooks?: boolean;
  /** False: no skills, not even named ones. */
  readonly skills?: boolean;
  readonly pluginDirectories?: readonly string[];
  readonly skillDirectories?: readonly string[];
  readonly disabledSkills?: readonly string[];
  readonly instructionDirectories?: readonly string[];
  readonly customInstructions?: boolean;
  /** Values of `--additional-mcp-config`. */
  readonly mcpConfig?: readonly string[];
  /** Servers of the embedding program. */
  readonly mcpServers?: Readonly<Record<string, unknown>>;
  /** Servers that come with the session's identity. Any other server of the same name replaces them. */
  readonly builtinServers?: Readonly<Record<string, unknown>>;
  readonly disabledMcpServers?: readonly string[];
  /** Agents of the embedding program. */
  readonly agents?: readonly unknown[];
  readonly excludedBuiltinAgents?: readonly string[];
  readonly flags?: NonNullable<FlagSources["program"]>;
  /** Hooks of the embedding program. */
  readonly hooks?: readonly HookDefinition[];
  /** Also searches for extensions. */
  readonly extensions?: boolean;
}

export interface Workspace {
  /** The folder whose trust decides. */
  readonly root: string;
  readonly trust: Trust;
  readonly settings: LoadedSettings;
  /** Enabled feature flags. */
  readonly flags: Flags;
  readonly plugins: readonly Plugin[];
  readonly hooks: readonly HookDefinition[];
  readonly skills: readonly Skill[];
  readonly instructions: Instructions;
  readonly agents: AgentCatalog;
  readonly agentSources: AgentSources;
  readonly servers: ResolvedServers;
  readonly serverSources: ServerSources;
  /** Extensions that may run; empty unless requested. */
  readonly extensions: ExtensionsFound;
  /** Only for the commands that the agent runs in the folder. */
  readonly commandEnvironment: Readonly<Record<string, string>>;
  readonly notices: readonly string[];
}

interface WorkspaceInputs {
  readonly context: WorkingDirectory;
  readonly stateRoot: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Replaces the user's stored trust in the folder. */
  readonly trust?: Trust;
  /** The run's `--deny-tool` rules: files they deny to read are not shown to a model. */
  readonly denyTools?: readonly string[];
  /** Receives notices after the start. */
  readonly onNotice?: (notice: string) => void;
}

export async function openWorkspace(request: WorkspaceRequest, inputs: WorkspaceInputs): Promise<Workspace> {
  const { context, stateRoot } = inputs;
  const root = context.gitRoot ?? context.cwd;
  const book = readTrust(stateRoot);
  const trustOf = (trustedFolders: readonly string[]): Trust =>
    inputs.trust ?? book.of(root, { forRun: request.trustFolder ?? false, trustedFolders });
  const settings = loadSettings({
    stateRoot,
    cwd: context.cwd,
    ...defined({ gitRoot: context.gitRoot }),
    isTrusted: (_, user) => trustOf(user.trustedFolders ?? []).state !== "none",
  });
  const trust = trustOf(settings.effective.trustedFolders ?? []);
  const { flags, notices: flagNotices } = flagsFrom({
    settings: settings.effective.enabledFeatureFlags ?? {},
    environment: inputs.environment,
    ...defined({ program: request.flags }),
  });
  const mayRead = mayReadBy(inputs.denyTools ?? [], settings.rules, context.cwd);
  const parts = { request, inputs, root, trust, settings, flags, mayRead };
  const { plugins, notices: pluginNotices } = await pluginsOf(parts);
  const sourcesOfAgents = agentSources(parts, plugins);
  const [hooks, skills, instructions, agents] = await Promise.all([
    hooksOf(parts, plugins),
    skillsOf(parts, plugins),
    instructionsOf(parts),
    loadAgents(sourcesOfAgents),
  ]);
  const extensions = await extensionsOf(parts, plugins);
  const sources = serverSources(parts, plugins);
  const servers = resolveServers(sources);
  const secrets = settings.effective.sandbox?.allowEnvironmentFiles ? "given" : "withheld";
  const values = workspaceEnvironment({ folder: root, trust, secrets });
  return {
    root,
    trust,
    settings,
    flags,
    plugins,
    hooks: hooks.definitions,
    skills: skills.skills,
    instructions,
    agents,
    agentSources: sourcesOfAgents,
    servers,
    serverSources: sources,
    extensions,
    commandEnvironment: values.values,
    notices: [
      ...flagNotices,
      ...[...book.notices, ...settings.notices, ...values.notices].map(({ message }) => message),
      ...[...pluginNotices, ...skills.notices, ...agents.notices, ...extensions.notices].map(({ message }) => message),
      ...hooks.notices.map(({ file, message }) => `${file}: ${message}`),
      ...servers.notices.map((notice) => noticeText(notice)),
      ...instructions.notices,
      ...(isGiven(request) ? [] : untrustedParts(trust, root)),
    ],
  };
}

const isGiven = ({ discovery }: WorkspaceRequest): boolean => discovery === "given";

interface Parts {
  readonly request: WorkspaceRequest;
  readonly inputs: WorkspaceInputs;
  readonly root: string;
  readonly trust: Trust;
  readonly settings: LoadedSettings;
  readonly flags: Flags;
  readonly mayRead: ((path: string) => boolean) | undefined;
}

function pluginsOf({ request, inputs, root, trust, settings }: Parts) {
  return loadPlugins({
    cwd: inputs.context.cwd,
    stateRoot: inputs.stateRoot,
    given: request.pluginDirectories ?? [],
    configured: settings.effective.pluginDirectories ?? [],
    onlyGiven: isGiven(request) || inputs.environment.COPILOT_PLUGIN_DIR_ONLY === "true",
    workspace: root,
    check: trust.check,
  });
}

async function hooksOf(parts: Parts, plugins: readonly Plugin[]) {
  const { request, inputs, root, trust, settings } = parts;
  const { context, stateRoot, environment } = inputs;
  if (!mayHaveHooks(parts, plugins)) return { definitions: [], notices: [] };
  const { loadHooks } = await import("../../hooks/load.ts");
  const ofProject = !isGiven(request) || request.fileHooks === true;
  const isUsed = ofProject && settings.disabledHooks === "none" && trust.state !== "none";
  const projectRoots = isUsed ? [...new Set([root, context.cwd])] : [];
  const loaded = await loadHooks({
    stateRoot,
    environment,
    projectRoots,
    plugins: plugins.map(({ root: folder, dataDirectory: data }) => ({ root: folder, data, owner: "user" as const })),
    settings: [
      ...settings.hooks
        .filter(({ scope }) => scope === "user" || ofProject)
        .map(({ file, scope, value }) => ({
          file,
          scope: scope === "user" ? ("user" as const) : ("project" as const),
          hooks: value,
        })),
      ...(settings.disabledHooks === "all"
        ? [{ file: "settings", scope: "user" as const, disableAllHooks: true }]
        : []),
    ],
    program: request.hooks ?? [],
  });
  const unapproved: HookNotice[] = [];
  const definitions = loaded.definitions.filter((hook) => {
    if (hook.source.owner !== "project") return true;
    const verdict = trust.check(hookItem(hook));
    if (verdict === "approved") return true;
    const why = verdict === "changed" ? "has changed since it was approved" : "was never approved";
    unapproved.push({
      file: hook.source.file,
      message: `the hook "${hook.pinned.shown}" ${why}; it does not run. See: troupe trust`,
    });
    return false;
  });
  return { definitions, notices: [...loaded.notices, ...unapproved] };
}

const HOOK_POLICIES = ["/etc/troupe/policy.d", "/etc/github-copilot/policy.d"];
const HOOK_PLACES = [".troupe/hooks", ".github/hooks", ".claude/settings.json", ".claude/settings.local.json"];

/** Most users have no hooks; then their loader is not even imported. */
function mayHaveHooks({ request, inputs, root, settings }: Parts, plugins: readonly Plugin[]): boolean {
  if ((request.hooks?.length ?? 0) > 0 || settings.hooks.length > 0 || plugins.length > 0) return true;
  const folders = new Set([root, inputs.context.cwd]);
  const hookFiles = [...folders].flatMap((folder) => HOOK_PLACES.map((name) => join(folder, name)));
  return [...HOOK_POLICIES, join(inputs.stateRoot, "hooks"), ...hookFiles].some((path) => existsSync(path));
}

function hookItem({ pinned }: HookDefinition): PinnedItem {
  return { kind: "hook", id: pinned.id, digest: digestOf(pinned.value), shown: pinned.whole };
}

function agentSources(parts: Parts, plugins: readonly Plugin[]): AgentSources {
  const { request, inputs, root, trust, settings, flags } = parts;
  const { context, stateRoot } = inputs;
  const { subagents } = settings.effective;
  return {
    cwd: context.cwd,
    ...(context.gitRoot !== undefined && { gitRoot: root }),
    stateRoot,
    home: homedir(),
    plugins,
    discovered: !isGiven(request),
    program: request.agents ?? [],
    ...remoteSource(inputs),
    disabled: subagents?.disabledSubagents ?? [],
    overrides: subagents?.agents ?? {},
    excludedBuiltins: [
      ...(request.excludedBuiltinAgents ?? []),
      ...(flags.has("RUBBER_DUCK_AGENT") ? [] : ["rubber-duck"]),
    ],
    optional: [
      ...(flags.has("COPILOT_SUBCONSCIOUS") ? ["rem-agent", "subconscious-agent"] : []),
      ...(flags.has("GITHUB_CONTEXT_SIDEKICK_AGENT") ? ["github-context"] : []),
    ],
    check: trust.check,
  };
}

/** Uses only the user's environment variables: a folder decides neither the server nor the token. */
function remoteSource({ context, environment }: WorkspaceInputs): Pick<AgentSources, "remote" | "forgetRemote"> {
  const { TROUPE_AGENTS_URL: baseUrl, TROUPE_AGENTS_TOKEN: token } = environment;
  const { repository } = context;
  if (!baseUrl || !token || repository === undefined) return {};
  return rememberRemote(async (signal) => {
    const { remoteAgents } = await import("../../catalog/agents/agents-remote.ts");
    return remoteAgents({ baseUrl, token, repository })(signal);
  });
}

async function skillsOf({ request, inputs, trust, settings, mayRead }: Parts, plugins: readonly Plugin[]) {
  const { context, stateRoot, environment } = inputs;
  if (request.skills === false) return { skills: [], notices: [] };
  const found = await discoverSkills({
    locations: skillLocations({
      cwd: context.cwd,
      ...defined({ gitRoot: context.gitRoot }),
      stateRoot,
      home: homedir(),
      environment,
      plugins,
      discovered: !isGiven(request),
      skillDirectories: [...(request.skillDirectories ?? []), ...(settings.effective.skillDirectories ?? [])],
    }),
    disabled: [...(request.disabledSkills ?? []), ...(settings.effective.disabledSkills ?? [])],
    check: trust.check,
  });
  const isShown = ({ scope, path }: Skill): boolean => scope === "user" || mayRead?.(path) !== false;
  return { ...found, skills: found.skills.filter(isShown) };
}

function instructionsOf({ request, inputs, settings, mayRead }: Parts): Promise<Instructions> {
  const { context, stateRoot, environment, onNotice } = inputs;
  return readInstructions({
    context,
    stateRoot,
    environment,
    instructionDirectories: [
      ...(request.instructionDirectories ?? []),
      ...(settings.effective.instructionDirectories ?? []),
    ],
    enabled: request.customInstructions ?? settings.effective.customInstructions ?? true,
    ...defined({ mayRead, onNotice }),
  });
}

function serverSources({ request, inputs, root, trust, settings }: Parts, plugins: readonly Plugin[]): ServerSources {
  const { context, stateRoot, environment } = inputs;
  return {
    stateRoot,
    cwd: context.cwd,
    ...defined({ gitRoot: context.gitRoot }),
    environment,
    ...(trust.state !== "none" && { trust: trust.check }),
    discovered: !isGiven(request),
    flags: request.mcpConfig ?? [],
    ...defined({ program: request.mcpServers, builtin: request.builtinServers }),
    plugins: plugins.map((plugin) => ({
      name: plugin.name,
      folder: plugin.root,
      parts: plugin.mcpServers,
      variables: pluginEnvironment(plugin, root),
    })),
    settings: settings.mcpServers.map(({ scope, file, folder, value }) => ({
      scope: scope === "user" ? ("user" as const) : ("project" as const),
      source: file,
      folder,
      servers: value,
    })),
    disabled: [...(request.disabledMcpServers ?? []), ...(settings.effective.disabledMcpServers ?? [])],
    enabled: settings.effective.enabledMcpServers ?? [],
    variables: settings.effective.mcpVariables ?? [],
  };
}

/** Finds extensions. Setting the flag by name for the program vouches for the folder's extensions. */
async function extensionsOf(parts: Parts, plugins: readonly Plugin[]): Promise<ExtensionsFound> {
  const { request, inputs, root, trust, flags } = parts;
  if (!request.extensions || !flags.has("EXTENSIONS")) return { extensions: [], notices: [] };
  const { findExtensions } = await import("../../catalog/extensions.ts");
  const sources = { environment: inputs.environment, ...defined({ program: request.flags }) };
  return findExtensions({
    root,
    stateRoot: inputs.stateRoot,
    plugins,
    check: trust.check,
    isVouchedFor: inputs.trust === undefined && isNamed("EXTENSIONS", sources),
  });
}

/** Returns everything in a folder that could run or decide something, for review. */
export async function executableItems(
  folder: string,
  inputs: Pick<WorkspaceInputs, "stateRoot" | "environment">,
): Promise<readonly PinnedItem[]> {
  const items = new Map<string, PinnedItem>();
  const check = (item: PinnedItem): "approved" => {
    items.set(`${item.kind}\n${item.id}`, item);
    return "approved";
  };
  // Callers of `check` pass complete items.
  const trust = { state: "trusted", check: check as Trust["check"] } as const;
  await openWorkspace({ extensions: true }, { ...inputs, context: workingDirectory(folder), trust });
  return [...items.values()];
}

const EXECUTABLE = [
  ".troupe/hooks",
  ".github/hooks",
  ".claude/settings.json",
  ".claude/settings.local.json",
  ".mcp.json",
  ".github/mcp.json",
  ".troupe/mcp.json",
];

/** Returns one notice that explains unused hooks and servers. Settings and skills report their own. */
function untrustedParts(trust: Trust, root: string): string[] {
  if (trust.state !== "none") return [];
  const found = EXECUTABLE.filter((name) => existsSync(join(root, name)));
  if (found.length === 0) return [];
  return [
    `This folder is not trusted, so ${found.join(", ")} ${found.length === 1 ? "is" : "are"} not used. ` +
      "To use what it brings: troupe trust (asks first), or --trust-folder for one run.",
  ];
}
