/**
 * Builds the permission policy of a run from flags, settings and client rules. This folder applies permissions to a
 * session: rules, approvals, sandbox settings and the containment of commands and programs.
 */

import type { SettingsRule } from "../../catalog/settings/settings.ts";
import { readDenials } from "../../permissions/denied-files.ts";
import { linkedPaths } from "../../permissions/linked-paths.ts";
import { pathRuleMatches } from "../../permissions/path-scope.ts";
import type { Allowances, Policy } from "../../permissions/policy.ts";
import { exists, isUnsettled, realPathOf } from "../../permissions/resolve-path.ts";
import { parseRule, parseRules, parseUrlRule, type Rule, RuleError, type RuleNames } from "../../permissions/rules.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { accessKinds } from "../../tools/builtin.ts";

/** The user's permissions for one run, as given by flags. */
export interface PermissionFlags {
  /** Folders beside the working directory that tools may access, or "all". */
  readonly paths?: readonly string[] | "all" | undefined;
  readonly allowTools?: readonly string[];
  readonly denyTools?: readonly string[];
  readonly allowUrls?: readonly string[];
  readonly denyUrls?: readonly string[];
  readonly allTools?: boolean;
  readonly allPaths?: boolean;
  readonly allUrls?: boolean;
  /** Paths that need the user's consent and have it; see `Policy.consented`. */
  readonly consentPaths?: readonly string[];
  /** True: reading is asked about too. */
  readonly askReads?: boolean;
  /** The permissions of the session that this one works for. */
  readonly ceiling?: Ceiling;
}

/** The permissions of a session as plain data, which travels with its agents. */
export interface Ceiling {
  readonly rules: readonly Pick<Rule, "text" | "effect">[];
  readonly mode: Allowances;
  /** Folders that tools may access besides the session's own; "all": no limit. */
  readonly folders: readonly string[] | "all";
  readonly consented: readonly string[];
  /** The ceiling of that session. */
  readonly above?: Ceiling;
}

/** Names that rules may use in every session. */
export const builtinNames: RuleNames = {
  tools: accessKinds,
  servers: [],
  customTools: [],
};

/** Rules from settings files. An invalid rule of a project causes a notice, not an error. */
export interface WrittenRules {
  readonly rules: readonly SettingsRule[];
  notice(message: string): void;
}

interface PolicyFolders {
  readonly roots: readonly string[];
  readonly stateRoot: string;
  readonly writable: readonly string[];
  readonly servers?: readonly string[];
  /** The folders whose protected names are followed (default: the roots). */
  readonly workspace?: readonly string[];
}

/** Returns the policy. Throws a usage error that names the flag of an invalid rule. */
export function policyOf(request: PermissionFlags, folders: PolicyFolders, written?: WrittenRules): Policy {
  const names: RuleNames = { ...builtinNames, servers: folders.servers ?? [] };
  const { allowTools = [], denyTools = [], allowUrls = [], denyUrls = [] } = request;
  const tools = (effect: "allow" | "deny", list: readonly string[]): Rule[] =>
    list.flatMap((text) => parseRules(text, { effect, source: { name: `--${effect}-tool` } }, names));
  const urls = (effect: "allow" | "deny", list: readonly string[]): Rule[] =>
    list.map((text) => parseUrlRule(text, { effect, source: { name: `--${effect}-url` } }));
  return {
    rules: usable(() => [
      ...tools("deny", denyTools),
      ...tools("allow", allowTools),
      ...urls("deny", denyUrls),
      ...urls("allow", allowUrls),
      ...(written ? writtenRules(written, names) : []),
    ]),
    sessionApprovals: [],
    locationApprovals: [],
    consented: request.consentPaths ?? [],
    allowances: {
      allTools: request.allTools ?? false,
      allPaths: request.allPaths ?? false,
      allUrls: request.allUrls ?? false,
      allReads: false,
      askReads: request.askReads ?? false,
    },
    roots: folders.roots,
    protectedPaths: {
      stateRoot: realPathOf(folders.stateRoot, "/"),
      writable: [...new Set(folders.writable.flatMap((path) => [path, realPathOf(path, "/")]))],
      ...linkedPaths(folders.workspace ?? folders.roots),
    },
    resolvePath: realPathOf,
    isUnsettled,
    exists,
  };
}

/**
 * Returns a check of read denials from flags and settings, for files read before a session has its policy. Invalid
 * rules are skipped here and reported elsewhere.
 */
export function mayReadBy(
  denyTools: readonly string[],
  written: readonly SettingsRule[],
  cwd: string,
): ((path: string) => boolean) | undefined {
  const texts = [...denyTools, ...written.filter(({ effect }) => effect === "deny").map(({ text }) => text)];
  const rules = texts.flatMap((text) => {
    try {
      return parseRules(text, { effect: "deny", source: { name: "a rule" } }, builtinNames);
    } catch (error) {
      if (error instanceof RuleError) return [];
      throw error;
    }
  });
  const denials = readDenials({ rules });
  if (denials.length === 0) return undefined;
  const protectedPaths = { stateRoot: "/", writable: [], gitFolders: [], linkTargets: [] };
  const scope = { roots: [], protectedPaths, resolvePath: realPathOf, isUnsettled, exists };
  return (path) =>
    !denials.some(({ target }) => {
      const rule = target.kind === "read" ? target.path : undefined;
      return rule === undefined || pathRuleMatches(scope, { rule, path, cwd, refusing: true });
    });
}

/** Parses a rule of a client program: `{kind, argument}` means `kind(argument)`. */
export function clientRule(
  rule: { readonly kind: string; readonly argument: string | null },
  effect: "allow" | "deny",
  servers: readonly string[],
): Rule {
  const kind = rule.kind === "commands" ? "shell" : rule.kind;
  const text = rule.argument === null ? kind : `${kind}(${rule.argument})`;
  const [parsed] = usable(() => [
    parseRule(text, { effect, source: { name: "the client" } }, { ...builtinNames, servers }),
  ]);
  if (!parsed) throw new TroupeError("usage", `The rule ${text} is not a rule that troupe knows.`);
  return parsed;
}

/** Parses an allow rule as users write it. Throws a `TroupeError` if it is invalid. */
export function allowRule(text: string, source: string, servers: readonly string[]): Rule {
  const [rule] = usable(() => [
    parseRule(text, { effect: "allow", source: { name: source } }, { ...builtinNames, servers }),
  ]);
  if (!rule) throw new TroupeError("usage", `The rule ${text} is not a rule that troupe knows.`);
  return rule;
}

function writtenRules({ rules, notice }: WrittenRules, names: RuleNames): Rule[] {
  return rules.flatMap(({ text, effect, scope, source }) => {
    try {
      return parseRules(text, { effect, source }, names);
    } catch (error) {
      if (!(error instanceof RuleError) || scope === "user") throw error;
      notice(error.message);
      return [];
    }
  });
}

function usable(parse: () => Rule[]): Rule[] {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof RuleError)) throw error;
    throw new TroupeError("usage", error.message, { cause: error });
  }
}
