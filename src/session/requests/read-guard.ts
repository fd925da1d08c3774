import { relative, resolve } from "node:path";
import { DeniedFileFinder } from "../../permissions/denied-files.ts";
import { isBelow, pathRuleMatches } from "../../permissions/path-scope.ts";
import type { Policy } from "../../permissions/policy.ts";
import type { LeftOut, ReadGuard } from "../../tools/files/read-guard.ts";

const MAX_EXCLUDED = 400;

/** Hides from searches the files that rules deny to read, or that would need a question of their own. */
export function readGuard(policy: Policy, cwd: string): ReadGuard {
  const finder = new DeniedFileFinder(policy, cwd);
  return {
    denies: (path, toolName) =>
      policy.rules.some(({ effect, tool, target }) => {
        if (effect !== "deny" || target.kind !== "read" || (tool !== undefined && tool !== toolName)) return false;
        const { path: rule } = target;
        const readings = [path, resolve(cwd, path)];
        return (
          rule === undefined ||
          readings.some((one) => pathRuleMatches(policy, { rule, path: one, cwd, refusing: true }))
        );
      }),
    async forSearch({ folder, toolName }) {
      const rules = policy.rules.flatMap(({ effect, tool, target }) => {
        const isMeant = effect !== "allow" && target.kind === "read" && (tool === undefined || tool === toolName);
        if (!isMeant || target.path === undefined) return [];
        // The ask rules for this folder were answered before the search.
        const isAsked = pathRuleMatches(policy, { rule: target.path, path: folder, cwd, refusing: true });
        return isAsked ? [] : [target.path];
      });
      if (rules.length === 0) return undefined;
      const { paths, complete } = await (policy.containment?.files() ?? finder.find());
      return leftOut({ policy, cwd, rules, complete, folder: policy.resolvePath(folder, cwd), denied: paths });
    },
  };
}

function leftOut(parts: {
  policy: Policy;
  cwd: string;
  rules: readonly string[];
  folder: string;
  denied: readonly string[];
  complete: boolean;
}): LeftOut {
  const { policy, cwd, rules, folder } = parts;
  const below = parts.denied.filter((path) => isBelow(path, [folder]));
  const answers = new Map<string, boolean>();
  const hiddenPaths = new Set<string>();
  const isHidden = (path: string): boolean => {
    const real = policy.resolvePath(path, cwd);
    const isFound = isBelow(real, below);
    const hidden = isFound || rules.some((rule) => pathRuleMatches(policy, { rule, path, cwd, refusing: true }));
    if (hidden && !isFound) hiddenPaths.add(real);
    return hidden;
  };
  return {
    excluded: exclusions(rules, below, folder),
    found: below.length,
    complete: parts.complete,
    hides(path) {
      const hidden = answers.get(path) ?? isHidden(path);
      answers.set(path, hidden);
      return hidden;
    },
    get kept() {
      return hiddenPaths.size;
    },
  };
}

/** Returns exclusions by rule and by path: hard links of denied files have other names. */
function exclusions(rules: readonly string[], denied: readonly string[], folder: string): string[] {
  const names = rules.filter((rule) => !/^[/~]|(?:^|\/)\.\.(?:\/|$)/.test(rule));
  const patterns = names.map((rule) => `**/${escapedRule(rule.replace(/^(?:\.\/)+/, "").replace(/\/+$/, ""))}`);
  const paths = denied.map((path) => `/${escapePattern(relative(folder, path))}`);
  return [...new Set([...patterns, ...paths])].slice(0, MAX_EXCLUDED).flatMap((one) => [`!${one}`, `!${one}/**`]);
}

/** Keeps `*` and `?`, which are wildcards in a rule. */
const escapedRule = (rule: string): string => rule.replace(/[\\[\]{}!]/g, "\\$&");

function escapePattern(path: string): string {
  return path.replace(/[\\*?[\]{}!]/g, "\\$&");
}
