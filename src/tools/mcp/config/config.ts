/**
 * Resolves the MCP servers of a session from flags, the host program, plugins, the project and the user. The first
 * source that names a server wins. An invalid entry is skipped with a notice. Entries of a project or plugin are
 * untrusted until approved, and see only variables that were released to them.
 */
import { join } from "node:path";
import { isObject, jsonErrorPosition, parseJson } from "../../../lib/json.ts";
import { childEnvironment } from "../../../lib/node/child-environment.ts";
import { readSmallFile } from "../../../lib/node/small-file.ts";
import type { ItemTrust, PinnedItem } from "../../../lib/pinned-item.ts";
import { TroupeError } from "../../../protocol/errors.ts";
import type { McpServerConfig } from "../server.ts";
import { type EntryOrigin, fillIn, readEntry } from "./config-entry.ts";
import { MAX_CONFIG_BYTES, projectFiles, USER_FILE } from "./config-files.ts";
import type { McpNotice } from "./config-notice.ts";
import { pinnedItem, shownServer } from "./config-pin.ts";
import type { Variables } from "./config-variables.ts";

export type TrustCheck = (item: PinnedItem<"mcp">) => ItemTrust;

export interface ServerSources {
  readonly stateRoot: string;
  readonly cwd: string;
  readonly gitRoot?: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Called for every entry of the project. Without it no entry of the project is used. */
  readonly trust?: TrustCheck;
  /** False: use only servers from flags, the program and plugins. */
  readonly discovered?: boolean;
  /** Values of `--additional-mcp-config`: JSON, or `@file`. Later ones win. */
  readonly flags?: readonly string[];
  /** `mcpServers` of the host program; values are literal, without variables. */
  readonly program?: Readonly<Record<string, unknown>>;
  /** Servers that come with the session's identity; lowest precedence. */
  readonly builtin?: Readonly<Record<string, unknown>>;
  /** Servers of enabled plugins. Earlier ones win. */
  readonly plugins?: readonly PluginServers[];
  /** `mcpServers` of settings files; a project's are treated as project servers. Earlier ones win. */
  readonly settings?: readonly SettingsServers[];
  /** Names from settings and `--disable-mcp-server`; a project may add to them. */
  readonly disabled?: readonly string[];
  /** Names from the user's settings that are enabled even if their entry or `mcp-config.json` disables them. */
  readonly enabled?: readonly string[];
  /** `mcpVariables` of the user's settings: further variables that projects and plugins may use. */
  readonly variables?: readonly string[];
}

interface PluginServers {
  readonly name: string;
  readonly folder: string;
  /** Files, and servers in the manifest itself. */
  readonly parts: readonly (
    | { readonly kind: "file"; readonly path: string }
    | { readonly kind: "inline"; readonly value: Readonly<Record<string, unknown>> }
  )[];
  /** Such as CLAUDE_PLUGIN_ROOT: usable in its entries and set for its programs. */
  readonly variables?: Readonly<Record<string, string>>;
}

interface SettingsServers {
  readonly scope: "user" | "project";
  readonly source: string;
  readonly folder: string;
  readonly servers: Readonly<Record<string, unknown>>;
}

/** A configured server that is not used. */
interface UnusedServer {
  /** As written, with unexpanded variables. */
  readonly config: McpServerConfig;
  readonly reason: "disabled" | "untrusted" | "new" | "changed";
  readonly item: PinnedItem<"mcp">;
}

export interface ResolvedServers {
  readonly servers: readonly McpServerConfig[];
  /** The same servers with unexpanded variables, for display and trust. */
  readonly written: readonly McpServerConfig[];
  readonly disabled: readonly UnusedServer[];
  readonly notices: readonly McpNotice[];
}

const MAX_SERVERS = 100;

