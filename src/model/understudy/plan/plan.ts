/**
 * Building blocks of plans. A plan names the calls whose results it needs, in stages. Calls answered since the prompt
 * are looked up; the others become the next step. So a plan needs no memory: the history is its state. This folder has
 * one plan per kind of question.
 */
import type { Json } from "../../../lib/json.ts";
import { isObject } from "../../../lib/json.ts";
import { clip } from "../../../lib/text.ts";
import type { ToolDefinition } from "../../provider.ts";
import { cutLine } from "../bounds.ts";
import {
  type AnsweredCall,
  firstLine,
  type Hits,
  isMissing,
  mergeLines,
  type Paths,
  parseHits,
  parsePaths,
  parseView,
  type SourceLine,
  savedOutput,
  type ViewedPath,
} from "../project/evidence.ts";

/** A call to a tool that the request offers. */
export interface PlannedCall {
  readonly name: string;
  readonly arguments: Readonly<Record<string, Json>>;
}

export type UnderstudyStep =
  | { readonly kind: "calls"; readonly calls: readonly PlannedCall[] }
  | { readonly kind: "answer"; readonly text: string };

export interface Scene {
  /** Answered calls since the prompt. Older ones may be stale and are not used. */
  readonly exchanges: readonly AnsweredCall[];
  readonly tools: ReadonlyMap<string, ToolDefinition>;
  /** The working directory that the instructions name, if any. */
  readonly root?: string;
  /** The working directory relative to its git root, if it is not the root itself. */
  readonly within?: string;
  /** How many more times tools may be called. */
  readonly turnsLeft: number;
}

/** More parallel calls would fill the screen without improving the answer. */
const MAX_CALLS_PER_TURN = 24;
const MAX_ROOT_TRIALS = 50;

/**
 * Returns the next step if any of `calls` is offered and not yet answered. Returns `undefined` if the plan can
 * continue.
 */
export function ask(scene: Scene, calls: readonly PlannedCall[]): UnderstudyStep | undefined {
  if (scene.turnsLeft <= 0) return undefined;
  const open = new Map<string, PlannedCall>();
  for (const call of calls) {
    const fitted = suit(scene, call);
    if (fitted !== undefined && answerTo(scene, call) === undefined)
      open.set(keyOf(fitted.name, fitted.arguments), fitted);
  }
  return open.size === 0 ? undefined : { kind: "calls", calls: [...open.values()].slice(0, MAX_CALLS_PER_TURN) };
}

export function view(path: string, range?: readonly [number, number]): PlannedCall {
  return { name: "view", arguments: range === undefined ? { path } : { path, view_range: [...range] } };
}

export function glob(pattern: string): PlannedCall {
  return { name: "glob", arguments: { pattern } };
}

export function grep(
  pattern: string,
  options: { path?: string; ignoreCase?: boolean; limit?: number; files?: string } = {},
): PlannedCall {
  return {
    name: "grep",
    arguments: {
      pattern,
      path: options.path ?? ".",
      output_mode: "content",
      "-n": true,
      ...(options.files === undefined ? {} : { glob: options.files }),
      ...(options.ignoreCase ? { "-i": true } : {}),
      head_limit: options.limit ?? 120,
    },
  };
}

export function shell(command: string, description: string): PlannedCall {
  return { name: "bash", arguments: { command, description } };
}

/** Returns views of results that were too large to be shown. Useful once the calls are answered. */
export function unfold(scene: Scene, calls: readonly PlannedCall[]): PlannedCall[] {
  return calls.flatMap((call) => {
    const saved = savedOutput(answerTo(scene, call)?.content ?? "");
    return saved === undefined ? [] : saved.ranges.map((range) => view(saved.path, range));
  });
}

/** Returns views of parts of files that are too large for one view. Useful once `view(path)` is answered. */
export function unfoldFiles(scene: Scene, paths: readonly string[]): PlannedCall[] {
  return paths.flatMap((path) => {
    const saved = savedOutput(answerTo(scene, view(path))?.content ?? "");
    return (saved?.ranges ?? []).map((range) => view(path, range));
  });
}

export function answerTo(scene: Scene, call: PlannedCall): AnsweredCall | undefined {
  const fitted = suit(scene, call);
  if (fitted === undefined) return undefined;
  const key = keyOf(fitted.name, fitted.arguments);
  return scene.exchanges.find((exchange) => keyOf(exchange.name, exchange.arguments) === key);
}

export function viewed(scene: Scene, path: string, range?: readonly [number, number]): ViewedPath {
  return parseView(answerTo(scene, view(path, range)));
}

/** Returns the entries of a folder, if an answered view shows them. */
export function entriesOf(scene: Scene, path: string): readonly string[] {
  const views = scene.exchanges.filter((exchange) => exchange.name === "view" && exchange.arguments.path === path);
  return views.map(parseView).flatMap((seen) => (seen.kind === "folder" ? seen.entries : []));
}

/** Returns every line of the file that answered views show, cut to the length that patterns may be applied to. */
export function linesOf(scene: Scene, path: string): SourceLine[] {
  return wholeLinesOf(scene, path).map(({ number, text }) => ({ number, text: cutLine(text) }));
}

/** Returns uncut lines, for parsers. */
export function wholeLinesOf(scene: Scene, path: string): SourceLine[] {
  const parts = scene.exchanges
    .filter((exchange) => exchange.name === "view" && exchange.arguments.path === path)
    .map(parseView)
    .map((seen) => (seen.kind === "file" ? seen.lines : []));
  return mergeLines(parts);
}

export function globHits(scene: Scene, pattern: string): Paths {
  return parsePaths(unfolded(scene, answerTo(scene, glob(pattern))));
}

