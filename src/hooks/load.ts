/** Loads all hooks of a session from files, settings and the embedding program, in the order they run. */
import { defined } from "../lib/defined.ts";
import { plural } from "../lib/text.ts";
import { TroupeError } from "../protocol/errors.ts";
import { parseHookFile, parseInlineHooks } from "./config.ts";
import { pin } from "./entry.ts";
import { depthOf } from "./expand.ts";
import {
  DEFAULT_TIMEOUT_MS,
  type FunctionRun,
  type HookDefinition,
  type HookNotice,
  type HookOrigin,
  type HookOwner,
  scopes,
} from "./hooks.ts";
import { findHookFiles, type HookSearchPaths } from "./locations.ts";
import { parseMatcher } from "./matcher.ts";
import { type HookPoint, isAuthorising } from "./points.ts";
import type { HookVariables } from "./url-rules.ts";

export interface LoadOptions extends HookSearchPaths {
  readonly environment: HookVariables;
  readonly settings?: readonly SettingsHooks[];
  readonly program?: readonly HookDefinition[];
}

/** The hooks part of one settings file, unparsed. */
interface SettingsHooks {
  readonly file: string;
  readonly scope: HookOwner;
  readonly hooks?: unknown;
  /**
   * In the user's settings it disables all hooks but policy hooks. In a project's settings it disables the project's
   * hooks.
   */
  readonly disableAllHooks?: boolean;
}

export interface LoadedHooks {
  readonly definitions: readonly HookDefinition[];
  readonly notices: readonly HookNotice[];
}

/** Throws for invalid hooks in settings. Invalid hook files are reported as notices. */
export async function loadHooks(options: LoadOptions): Promise<LoadedHooks> {
  const { environment, settings = [], program = [] } = options;
  const { files, notices } = await findHookFiles(options);
  const fromFiles = files.map(({ origin, text }) => parseHookFile(text, { origin, environment }));
  const fromSettings = settings.map(({ hooks = {}, file, scope, disableAllHooks = false }) => {
    const parsed = parseInlineHooks(hooks, { origin: { scope, owner: scope, file }, environment });
    return { ...parsed, scope, disableAllHooks: disableAllHooks || parsed.disableAllHooks };
  });
  const parsed = [...fromFiles, ...fromSettings];
  const off = new Set(fromSettings.filter((one) => one.disableAllHooks).map(({ scope }) => scope));
  const definitions = [...parsed.flatMap((one) => one.definitions), ...program]
    .filter(({ source }) => source.scope === "policy" || !(off.has("user") || off.has(source.owner)))
    .sort((one, other) => scopes.indexOf(one.source.scope) - scopes.indexOf(other.source.scope));
  const said = [...notices, ...parsed.flatMap((one) => one.notices)];
  return insideHook({ definitions, notices: said }, depthOf(environment));
}

/**
 * Prevents recursion when a hook starts troupe. In a nested troupe only deciding hooks run. Throws when the nesting
 * exceeds `MAX_DEPTH`.
 */
function insideHook({ definitions, notices }: LoadedHooks, depth: number): LoadedHooks {
  if (depth === 0) return { definitions, notices };
  if (depth > MAX_DEPTH)
    throw new TroupeError("configuration", `hooks have started troupe recursively, ${depth} levels deep`, {
      hint: "Change the hook that runs troupe, or give it a matcher.",
    });
  const deciding = definitions.filter(({ point }) => isAuthorising(point));
  const left = definitions.length - deciding.length;
  const message = `${plural(left, "hook")} not used: this troupe was started by a hook`;
  return { definitions: deciding, notices: left === 0 ? notices : [...notices, { file: "hooks", message }] };
}

const MAX_DEPTH = 3;

/** Returns a hook of the program that embeds troupe. */
export function programHook(options: {
  readonly point: HookPoint;
  readonly run: FunctionRun["run"];
  /** The name under which its failures are recorded. */
  readonly name?: string;
  readonly matcher?: string;
  readonly onFailure?: "open" | "closed";
  readonly timeoutMs?: number;
  /** Gives the hook the scope and the rights of this owner's hooks instead of a program's. */
  readonly owner?: HookOwner;
}): HookDefinition {
  const { point, run, name = "program", timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  const { owner } = options;
  const origin: HookOrigin = { scope: owner ?? "program", owner: owner ?? "user", file: name };
  const matcher = parseMatcher(options.matcher ?? "", { point, dialect: "camel" });
  const unpinned = {
    point,
    dialect: "camel" as const,
    source: { ...origin, index: 0 },
    onFailure: options.onFailure ?? (isAuthorising(point) ? ("closed" as const) : ("open" as const)),
    timeoutMs,
    run: { type: "function" as const, run },
    ...defined({ matcher }),
  };
  return { ...unpinned, pinned: pin(unpinned) };
}
