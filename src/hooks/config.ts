/** Parses hook configurations. A bad entry in a hook file is skipped with a notice; a bad entry in settings throws. */
import { isObject, jsonErrorPosition } from "../lib/json.ts";
import { nearest } from "../lib/text.ts";
import { TroupeError } from "../protocol/errors.ts";
import { messageOf } from "./answer.ts";
import { forbiddenKey, readJson } from "./bounded-json.ts";
import { type EntryContext, parseEntry } from "./entry.ts";
import type { HookDefinition, HookNotice, HookOrigin } from "./hooks.ts";
import { hookPoints, pascalName, pointByName } from "./points.ts";
import type { HookVariables } from "./url-rules.ts";

export interface HookFileContext {
  readonly origin: HookOrigin;
  /** The environment of this process. Only the two variables that allow local or http addresses are read. */
  readonly environment: HookVariables;
  readonly platform?: NodeJS.Platform;
}

export interface ParsedHooks {
  readonly definitions: readonly HookDefinition[];
  readonly notices: readonly HookNotice[];
  /**
   * True when the file disables hooks; its own definitions are then already empty. In settings it disables more, see
   * `load.ts`.
   */
  readonly disableAllHooks: boolean;
}

const MAX_HOOKS_PER_FILE = 100;

/** Parses a hook file, or a settings file of another product that contains hooks among other settings. */
export function parseHookFile(text: string, context: HookFileContext): ParsedHooks {
  const content = text.replace(/^\uFEFF/, "");
  const json = readJson(content);
  const problem = json.ok ? structureProblem(json.value) : `${json.error}${jsonErrorPosition(content)}`;
  if (!json.ok || problem !== undefined) return rejectedFile(context, `not used: ${problem}`);
  const { hooks = {}, disableAllHooks } = json.value as { hooks?: Record<string, unknown>; disableAllHooks?: boolean };
  if (disableAllHooks === true) return { definitions: [], notices: [], disableAllHooks: true };
  const notices: HookNotice[] = [];
  const definitions = collect(hooks, context, (message) => notices.push({ file: context.origin.file, message }));
  return { definitions, notices, disableAllHooks: false };
}

/** Parses the `hooks` value of a settings file, with or without a `version` wrapper. Throws on the first error. */
export function parseInlineHooks(value: unknown, context: HookFileContext): ParsedHooks {
  const fail = (message: string): never => {
    throw new TroupeError("configuration", `${context.origin.file}: ${message}`, {
      hint: "Fix or remove this hook. The other settings of the file are used.",
    });
  };
  if (forbiddenKey(value) !== undefined) fail(`hooks: the name ${forbiddenKey(value)} is not allowed`);
  const whole = isObject(value) && ("hooks" in value || "version" in value) ? value : { hooks: value };
  const problem = structureProblem(whole);
  if (problem !== undefined) return fail(problem);
  const disableAllHooks = whole.disableAllHooks === true;
  const hooks = isObject(whole.hooks) ? whole.hooks : {};
  return { definitions: disableAllHooks ? [] : collect(hooks, context, fail), notices: [], disableAllHooks };
}

function rejectedFile({ origin }: HookFileContext, message: string): ParsedHooks {
  return { definitions: [], notices: [{ file: origin.file, message }], disableAllHooks: false };
}

function structureProblem(value: unknown): string | undefined {
  if (!isObject(value)) return "it must be a JSON object";
  const { version, disableAllHooks, hooks } = value;
  if (version !== undefined && version !== 1) return `version ${JSON.stringify(version)} is not supported; use 1`;
  if (disableAllHooks !== undefined && typeof disableAllHooks !== "boolean")
    return "disableAllHooks must be true or false";
  if (hooks === undefined) return undefined;
  if (!isObject(hooks)) return "hooks must be an object with a list for each event";
  const notList = Object.entries(hooks).find(([, entries]) => !Array.isArray(entries));
  return notList === undefined ? undefined : `hooks.${notList[0]} must be a list`;
}

type Complain = (message: string) => void;

function collect(hooks: Record<string, unknown>, context: HookFileContext, complain: Complain): HookDefinition[] {
  const definitions: HookDefinition[] = [];
  for (const [name, entries] of Object.entries(hooks)) {
    const known = pointByName(name);
    if (known === undefined) {
      complain(`hooks.${name}: there is no such event${guessFor(name)}`);
      continue;
    }
    const entryContext = { ...context, ...known, platform: context.platform ?? process.platform };
    for (const { entry, at } of flatten(entries, `hooks.${name}`)) {
      if (definitions.length >= MAX_HOOKS_PER_FILE) {
        complain(`${at} and what follows: more than ${MAX_HOOKS_PER_FILE} hooks`);
        return definitions;
      }
      const definition = parseOr(complain, { entry, at, context: entryContext, index: definitions.length });
      if (definition !== undefined) definitions.push(definition);
    }
  }
  return definitions;
}

function guessFor(name: string): string {
  const guess = nearest(name, [...hookPoints, ...hookPoints.map(pascalName)]);
  return guess === undefined ? "" : `; did you mean ${guess}?`;
}

/** Flattens entries; an entry may be a group of hooks that share a matcher. */
function flatten(entries: unknown, at: string): { entry: unknown; at: string }[] {
  if (!Array.isArray(entries)) return [];
  return entries.flatMap((entry: unknown, index) => {
    const context = `${at}[${index}]`;
    if (!isObject(entry) || !("hooks" in entry)) return [{ entry, at: context }];
    const { hooks: inner, matcher } = entry;
    if (!Array.isArray(inner)) return [{ entry: undefined, at: `${context}.hooks` }];
    const shared = matcher === undefined ? {} : { matcher };
    return inner.map((one: unknown, position) => ({
      entry: isObject(one) && !("hooks" in one) ? { ...shared, ...one } : undefined,
      at: `${context}.hooks[${position}]`,
    }));
  });
}

interface Found {
  readonly entry: unknown;
  readonly at: string;
  readonly context: EntryContext;
  readonly index: number;
}

function parseOr(complain: Complain, { entry, at, context, index }: Found): HookDefinition | undefined {
  if (!isObject(entry)) {
    complain(`${at}: must be an object`);
    return undefined;
  }
  try {
    return parseEntry(entry, context, index);
  } catch (error) {
    complain(`${at}: ${messageOf(error)}`);
    return undefined;
  }
}