/** Returns the hits. Absolute paths become relative to the project. */
export function grepHits(scene: Scene, call: PlannedCall): Hits {
  const { hits, cut } = parseHits(unfolded(scene, answerTo(scene, call)));
  const root = rootOf(scene, parseHits(answerTo(scene, call)).hits);
  return { hits: root === undefined ? hits : hits.map((hit) => ({ ...hit, path: beneath(root, hit.path) })), cut };
}

/** Returns the obstacles, one line each, for the end of an answer. */
export function hindrances(scene: Scene, wanted: readonly string[]): string[] {
  const absent = wanted.filter((name) => !scene.tools.has(name));
  // The plan that delegated to agents reports their failures itself.
  const failed = scene.exchanges.filter(
    (exchange) => exchange.failed && exchange.name !== "task" && !isMissing(exchange.content),
  );
  const denied = failed.filter((exchange) => flagsIn(exchange).length > 0);
  const failures = failed
    .filter((exchange) => !denied.includes(exchange))
    .map((exchange) => `${exchange.name}: ${clip(firstLine(exchange.content), 160)}`);
  const distinct = [...new Set(failures)];
  const part = scene.within !== undefined && wanted.some((name) => name === "glob" || name === "grep");
  return [
    ...(part ? [`Only this folder, \`${scene.within}/\` of a larger git repository, was searched.`] : []),
    ...(absent.length > 0 ? [`Not offered to me here: ${absent.map((name) => `\`${name}\``).join(", ")}.`] : []),
    ...permission(denied),
    ...distinct.slice(0, 3).map((failure) => `A call failed – ${failure}`),
    ...(distinct.length > 3 ? [`${distinct.length - 3} more calls failed in other ways.`] : []),
  ];
}

const MAX_FLAGS = 4;

/** Returns the flags that a denied call names to allow it. */
function flagsIn(exchange: AnsweredCall): string[] {
  return firstLine(exchange.content).match(/--allow-[a-z]+ (?:'[^']{1,200}'|[^\s']{1,200})/g) ?? [];
}

/** Returns one line about all denied calls, with complete flags only. */
function permission(denied: readonly AnsweredCall[]): string[] {
  if (denied.length === 0) return [];
  const names = [...new Set(denied.map((exchange) => `\`${exchange.name}\``))].join(", ");
  const flags = [...new Set(denied.flatMap(flagsIn))].slice(0, MAX_FLAGS);
  return [`I was not permitted to use ${names}. To permit it: \`${flags.join(" ")}\``];
}

/** Returns the exchange with the viewed part of its saved result. */
function unfolded(scene: Scene, exchange: AnsweredCall | undefined): AnsweredCall | undefined {
  const saved = savedOutput(exchange?.content ?? "");
  if (exchange === undefined || saved === undefined) return exchange;
  const lines = wholeLinesOf(scene, saved.path);
  if (lines.length === 0) return exchange;
  const last = lines.at(-1)?.number ?? 0;
  const ended = saved.lines === undefined ? last < (saved.ranges.at(-1)?.[1] ?? 0) : last >= saved.lines;
  const gaps = lines.some((line, index) => line.number !== index + 1) || !ended;
  const rows = lines.map((line) => line.text);
  return { ...exchange, content: (gaps ? [...rows, "[cut here]"] : rows).join("\n") };
}

/**
 * Returns the call with the arguments that the offered tool has. Unknown optional ones are dropped, and `path` becomes
 * `paths` if only that exists. Returns `undefined` if the tool is not offered.
 */
function suit(scene: Scene, call: PlannedCall): PlannedCall | undefined {
  const tool = scene.tools.get(call.name);
  if (tool === undefined) return undefined;
  const properties = "properties" in tool.parameters ? tool.parameters.properties : undefined;
  if (!isObject(properties)) return call;
  const known = new Set(Object.keys(properties));
  const fitted: Record<string, Json> = {};
  for (const [name, value] of Object.entries(call.arguments)) {
    if (known.has(name)) fitted[name] = value;
    else if (name === "path" && known.has("paths")) fitted.paths = acceptsList(properties.paths) ? [value] : value;
    else if (name === "-i" && typeof fitted.pattern === "string") fitted.pattern = `(?i)${fitted.pattern}`;
  }
  return { name: call.name, arguments: fitted };
}

function acceptsList(schema: unknown): boolean {
  return !isObject(schema) || schema.type !== "string";
}

function keyOf(name: string, values: Readonly<Record<string, unknown>>): string {
  const sorted = Object.entries(values).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([name, sorted]);
}

/** Returns the project's folder: the prefix of absolute hits before paths that are known to be relative to it. */
function rootOf(scene: Scene, hits: Hits["hits"]): string | undefined {
  const { root } = scene;
  if (root !== undefined && hits.every((hit) => hit.path.startsWith(`${root}/`))) return root;
  const relative = new Set(
    scene.exchanges.filter((exchange) => exchange.name === "glob").flatMap((exchange) => parsePaths(exchange).paths),
  );
  if (relative.size === 0) return undefined;
  for (const { path } of hits.slice(0, MAX_ROOT_TRIALS)) {
    if (!path.startsWith("/") && !/^[A-Za-z]:\//.test(path)) continue;
    for (let slash = path.indexOf("/", 1); slash > 0; slash = path.indexOf("/", slash + 1)) {
      if (relative.has(path.slice(slash + 1))) return path.slice(0, slash);
    }
  }
  return undefined;
}

function beneath(root: string, path: string): string {
  return path.startsWith(`${root}/`) ? path.slice(root.length + 1) : path;
}
