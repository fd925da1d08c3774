/** Parses one entry of `mcpServers`, and reports the field that is wrong. */

import { isAbsolute, resolve } from "node:path";
import * as z from "zod";
import { defined } from "../../../lib/defined.ts";
import { HOST_NOTATION, hostRule, MAX_PROGRAM_HOSTS } from "../../../lib/host-rule.ts";
import { isObject } from "../../../lib/json.ts";
import { steersLauncher } from "../../../lib/node/child-environment.ts";
import { clip, nearest, sanitise } from "../../../lib/text.ts";
import {
  DEFAULT_MCP_TIMEOUT_MS,
  type Deferral,
  type McpOAuthSettings,
  type McpScope,
  type McpServerConfig,
} from "../server.ts";
import type { McpNotice } from "./config-notice.ts";
import { expand, type Variables } from "./config-variables.ts";

export interface EntryOrigin {
  readonly scope: McpScope;
  readonly source: string;
  /** Base of relative folders in the entry. */
  readonly folder: string;
  readonly pluginName?: string;
}

export type ReadEntry =
  | { readonly kind: "server"; readonly config: McpServerConfig; readonly off: boolean; readonly notices: McpNotice[] }
  | { readonly kind: "refused"; readonly notice: McpNotice };

const SERVER_NAME = /^[A-Za-z0-9_.-]{1,64}$/;
const FORBIDDEN_KEYS = ["__proto__", "constructor", "prototype"];
const MAX_DEPTH = 32;
const MAX_TIMEOUT_MS = 24 * 60 * 60 * 1000;

/** Returns why the name of a server is invalid, or undefined. */
function nameProblem(name: string): string | undefined {
  if (FORBIDDEN_KEYS.includes(name)) return "this name is not allowed";
  return SERVER_NAME.test(name) ? undefined : "a name is 1 to 64 letters, digits, dots, dashes and underscores";
}

/** Variables are not expanded yet, so that the user approves the text as written. */
export function readEntry(name: string, entry: unknown, origin: EntryOrigin): ReadEntry {
  const at = { source: origin.source, server: clip(sanitise(name), 64) };
  const refused = (message: string, field?: string): ReadEntry => ({
    kind: "refused",
    notice: { ...at, ...defined({ field }), message },
  });
  const badName = nameProblem(name);
  if (badName !== undefined) return refused(badName);
  if (!isObject(entry)) return refused("an entry is an object with a command or a url");
  const forbidden = forbiddenKey(entry);
  if (forbidden !== undefined) return refused("this key is not allowed", forbidden);
  const parsed = Entry.safeParse(entry);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return refused(issue?.message ?? "not as expected", issue?.path.join("."));
  }
  const transport = transportOf(parsed.data, origin);
  if ("problem" in transport) return refused(transport.problem, transport.field);
  const isOwn = origin.scope !== "project" && origin.scope !== "plugin";
  if (parsed.data.sandbox !== undefined && !isOwn) return refused("only your own configuration may set it", "sandbox");
  const { tools, timeout, deferTools, filterMapping, sandbox, disabled, enabled } = parsed.data;
  return {
    kind: "server",
    off: disabled === true || enabled === false,
    notices: unknownFields(entry).map((field) => ({ ...at, ...field })),
    config: {
      name,
      scope: origin.scope,
      source: origin.source,
      transport,
      tools: tools ?? ["*"],
      timeoutMs: timeout ?? DEFAULT_MCP_TIMEOUT_MS,
      ...(deferTools !== undefined && { deferTools: deferral(deferTools) }),
      ...defined({ filterMapping, pluginName: origin.pluginName, sandbox }),
    },
  };
}

