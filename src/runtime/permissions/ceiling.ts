/**
 * The permissions of a session as an upper limit for another one that works for it on another machine. The other session
 * decides by its own rules and by these, and the stricter decision counts.
 */

import { isInside } from "../../lib/node/paths.ts";
import type { Policy } from "../../permissions/policy.ts";
import { parseRule, type Rule, RuleError } from "../../permissions/rules.ts";
import { builtinNames, type Ceiling, type PermissionFlags } from "./policy.ts";

type Limiting = NonNullable<Policy["ceiling"]>;

/** `own`: folders that are part of every session, wherever it runs. */
export function ceilingOf(policy: Limiting, own: readonly string[]): Ceiling {
  const { rules, allowances, roots, consented = [], ceiling } = policy;
  return {
    rules: rules.map(({ text, effect }) => ({ text, effect })),
    mode: { ...allowances },
    folders: roots.length === 0 ? "all" : roots.filter((root) => !isInside(root, own)),
    consented: [...consented],
    ...(ceiling && { above: ceilingOf(ceiling, own) }),
  };
}

/** Replaces the working folder in the paths of rules. */
export function movedCeiling(ceiling: Ceiling, { from, to }: { readonly from: string; readonly to: string }): Ceiling {
  const path = (given: string): string => (isInside(given, [from]) ? `${to}${given.slice(from.length)}` : given);
  const argument = (text: string): string =>
    text.replace(/^([^()]+\()(.*)(\))$/s, (_, head: string, given: string, end: string) => head + path(given) + end);
  const { rules, consented, above } = ceiling;
  return {
    ...ceiling,
    rules: rules.map(({ text, effect }) => ({ text: argument(text), effect })),
    consented: consented.map(path),
    ...(above && { above: movedCeiling(above, { from, to }) }),
  };
}

/** Returns the permissions of the worker, narrowed as far as flags can do it. `limitingPolicy` does the rest. */
export function flagsWithin(own: PermissionFlags, ceiling: Ceiling): PermissionFlags {
  const { mode, folders, consented, rules, above } = ceiling;
  const { paths = [], denyTools = [], consentPaths = [] } = own;
  const narrowed =
    folders === "all" ? paths : paths === "all" ? folders : paths.filter((path) => folders.includes(path));
  const flags: PermissionFlags = {
    ...own,
    paths: narrowed,
    // Files that must not be read are hidden from commands by the session's own rules.
    denyTools: [
      ...denyTools,
      ...rules.flatMap((rule) => (rule.effect === "deny" && parseOrUndefined(rule, []) ? rule.text : [])),
    ],
    allTools: own.allTools === true && mode.allTools,
    allPaths: own.allPaths === true && mode.allPaths,
    allUrls: own.allUrls === true && mode.allUrls,
    askReads: own.askReads === true || mode.askReads,
    consentPaths: consentPaths.filter((path) => consented.includes(path)),
  };
  return { ...(above ? flagsWithin(flags, above) : flags), ceiling };
}

/** Returns the ceiling as a policy of this session. `base`: the session's own. `own`: its own folders. */
export function limitingPolicy(
  ceiling: Ceiling,
  base: Policy,
  how: { readonly own: readonly string[]; readonly servers: readonly string[] },
): Limiting {
  const { rules, mode, folders, consented, above } = ceiling;
  return {
    rules: rules.flatMap((rule) => parseOrUndefined(rule, how.servers) ?? []),
    allowances: mode,
    roots: folders === "all" ? [] : [...how.own, ...folders],
    consented,
    protectedPaths: base.protectedPaths,
    resolvePath: base.resolvePath,
    isUnsettled: base.isUnsettled,
    exists: base.exists,
    ...(above && { ceiling: limitingPolicy(above, base, how) }),
  };
}

/** Returns undefined for a rule about a server or a tool that this session does not have. */
function parseOrUndefined(
  { text, effect }: Pick<Rule, "text" | "effect">,
  servers: readonly string[],
): Rule | undefined {
  try {
    return parseRule(text, { effect, source: { name: "the session that started it" } }, { ...builtinNames, servers });
  } catch (error) {
    if (error instanceof RuleError) return undefined;
    throw error;
  }
}
