import { nearest } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { optionalToolNames } from "../../tools/builtin.ts";
import type { Tool } from "../../tools/tool.ts";

/**
 * The tools offered to a session. Hiding a tool is not the same as denying its access. An entry is a tool name, or a
 * source with a name or `*`: `builtin:view`, `mcp:*`, `custom:lookup`. Exclusions win over everything else.
 */
export interface ToolChoice {
  /** Only these tools (default: all). */
  readonly available?: readonly string[];
  readonly excluded?: readonly string[];
  /** Hidden from the default agent only. Every custom agent can have these, whether it lists tools or not. */
  readonly hiddenFromMain?: readonly string[];
  /** Offered only to agents whose own tool list names them. */
  readonly onlyListed?: readonly string[];
}

/** Returns the tools of the whole session, including its agents. */
export function chooseTools(tools: readonly Tool[], choice: ToolChoice = {}): readonly Tool[] {
  const { available, excluded = [] } = choice;
  return tools.filter(
    (tool) =>
      (available === undefined || available.some((entry) => names(entry, tool))) &&
      !excluded.some((entry) => names(entry, tool) || leads(entry, tool)),
  );
}

/** Returns the session's tools that the default agent has. */
export function mainTools(tools: readonly Tool[], choice: ToolChoice = {}): readonly Tool[] {
  return without(choice.hiddenFromMain, inheritedTools(tools, choice));
}

/** Returns the session's tools that an agent without a tool list has. */
export function inheritedTools(tools: readonly Tool[], choice: ToolChoice = {}): readonly Tool[] {
  return without(choice.onlyListed, tools);
}

function without(entries: readonly string[] = [], tools: readonly Tool[]): readonly Tool[] {
  return entries.length === 0 ? tools : tools.filter((tool) => !entries.some((entry) => names(entry, tool)));
}

/** Returns the entries that match no tool. */
export function unknownEntries(tools: readonly Tool[], choice: ToolChoice = {}): readonly string[] {
  const entries = [...(choice.available ?? []), ...(choice.excluded ?? []), ...(choice.hiddenFromMain ?? [])];
  return [...new Set(entries)].filter((entry) => !entry.endsWith(":*") && !tools.some((tool) => names(entry, tool)));
}

/** Throws for an unknown entry, which is probably a typo. */
export function requireKnown(tools: readonly Tool[], choice: ToolChoice = {}): void {
  const isBuiltin = (entry: string): boolean => optionalToolNames.includes(entry.replace(/^builtin:/, ""));
  const unknown = unknownEntries(tools, choice).find((entry) => !isBuiltin(entry));
  if (unknown === undefined) return;
  const known = tools.map(({ name }) => name);
  const close = nearest(unknown.replace(/^(builtin|mcp|custom):/, ""), known);
  throw new TroupeError("usage", `A tool list names "${unknown}", which does not exist.`, {
    hint: `${close ? `Did you mean "${close}"? ` : ""}Known: ${known.join(", ")}.`,
  });
}

/** Returns whether the tool is useless without the excluded one, as `read_bash` is without `bash`. */
function leads(entry: string, tool: Tool): boolean {
  return tool.origin === undefined && tool.companionOf === entry.replace(/^builtin:/, "");
}

function names(entry: string, tool: Tool): boolean {
  const [, source, name = entry] = /^(builtin|mcp|custom):(.+)$/s.exec(entry) ?? [];
  if (source !== undefined && source !== (tool.origin?.kind ?? "builtin")) return false;
  return name === "*" ? source !== undefined : name === tool.name;
}
