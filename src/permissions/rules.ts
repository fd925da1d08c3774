/**
 * Parses rules: `kind` or `kind(argument)`. A rule that could never match is an error, because a silent no-op rule
 * gives a false sense of protection.
 */
import { defined } from "../lib/defined.ts";
import { clip, nearest } from "../lib/text.ts";
import { isPathPattern } from "./path-scope.ts";
import { parseUrlPattern, type UrlPattern } from "./urls.ts";

export type RuleEffect = "allow" | "deny" | "ask";

/** The origin of a rule. */
export interface RuleSource {
  /** `--allow-tool`, or the path of a file. */
  readonly name: string;
  readonly line?: number;
}

type RuleTarget =
  /** Without words: every command. With `stem`: the words are the start of a command. */
  | { readonly kind: "shell"; readonly words?: readonly string[]; readonly stem: boolean }
  | { readonly kind: "read" | "write"; readonly path?: string }
  | { readonly kind: "url"; readonly pattern?: UrlPattern }
  | { readonly kind: "memory" | "sandbox-off" }
  | { readonly kind: "mcp-sampling"; readonly server?: string }
  | { readonly kind: "agent"; readonly agent?: string }
  | { readonly kind: "mcp"; readonly server: string; readonly tool?: string }
  | { readonly kind: "custom-tool"; readonly tool: string };

export interface Rule {
  readonly text: string;
  readonly effect: RuleEffect;
  readonly source: RuleSource;
  readonly target: RuleTarget;
  /** Set when the rule names a built-in tool instead of a kind; it then applies to calls of that tool only. */
  readonly tool?: string;
}

/** Returns true when an allow rule names this tool of a server, not only the server. */
export function allowsByName(rules: readonly Rule[], tool: { serverName: string; toolName: string }): boolean {
  return rules.some(
    ({ effect, target }) =>
      effect === "allow" && target.kind === "mcp" && target.server === tool.serverName && target.tool === tool.toolName,
  );
}

/** Names that a rule may use besides the kinds. */
export interface RuleNames {
  /** Built-in tools that access something, with the kind of that access. */
  readonly tools: Readonly<Record<string, "shell" | "read" | "write" | "url" | "memory">>;
  readonly servers: readonly string[];
  readonly customTools: readonly string[];
}

export class RuleError extends Error {
  override readonly name = "RuleError";
  readonly source: RuleSource;

  constructor(text: string, source: RuleSource, problem: string) {
    super(`${showSource(source)}: the rule ${JSON.stringify(clip(text, 200))} cannot be used: ${problem}.`);
    this.source = source;
  }
}

const KINDS = [
  "shell",
  "read",
  "write",
  "url",
  "memory",
  "mcp",
  "mcp-sampling",
  "custom-tool",
  "agent",
  "sandbox-off",
] as const;
const MAX_RULE_LENGTH = 4096;
/** Leaves room for the path of the working directory, which is put before a pattern. */
const MAX_PATTERN = 400;

/** Parses a comma-separated list, as given in flags. Commas inside parentheses belong to the argument. */
export function parseRules(list: string, rule: { effect: RuleEffect; source: RuleSource }, names: RuleNames): Rule[] {
  return splitList(list).map((text) => parseRule(text, rule, names));
}

/** Throws a `RuleError` with the source of the rule, the problem and the closest known name. */
export function parseRule(text: string, rule: { effect: RuleEffect; source: RuleSource }, names: RuleNames): Rule {
  const trimmed = text.trim();
  const fail = (problem: string): never => {
    throw new RuleError(trimmed, rule.source, problem);
  };
  if (trimmed === "") fail("it is empty");
  if (trimmed.length > MAX_RULE_LENGTH) fail(`it is longer than ${MAX_RULE_LENGTH} characters`);
  if (/[\u0000-\u001f\u007f]/.test(trimmed)) fail("it holds a control character");
  const [, name = "", argumentText] = /^([^()]+?)\s*(?:\((.*)\))?$/s.exec(trimmed) ?? [];
  if (name === "" && /^[^()]+\([^)]*$/.test(trimmed)) fail("the closing ) is missing");
  if (name === "") fail("it must read kind or kind(argument), with one pair of parentheses around the argument");
  const argument = argumentText?.trim();
  if (argument === "") fail(`its argument is empty; write ${name} to mean all of that kind`);
  const target = targetOf(name, argument, names, fail);
  const tool = Object.hasOwn(names.tools, name) ? name : undefined;
  return { text: trimmed, effect: rule.effect, source: rule.source, target, ...defined({ tool }) };
}

/** Parses the value of `--allow-url` or `--deny-url`: an address without a kind. */
export function parseUrlRule(address: string, rule: { effect: RuleEffect; source: RuleSource }): Rule {
  const trimmed = address.trim();
  const pattern = parseUrlPattern(trimmed);
  if (typeof pattern === "string") throw new RuleError(trimmed, rule.source, pattern);
  return { text: `url(${trimmed})`, effect: rule.effect, source: rule.source, target: { kind: "url", pattern } };
}