/** Returns the server with its variables expanded, or a notice for one that cannot be. */
export function fillIn(config: McpServerConfig, variables: Variables): McpServerConfig | McpNotice {
  const problems: McpNotice[] = [];
  const fill = (field: string, text: string): string => {
    const filled = expand(text, variables);
    if (filled.kind === "text") return filled.text;
    problems.push({ source: config.source, server: config.name, field, message: missingVariable(filled, config) });
    return "";
  };
  const fillAll = (field: string, values: Readonly<Record<string, string>>): Record<string, string> =>
    Object.fromEntries(Object.entries(values).map(([key, value]) => [key, fill(`${field}.${key}`, value)]));
  const { transport } = config;
  const filled: McpServerConfig["transport"] =
    transport.type === "stdio"
      ? {
          ...transport,
          command: fill("command", transport.command),
          args: transport.args.map((value, index) => fill(`args.${index}`, value)),
          environment: fillAll("env", transport.environment),
          ...(transport.cwd !== undefined && { cwd: fill("cwd", transport.cwd) }),
        }
      : { ...transport, url: fill("url", transport.url), headers: fillAll("headers", transport.headers) };
  const [problem] = problems;
  if (problem !== undefined) return problem;
  const bad = filled.type === "stdio" ? undefined : addressProblem(filled.url);
  const badHeader = filled.type === "stdio" ? undefined : headerProblem(filled.headers);
  if (bad !== undefined) return { source: config.source, server: config.name, field: "url", message: bad };
  if (badHeader !== undefined) return { source: config.source, server: config.name, ...badHeader };
  return { ...config, transport: filled };
}

function missingVariable({ name, reason }: { name: string; reason: "unset" | "withheld" }, config: McpServerConfig) {
  if (reason === "unset") return `the variable ${name} is not set`;
  const who = config.scope === "plugin" ? "a plugin" : "a project";
  return `the variable ${name} is not given to ${who}; to allow it, name it in mcpVariables of your own settings`;
}

const text = z.string().max(32_768);
const word = text.min(1, "must not be empty");
const host = z.string().refine((given) => hostRule(given) !== undefined, HOST_NOTATION);
const names = z.array(z.string().min(1).max(256)).max(1000);
const pairs = z.record(z.string().max(256), text);

const Entry = z.lazy(() =>
  z.object({
    type: z.enum(["local", "stdio", "http", "sse", "streamable-http"]).exactOptional(),
    command: word.exactOptional(),
    args: z.array(text).max(256).exactOptional(),
    env: pairs.exactOptional(),
    cwd: word.exactOptional(),
    hosts: z.array(host).max(MAX_PROGRAM_HOSTS).exactOptional(),
    url: word.exactOptional(),
    headers: pairs.exactOptional(),
    oauthClientId: word.exactOptional(),
    oauthClientMetadataUrl: z
      .url({ protocol: /^https$/ })
      .max(4096)
      .exactOptional(),
    oauthPublicClient: z.boolean().exactOptional(),
    oauthGrantType: z.enum(["authorization_code", "client_credentials"]).exactOptional(),
    tools: z.union([names, z.literal("*").transform(() => ["*"])]).exactOptional(),
    timeout: z.number().int().positive().max(MAX_TIMEOUT_MS).exactOptional(),
    deferTools: z.union([z.enum(["auto", "never", "always"]), z.boolean()]).exactOptional(),
    filterMapping: z.enum(["none", "markdown", "hidden_characters"]).exactOptional(),
    sandbox: z.literal("off").exactOptional(),
    disabled: z.boolean().exactOptional(),
    enabled: z.boolean().exactOptional(),
  }),
);
type Entry = z.infer<typeof Entry>;

/** Fields of other programs that have no meaning here. */
const SILENT_FIELDS = ["isDefaultServer", "description", "displayName", "version", "gallery", "id"];

function unknownFields(entry: Record<string, unknown>): { field: string; message: string }[] {
  const known = Object.keys(Entry.unwrap().shape);
  return Object.keys(entry)
    .filter((key) => !known.includes(key) && !SILENT_FIELDS.includes(key))
    .slice(0, 5)
    .map((key) => {
      const guess = nearest(key, known);
      const message = `there is no such setting, so it has no effect${guess ? `; did you mean "${guess}"?` : ""}`;
      return { field: clip(sanitise(key), 64), message };
    });
}