/** Throws a usage error for an invalid flag; every other problem becomes a notice. */
export function resolveServers(sources: ServerSources): ResolvedServers {
  const notices: McpNotice[] = [];
  const servers = new Map<string, McpServerConfig>();
  const written: McpServerConfig[] = [];
  const unused: UnusedServer[] = [];
  const user = readMap({ source: join(sources.stateRoot, USER_FILE), notices });
  const disabled = disabledNames(sources, user);
  for (const { config, off } of candidates(groups(sources, user.entries, notices), notices)) {
    const { name, source } = config;
    const earlier = servers.get(name) ?? unused.find((other) => isHiding(other, name))?.config;
    if (earlier) {
      notices.push(...shadowNotices(earlier, config));
      continue;
    }
    const item = pinnedItem(config);
    const isOff = disabled.has(name) || (off && !sources.enabled?.includes(name));
    const reason = isOff ? "disabled" : distrust(sources, item, config);
    if (reason !== undefined) {
      unused.push({ config, reason, item });
      if (reason !== "disabled") notices.push(distrustNotice(config, reason));
      continue;
    }
    const isAsMeant = config.scope === "program" || config.scope === "builtin";
    const filled = isAsMeant ? config : fillIn(config, variablesFor(config, sources));
    if ("message" in filled) report(filled, config.scope, notices);
    else if (servers.size >= MAX_SERVERS) report({ source, server: name, message: TOO_MANY }, config.scope, notices);
    else {
      servers.set(name, withPluginVariables(filled, sources));
      written.push(config);
    }
  }
  return { servers: [...servers.values()], written, disabled: unused, notices };
}

const TOO_MANY = `only ${MAX_SERVERS} servers can be used`;

/** A disabled server stays off, even if another source names it. */
const isHiding = ({ reason, config }: UnusedServer, name: string): boolean =>
  reason === "disabled" && config.name === name;

function disabledNames({ enabled = [], disabled = [] }: ServerSources, user: ServerMap): ReadonlySet<string> {
  const kept = textList(user.extra.disabledMcpServers).filter((name) => !enabled.includes(name));
  return new Set([...kept, ...disabled]);
}

/** Yields every valid entry, highest precedence first. */
function* candidates(all: readonly Group[], notices: McpNotice[]) {
  for (const { origin, entries } of all) {
    for (const [name, entry] of Object.entries(entries)) {
      const read = readEntry(name, entry, origin);
      for (const notice of read.kind === "refused" ? [read.notice] : read.notices)
        report(notice, origin.scope, notices);
      if (read.kind === "server") yield read;
    }
  }
}

function report(notice: McpNotice, scope: McpServerConfig["scope"], notices: McpNotice[]): void {
  if (scope === "flag") throw flagProblem(notice);
  notices.push(notice);
}

interface Group {
  readonly origin: EntryOrigin;
  readonly entries: Readonly<Record<string, unknown>>;
}

/** Returns all sources of servers, highest precedence first. */
function groups(sources: ServerSources, user: Group["entries"], notices: McpNotice[]): Group[] {
  const { cwd, stateRoot } = sources;
  const flags = (sources.flags ?? []).map((value) => ({
    origin: { scope: "flag", source: FLAG, folder: cwd } as const,
    entries: flagEntries(value),
  }));
  const { discovered = true } = sources;
  const project = (discovered ? projectFiles(cwd, sources.gitRoot) : []).map(({ path, folder }) => ({
    origin: { scope: "project", source: path, folder } as const,
    entries: readMap({ source: path, notices }).entries,
  }));
  const settings = (discovered ? (sources.settings ?? []) : []).map(({ servers: entries, ...origin }) => ({
    origin,
    entries,
  }));
  return [
    ...flags.reverse(),
    { origin: { scope: "program", source: "the program", folder: cwd }, entries: sources.program ?? {} },
    ...(sources.plugins ?? []).flatMap((plugin) => pluginGroups(plugin, notices)),
    ...project,
    ...settings.filter(({ origin }) => origin.scope === "project"),
    { origin: { scope: "user", source: join(stateRoot, USER_FILE), folder: cwd }, entries: discovered ? user : {} },
    ...settings.filter(({ origin }) => origin.scope === "user"),
    { origin: { scope: "builtin", source: "built in", folder: cwd }, entries: sources.builtin ?? {} },
  ];
}

/** A plugin may omit the "mcpServers" object around its servers. */
function pluginGroups({ name, folder, parts }: PluginServers, notices: McpNotice[]): Group[] {
  return parts.map((part) => {
    const source = part.kind === "file" ? part.path : join(folder, "plugin.json");
    const { entries, extra } = part.kind === "file" ? readMap({ source, notices }) : { entries: {}, extra: part.value };
    const isBare = extra.mcpServers === undefined && extra.servers === undefined;
    const named = isObject(extra.mcpServers) ? extra.mcpServers : entries;
    return { origin: { scope: "plugin", source, folder, pluginName: name }, entries: isBare ? extra : named };
  });
}

const FLAG = "--additional-mcp-config";

