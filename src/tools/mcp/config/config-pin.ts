/** Identifies a configured server for approval and recognition. */
import { createHash } from "node:crypto";
import { NO_NETWORK } from "../../../lib/host-rule.ts";
import { type PinnedItem, shownFacts } from "../../../lib/pinned-item.ts";
import { clip, sanitise } from "../../../lib/text.ts";
import type { McpServerConfig } from "../server.ts";
import { isReference, namedIn } from "./config-variables.ts";

/**
 * Computed from the entry as written. The digest includes the values, since a variable such as NODE_OPTIONS is code.
 */
export function pinnedItem(config: McpServerConfig): PinnedItem<"mcp"> {
  const { transport, sandbox } = config;
  const hosts = transport.type === "stdio" ? (transport.hosts ?? []) : [];
  const whole =
    transport.type === "stdio"
      ? ["stdio", transport.command, transport.args, sorted(transport.environment), transport.cwd ?? null]
      : [transport.type, transport.url, sorted(transport.headers), sorted({ ...transport.oauth })];
  return {
    kind: "mcp",
    id: `${config.source}#${config.name}`,
    digest: digest([...whole, sandbox ?? null, ...(hosts.length > 0 ? [hosts] : [])]),
    shown: wholeServer(transport),
  };
}

/** Returns the identity of a server without the values of its secrets; tool definitions are stored under it. */
export function serverKey({ name, transport }: McpServerConfig): string {
  const identity =
    transport.type === "stdio"
      ? [transport.command, transport.args, Object.keys(transport.environment).sort(), transport.cwd ?? null]
      : [transport.type, transport.url, Object.keys(transport.headers).sort()];
  return `${name}:${digest(identity).slice(0, 32)}`;
}

/**
 * Returns the full entry for the approval question, one fact per line: first the command, its hosts and the variables
 * it names. Nothing is cut or masked: a project's entry is not secret, and any part may be code.
 */
function wholeServer(transport: McpServerConfig["transport"]): string {
  if (transport.type !== "stdio") {
    const { type, url, headers, oauth = {} } = transport;
    return shownFacts([
      `address (${type}): ${url}`,
      `your variables that are sent to it: ${references([url, ...Object.values(headers)])}`,
      ...Object.entries(headers).map(([name, value]) => `header ${name}: ${value}`),
      ...Object.entries(oauth).map(([name, value]) => `sign-in ${name}: ${value}`),
    ]);
  }
  const { command, args, environment, cwd, hosts = [] } = transport;
  const values = Object.values(environment);
  return shownFacts([
    `program: ${command}`,
    ...args.map((value) => `argument: ${value}`),
    `hosts: ${hosts.join(", ") || NO_NETWORK}`,
    `variables: ${Object.keys(environment).join(", ") || "none of its own"}`,
    `your variables that it refers to: ${references([command, ...args, ...values, ...(cwd === undefined ? [] : [cwd])])}`,
    ...(cwd === undefined ? [] : [`in: ${cwd}`]),
    ...Object.entries(environment).map(([name, value]) => `variable ${name}: ${value}`),
  ]);
}

const references = (texts: readonly string[]): string => [...new Set(texts.flatMap(namedIn))].join(", ") || "none";

/** Returns one line for lists and notices: the command or address, with the names of its variables or headers. */
export function shownServer({ transport }: McpServerConfig): string {
  if (transport.type !== "stdio") {
    const headers = Object.keys(transport.headers);
    return line([maskedUrl(transport.url), ...(headers.length > 0 ? [`(headers: ${headers.join(", ")})`] : [])]);
  }
  const environment = Object.keys(transport.environment);
  return line([
    [transport.command, ...maskedArguments(transport.args)].map(quoted).join(" "),
    ...(transport.cwd === undefined ? [] : [`(in ${transport.cwd})`]),
    ...(environment.length > 0 ? [`(variables: ${environment.join(", ")})`] : []),
  ]);
}

const MASK = "***";
const SECRET_OPTION = /^-{1,2}[\w-]*(?:key|token|secret|password|passwd|auth|bearer|credentials?)$/i;

/** Shows references and masks all other values, which may be secrets. */
export function maskedValues(values: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, isReference(value) ? value : MASK]));
}

export function maskedArguments(values: readonly string[]): string[] {
  return values.map((value, index) => {
    const [option = "", given] = splitOnce(value, "=");
    if (given !== undefined && SECRET_OPTION.test(option)) return `${option}=${isReference(given) ? given : MASK}`;
    const isSecret = SECRET_OPTION.test(values[index - 1] ?? "") && !value.startsWith("-");
    return isSecret && !isReference(value) ? MASK : value;
  });
}

/** Masks values in the query, which often contain keys. */
export function maskedUrl(url: string): string {
  const [address = "", query] = splitOnce(url, "?");
  if (query === undefined) return url;
  const shown = query.split("&").map((pair) => {
    const [name = "", value] = splitOnce(pair, "=");
    return value === undefined || isReference(value) ? pair : `${name}=${MASK}`;
  });
  return `${address}?${shown.join("&")}`;
}

function splitOnce(value: string, separator: string): [string, string?] {
  const at = value.indexOf(separator);
  return at < 0 ? [value] : [value.slice(0, at), value.slice(at + separator.length)];
}

const MAX_SHOWN_CHARACTERS = 4000;

/** Makes hidden characters visible and joins lines, so that no part can look like another line. */
function line(parts: readonly string[]): string {
  return clip(sanitise(parts.join(" ")).replace(/\s*\n\s*/g, " ⏎ "), MAX_SHOWN_CHARACTERS);
}

const quoted = (value: string): string => (/^[\w@%+=:,./$*{}-]+$/.test(value) ? value : JSON.stringify(value));

const sorted = (values: Readonly<Record<string, unknown>>): [string, unknown][] =>
  Object.entries(values).sort(([one], [other]) => (one < other ? -1 : 1));

const digest = (value: unknown): string => createHash("sha256").update(JSON.stringify(value)).digest("hex");