interface Problem {
  readonly problem: string;
  readonly field: string;
}

function transportOf(entry: Entry, origin: EntryOrigin): McpServerConfig["transport"] | Problem {
  const type = entry.type ?? (entry.command === undefined ? "http" : "stdio");
  if (entry.command !== undefined && entry.url !== undefined)
    return { problem: "give a command or a url, not both", field: "url" };
  if (type === "local" || type === "stdio") {
    if (entry.command === undefined) return { problem: "is missing", field: "command" };
    const badName = Object.keys(entry.env ?? {}).find((key) => !/^[A-Za-z_][A-Za-z0-9_.-]*$/.test(key));
    if (badName !== undefined) return { problem: "is not the name of a variable", field: `env.${clip(badName, 64)}` };
    const steering = origin.scope === "project" ? Object.keys(entry.env ?? {}).find(steersLauncher) : undefined;
    if (steering !== undefined) return { problem: "a project must not set it", field: `env.${steering}` };
    return {
      type: "stdio",
      command: entry.command,
      args: entry.args ?? [],
      environment: entry.env ?? {},
      ...(entry.hosts !== undefined && entry.hosts.length > 0 && { hosts: entry.hosts }),
      ...(entry.cwd !== undefined && { cwd: isPlain(entry.cwd) ? resolve(origin.folder, entry.cwd) : entry.cwd }),
    };
  }
  if (entry.url === undefined)
    return entry.type === undefined
      ? { problem: "an entry needs a command or a url", field: "command" }
      : { problem: "is missing", field: "url" };
  const badUrl = entry.url.includes("$") ? undefined : addressProblem(entry.url);
  if (badUrl !== undefined) return { problem: badUrl, field: "url" };
  const badHeader = headerProblem(entry.headers ?? {});
  if (badHeader !== undefined) return { problem: badHeader.message, field: badHeader.field };
  const oauth = oauthOf(entry);
  return {
    type: type === "sse" ? "sse" : "http",
    url: entry.url,
    headers: entry.headers ?? {},
    ...defined({ oauth }),
  };
}

/** A path that begins with a variable is only known after expansion. */
const isPlain = (path: string): boolean => !path.startsWith("$") && !isAbsolute(path);

function addressProblem(url: string): string | undefined {
  if (!URL.canParse(url)) return "must be an address such as https://host/mcp";
  const { protocol, username, password } = new URL(url);
  if (protocol !== "https:" && protocol !== "http:") return "must begin with https:// or http://";
  return username === "" && password === "" ? undefined : "must not contain a user name or password; use headers";
}

function headerProblem(headers: Readonly<Record<string, string>>): { field: string; message: string } | undefined {
  for (const [name, value] of Object.entries(headers)) {
    const field = `headers.${clip(sanitise(name), 64)}`;
    if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) return { field, message: "is not the name of a header" };
    if (/[^\t\u0020-\u007e\u0080-\u00ff]/.test(value))
      return { field, message: "contains characters that are not allowed in a header" };
  }
  return undefined;
}

function oauthOf(entry: Entry): McpOAuthSettings | undefined {
  const { oauthClientId: clientId, oauthPublicClient: publicClient, oauthGrantType: grantType } = entry;
  const { oauthClientMetadataUrl: clientMetadataUrl } = entry;
  if ([clientId, publicClient, grantType, clientMetadataUrl].every((value) => value === undefined)) return undefined;
  return defined({ clientId, clientMetadataUrl, publicClient, grantType });
}

function deferral(given: NonNullable<Entry["deferTools"]>): Deferral {
  if (typeof given === "string") return given;
  return given ? "always" : "never";
}

/** Returns the first key that could reach a prototype. Also rejects a value that is nested too deep to check. */
function forbiddenKey(value: unknown, depth = 0): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  if (depth > MAX_DEPTH) return "(nested too deeply)";
  for (const [key, inner] of Object.entries(value)) {
    const found = FORBIDDEN_KEYS.includes(key) ? key : forbiddenKey(inner, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}