function flagEntries(value: string): Readonly<Record<string, unknown>> {
  const problem = (message: string): TroupeError =>
    new TroupeError("usage", `${FLAG}: ${message}`, { hint: FLAG_HINT });
  if (!value.startsWith("@")) return mapOf(value, (message) => problem(`the value ${message}`)).entries;
  const path = value.slice(1);
  const file = readSmallFile(path, { maxBytes: MAX_CONFIG_BYTES });
  if (file.kind === "missing") throw problem(`there is no file ${path}.`);
  if (file.kind === "refused") throw problem(`${path} ${file.reason}.`);
  return mapOf(file.text, (message) => problem(`${path} ${message}`)).entries;
}

const FLAG_HINT = `Give {"mcpServers": {"name": {"command": "…"}}}, or @file.json.`;

const flagProblem = ({ server, field, message }: McpNotice): TroupeError =>
  new TroupeError("usage", `${FLAG}: ${[server, field].filter(Boolean).join(".")}: ${message}.`);

interface ServerMap {
  readonly entries: Readonly<Record<string, unknown>>;
  /** The whole object. */
  readonly extra: Readonly<Record<string, unknown>>;
}

function readMap({ source, notices }: { source: string; notices: McpNotice[] }): ServerMap {
  const file = readSmallFile(source, { maxBytes: MAX_CONFIG_BYTES });
  if (file.kind === "missing") return { entries: {}, extra: {} };
  try {
    if (file.kind === "refused") throw new Problem(file.reason);
    return mapOf(file.text, (message) => new Problem(message));
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    notices.push({ source, message: error.message });
    return { entries: {}, extra: {} };
  }
}

class Problem extends Error {}

/** Does not pass on the parser's message, which may quote the file. */
function mapOf(text: string, problem: (message: string) => Error): ServerMap {
  const json = parseJson(text);
  if (!json.ok) throw problem(`is not JSON${jsonErrorPosition(text)}.`);
  const whole: unknown = json.value;
  const entries = isObject(whole) ? (whole.mcpServers ?? whole.servers ?? {}) : undefined;
  if (!isObject(whole) || !isObject(entries)) throw problem('holds no object "mcpServers".');
  return { entries, extra: whole };
}

const textList = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];

function distrust({ trust }: ServerSources, item: PinnedItem<"mcp">, { scope }: McpServerConfig) {
  if (scope !== "project") return undefined;
  const answer = trust?.(item) ?? "untrusted";
  return answer === "approved" ? undefined : answer;
}

function distrustNotice(config: McpServerConfig, reason: "untrusted" | "new" | "changed"): McpNotice {
  const why = {
    untrusted: "the folder is not trusted",
    new: "it is not approved yet",
    changed: "it has changed since it was approved",
  }[reason];
  const how = reason === "untrusted" ? "" : `; to use it: troupe mcp approve ${config.name}`;
  const { source, name: server } = config;
  return { source, server, message: `not used, because ${why}${how}. It would use: ${shownServer(config)}` };
}

/** Notifies the user when their server is replaced by one of a project or plugin. */
function shadowNotices(winner: McpServerConfig, loser: McpServerConfig): McpNotice[] {
  const isSurprise = loser.scope === "user" && (winner.scope === "project" || winner.scope === "plugin");
  if (!isSurprise) return [];
  return [{ source: winner.source, server: winner.name, message: `replaces the server in ${loser.source}` }];
}

/**
 * The user's entries see the real environment. Others see only variables without secrets, and those that were released
 * to them.
 */
function variablesFor({ scope, pluginName }: McpServerConfig, sources: ServerSources): Variables {
  const { environment, variables = [], plugins = [] } = sources;
  const isOwn = scope !== "project" && scope !== "plugin";
  const own = plugins.find((plugin) => scope === "plugin" && plugin.name === pluginName)?.variables ?? {};
  const harmless = isOwn ? environment : { ...childEnvironment(environment), ...own };
  return (name) => {
    const isGiven = isOwn || (variables.includes(name) && !Object.hasOwn(own, name));
    const value = isGiven ? environment[name] : harmless[name];
    if (value !== undefined) return { kind: "value", value };
    return { kind: isGiven ? "unset" : "withheld" };
  };
}

/** Sets the plugin's variables in the environment of its programs, so that they can find its folder. */
function withPluginVariables(config: McpServerConfig, { plugins = [] }: ServerSources): McpServerConfig {
  const variables = plugins.find(({ name }) => name === config.pluginName)?.variables;
  const { transport } = config;
  if (config.scope !== "plugin" || variables === undefined || transport.type !== "stdio") return config;
  return { ...config, transport: { ...transport, environment: { ...variables, ...transport.environment } } };
}
