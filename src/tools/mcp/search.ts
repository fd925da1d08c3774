/**
 * Deferred tools. A session with very many tools does not offer them all: tools of MCP servers and client programs are
 * deferred until a search finds them. Found tools stay offered, after the earlier ones, so that the start of every
 * request is identical and stays cached.
 */
import * as z from "zod";
import { clip, plural } from "../../lib/text.ts";
import type { Tool } from "../tool.ts";
import { ToolError, type ToolResult } from "../tool-error.ts";
import description from "./search.md";
import { compilePattern, wordsOf } from "./search-pattern.ts";
import type { Deferral } from "./server.ts";

export interface ToolSearchOptions {
  readonly tools: readonly Tool[];
  /** Up to this number of tools, "auto" means offered. */
  readonly threshold?: number;
  /** "never" for built-in tools. */
  readonly defer: (tool: Tool) => Deferral;
  /** Tools that searches of an earlier process found. */
  readonly found?: readonly string[];
  /** Called with the tools that a search found for the first time. */
  onFound?(names: readonly string[]): void;
}

export interface ToolSearch {
  /**
   * Returns the tools of the next request: everything not deferred, the search tool, then loaded tools in load order.
   */
  offered(): readonly Tool[];
  /** Undefined while nothing is deferred. */
  readonly tool: Tool | undefined;
  load(names: readonly string[]): void;
  /** Finds any tool of the session. Calling a deferred tool loads it; its arguments are validated as usual. */
  find(name: string): Tool | undefined;
  /** Replaces the tools after a server's list changed. Offered tools stay offered while they exist. */
  update(tools: readonly Tool[]): void;
}

const TOOL_SEARCH_NAME = "tool_search_tool_regex";
const DEFAULT_THRESHOLD = 30;

export function toolSearch(options: ToolSearchOptions): ToolSearch {
  const { tools, threshold = DEFAULT_THRESHOLD, defer, onFound } = options;
  let all = tools;
  let isSearching = false;
  const loaded = new Set<string>(options.found);
  const isDeferred = (tool: Tool, count: number): boolean => {
    const deferral = defer(tool);
    return deferral === "always" || (deferral === "auto" && count > threshold);
  };
  const deferred = (): Tool[] => all.filter((tool) => isDeferred(tool, all.length));
  const load = (names: readonly string[]): void => {
    const known = new Set(deferred().map(({ name }) => name));
    for (const name of names) if (known.has(name)) loaded.add(name);
  };
  const search = searchTool({ tools: deferred, isLoaded: (name) => loaded.has(name), load, onFound });
  const offered = (): readonly Tool[] => {
    const waiting = new Map(deferred().map((tool) => [tool.name, tool]));
    isSearching ||= waiting.size > 0;
    const found = [...loaded].flatMap((name) => waiting.get(name) ?? []);
    return [...all.filter(({ name }) => !waiting.has(name)), ...(isSearching ? [search] : []), ...found];
  };
  return {
    offered,
    get tool() {
      return offered().includes(search) ? search : undefined;
    },
    load,
    find(name) {
      load([name]);
      return name === TOOL_SEARCH_NAME && isSearching ? search : all.find((tool) => tool.name === name);
    },
    update(next) {
      const before = offered().map(({ name }) => name);
      all = next;
      load(before);
    },
  };
}

interface Searched {
  readonly tools: () => readonly Tool[];
  readonly isLoaded: (name: string) => boolean;
  readonly load: (names: readonly string[]) => void;
  readonly onFound: ToolSearchOptions["onFound"];
}

const DEFAULT_LIMIT = 5;
const MAX_LIMIT = 20;

const input = z.lazy(() =>
  z.object({
    pattern: z.string().min(1).max(1000).describe("Regular expression, or words, to find in names and descriptions"),
    limit: z.int().min(1).max(MAX_LIMIT).default(DEFAULT_LIMIT).describe("Most tools to return"),
  }),
);