/** Returns "settings.json:12" or "--deny-tool". */
export function showSource(source: RuleSource): string {
  return source.line === undefined ? source.name : `${source.name}:${source.line}`;
}

type Fail = (problem: string) => never;

function targetOf(name: string, argument: string | undefined, names: RuleNames, fail: Fail): RuleTarget {
  const kind = kindOf(name, names);
  if (kind === undefined) return foreignTarget(name, argument, names, fail);
  switch (kind) {
    case "shell":
      return argument === undefined ? { kind, stem: false } : { kind, ...shellWords(argument, fail) };
    case "read":
    case "write":
      return argument === undefined ? { kind } : { kind, path: pathArgument(argument, fail) };
    case "url": {
      if (argument === undefined) return { kind };
      const pattern = parseUrlPattern(argument);
      return typeof pattern === "string" ? fail(pattern) : { kind, pattern };
    }
    case "memory":
    case "sandbox-off":
      return argument === undefined ? { kind } : fail(`${kind} takes no argument`);
    case "agent":
      return argument === undefined ? { kind } : { kind, agent: argument };
    case "mcp-sampling":
      if (argument === undefined) return { kind };
      return { kind, server: knownServer(argument, names, fail) };
    case "custom-tool": {
      if (argument === undefined) return fail("name the tool, as in custom-tool(name)");
      if (!names.customTools.includes(argument)) fail(`no client program offers a tool ${JSON.stringify(argument)}`);
      return { kind, tool: argument };
    }
    case "mcp":
      return mcpTarget(argument, names, fail);
  }
}

/** Kinds and built-in tools take precedence, so that a server cannot take over a rule by using their name. */
function kindOf(name: string, names: RuleNames): (typeof KINDS)[number] | undefined {
  if (Object.hasOwn(names.tools, name)) return names.tools[name];
  return (
    KINDS.find((kind) => kind === name) ??
    (isForeign(name, names) ? undefined : KINDS.find((kind) => kind === name.toLowerCase()))
  );
}

function isForeign(name: string, names: RuleNames): boolean {
  return names.servers.includes(name) || names.customTools.includes(name);
}

/** Resolves `Server`, `Server(tool)` or the name of a custom tool. */
function foreignTarget(name: string, argument: string | undefined, names: RuleNames, fail: Fail): RuleTarget {
  if (names.servers.includes(name)) {
    return { kind: "mcp", server: name, ...defined({ tool: argument }) };
  }
  if (names.customTools.includes(name)) {
    return argument === undefined
      ? { kind: "custom-tool", tool: name }
      : fail(`${name} is a tool of a client program and takes no argument`);
  }
  const known = [...KINDS, ...Object.keys(names.tools), ...names.servers, ...names.customTools];
  const meant = nearest(name, known);
  const hint = meant === undefined ? `known kinds are ${KINDS.join(", ")}` : `did you mean ${meant}?`;
  return fail(`${JSON.stringify(name)} is neither a kind, a tool nor an MCP server (${hint})`);
}

/** Resolves `mcp(server)` and `mcp(server/tool)`, for servers whose name is also a kind or a tool. */
function mcpTarget(argument: string | undefined, names: RuleNames, fail: Fail): RuleTarget {
  if (argument === undefined) return fail("name the server, as in mcp(server) or mcp(server/tool)");
  const [server = "", ...rest] = argument.split("/");
  return { kind: "mcp", server: knownServer(server, names, fail), ...(rest.length > 0 && { tool: rest.join("/") }) };
}

function knownServer(server: string, names: RuleNames, fail: Fail): string {
  if (names.servers.includes(server)) return server;
  const meant = nearest(server, names.servers);
  return fail(
    `no MCP server is called ${JSON.stringify(server)}${meant === undefined ? "" : ` (did you mean ${meant}?)`}`,
  );
}

function shellWords(argument: string, fail: Fail): { words: readonly string[]; stem: boolean } {
  const text = argument.replace(/(?:^|:|\s)\*$/, "");
  const stem = text !== argument;
  const words = text.split(/\s+/).filter((word) => word !== "");
  if (words.length === 0) fail("there is no command before the *; write shell to mean every command");
  const special = /[;&|<>$`'"\\(){}*?[\]~!#]/.exec(text)?.[0];
  if (special !== undefined) {
    fail(
      `it can never match, because ${special} is not part of a plain command word; use shell(command) or shell(command:*)`,
    );
  }
  return { words, stem };
}

function pathArgument(argument: string, fail: Fail): string {
  if (argument.replaceAll("/", "") === "") fail("it names no file or folder");
  if (/[*?].*\/\.\.(?:\/|$)/.test(argument)) fail("it can never match, because .. follows a * or ?");
  if (isPathPattern(argument) && argument.length > MAX_PATTERN)
    fail(`its pattern has more than ${MAX_PATTERN} characters`);
  return argument;
}

function splitList(list: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let index = 0; index < list.length; index++) {
    const character = list[index];
    if (character === "(") depth++;
    else if (character === ")") depth--;
    else if (character === "," && depth <= 0) {
      parts.push(list.slice(start, index));
      start = index + 1;
    }
  }
  return [...parts, list.slice(start)];
}