/** Built for one session, so it is not in a list of built-in tools. */
function searchTool(searched: Searched): Tool {
  return {
    name: TOOL_SEARCH_NAME,
    description: description.trim(),
    get parameters() {
      const { $schema: _, ...schema } = z.toJSONSchema(input, { io: "input" });
      return schema;
    },
    readOnly: true,
    exclusive: false,
    endsAnswer: false,
    timeoutMs: 10_000,
    bind(rawArguments) {
      const parsed = input.safeParse(rawArguments);
      if (!parsed.success)
        throw new ToolError(`Bad arguments for ${TOOL_SEARCH_NAME}: ${z.prettifyError(parsed.error)}`);
      return { access: async () => [], run: async () => answer(parsed.data, searched) };
    },
  };
}

function answer({ pattern, limit }: z.infer<typeof input>, { tools, isLoaded, load, onFound }: Searched): ToolResult {
  const all = tools();
  const { found, note } = matching(pattern, all);
  if (found.length === 0) return { content: [...note, nothingFound(pattern, all)].join("\n") };
  const shown = found.slice(0, limit);
  const fresh = shown.filter(({ name }) => !isLoaded(name));
  load(shown.map(({ name }) => name));
  if (fresh.length > 0) onFound?.(fresh.map(({ name }) => name));
  const head = `${plural(shown.length, "tool")} found, callable from now on${fresh.length < shown.length ? " (some were before)" : ""}.`;
  const rest = found.length - shown.length;
  const more = rest > 0 ? [`[${rest} more ${rest === 1 ? "match" : "matches"} not shown; narrow the pattern.]`] : [];
  return { content: [...note, head, ...describeTools(shown), ...more].join("\n") };
}

const MAX_SEARCHED_CHARACTERS = 2000;
const MAX_STEPS = 3_000_000;

interface Found {
  readonly found: readonly Tool[];
  readonly note: readonly string[];
}

/** Returns matches in the name first, then those in the description, each in the order of the tools. */
function matching(pattern: string, tools: readonly Tool[]): Found {
  const matches = compilePattern(pattern, { steps: MAX_STEPS });
  if (matches === undefined) return byWords(pattern, tools);
  const groups: [Tool[], Tool[]] = [[], []];
  for (const tool of tools) {
    const inName = matches(tool.name);
    const inText = inName === false ? matches(clip(tool.description, MAX_SEARCHED_CHARACTERS)) : false;
    if (inName === undefined || inText === undefined) return byWords(pattern, tools);
    if (inName) groups[0].push(tool);
    else if (inText) groups[1].push(tool);
  }
  return { found: groups.flat(), note: [] };
}

/** Returns the tools that contain most of the words, best first. */
function byWords(pattern: string, tools: readonly Tool[]): Found {
  const words = wordsOf(pattern);
  const scored = tools.map((tool) => {
    const text = `${tool.name} ${clip(tool.description, MAX_SEARCHED_CHARACTERS)}`.toLowerCase();
    return { tool, score: words.filter((word) => text.includes(word)).length };
  });
  return {
    found: scored
      .filter(({ score }) => score > 0)
      .sort((one, other) => other.score - one.score)
      .map(({ tool }) => tool),
    note: [`The pattern is not supported; searched for its words instead: ${words.join(", ") || "none"}.`],
  };
}

const MAX_ANSWER_CHARACTERS = 16_000;
const MAX_DESCRIPTION_CHARACTERS = 1000;

/**
 * Describes the tools. Those beyond the limit are only named: their parameters are in the tool list of the next
 * request.
 */
function describeTools(tools: readonly Tool[]): string[] {
  let left = MAX_ANSWER_CHARACTERS;
  return tools.map(({ name, description: text, parameters }) => {
    const whole = JSON.stringify({ name, description: clip(text, MAX_DESCRIPTION_CHARACTERS), parameters });
    const line = whole.length <= left ? whole : JSON.stringify({ name });
    left -= line.length;
    return line;
  });
}

function nothingFound(pattern: string, tools: readonly Tool[]): string {
  const names = tools.slice(0, 30).map(({ name }) => name);
  const rest = tools.length - names.length;
  return `No tool matches ${clip(JSON.stringify(pattern), 200)}. There are: ${names.join(", ")}${rest > 0 ? ` and ${rest} more` : ""}.`;
}
