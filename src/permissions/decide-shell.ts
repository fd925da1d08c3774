/** The decision on a shell command: all of its parts must be allowed, and any of them can be refused. */
import { approvesCommand } from "./approvals.ts";
import { baseName } from "./fold.ts";
import { pathRuleMatches } from "./path-scope.ts";
import { byRule, type Decision, isInRoots, type PermissionQuestion, type Policy } from "./policy.ts";
import { protectionOfBoth } from "./protected-paths.ts";
import type { Rule } from "./rules.ts";
import type { ShellAnalysis, ShellCommand } from "./shell/analyse.ts";
import { patternAllows, patternRefuses, patternStrays } from "./shell/match-command.ts";
import { changesItsOperands } from "./shell/programs.ts";
import { urlMatches } from "./urls.ts";

const DEVICES = new Set(["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "/dev/stdin"]);

export function decideShell(policy: Policy, question: PermissionQuestion): Decision {
  const { analysis } = question;
  if (analysis === undefined) return { decision: "deny", by: "policy", reason: "the command was not analysed" };
  if (analysis.exceeded !== undefined) {
    return { decision: "deny", by: "policy", reason: `the command cannot be checked: ${analysis.exceeded}` };
  }
  const shell: ShellCase = { policy, question, analysis, rules: rulesFor(policy, question) };
  const protection = protectedTarget(shell);
  if (protection?.decision === "deny") return protection;
  return (
    refusal(shell) ??
    protection ??
    openQuestion(shell) ??
    outsideRoots(shell) ??
    allowance(shell) ?? { decision: "ask", by: "default", reason: uncovered(analysis) }
  );
}

interface ShellCase {
  readonly policy: Policy;
  readonly question: PermissionQuestion;
  readonly analysis: ShellAnalysis;
  readonly rules: readonly Rule[];
}

function rulesFor(policy: Policy, question: PermissionQuestion): Rule[] {
  return policy.rules.filter((rule) => rule.tool === undefined || rule.tool === question.toolName);
}

/** Writing to a protected name by redirection is refused; naming one to a program that changes files is asked about. */
function protectedTarget({ policy, question, analysis }: ShellCase): Decision | undefined {
  const folders = [question.cwd, ...analysis.directories.map((folder) => policy.resolvePath(folder, question.cwd))];
  const protectionAt = (path: string): string | undefined => {
    const found = folders.map((folder) =>
      protectionOfBoth({ real: policy.resolvePath(path, folder), written: path }, policy.places),
    );
    return found.find((one) => one === "deny") ?? found.find((one) => one === "ask");
  };
  for (const { target, write } of analysis.redirections) {
    const protection = write ? protectionAt(target) : undefined;
    if (protection === "deny")
      return { decision: "deny", by: "policy", reason: `${target} is protected from being written` };
    if (protection === "ask")
      return { decision: "ask", by: "policy", reason: `a person must agree to write ${target}` };
  }
  for (const { words } of analysis.commands) {
    if (!changesItsOperands(baseName(words[0] ?? ""))) continue;
    const named = words
      .slice(1)
      .find((word) => !word.startsWith("-") && protectionAt(word.replace(/^of=/, "")) !== undefined);
    if (named !== undefined) return { decision: "ask", by: "policy", reason: `a person must agree to change ${named}` };
  }
  return undefined;
}

function refusal(shell: ShellCase): Decision | undefined {
  const rule = shell.rules.find((one) => one.effect === "deny" && refuses(one, shell) === "yes");
  return rule && byRule("deny", rule);
}

/** What a deny rule could be about but cannot be told from the text, and what an ask rule names. */
function openQuestion(shell: ShellCase): Decision | undefined {
  const { analysis } = shell;
  for (const rule of shell.rules) {
    if (rule.effect === "allow") continue;
    const match = refuses(rule, shell);
    if (match === "no") continue;
    if (rule.effect === "ask") return byRule("ask", rule);
    return { decision: "ask", by: "rule", rule, reason: `it may run what the rule ${rule.text} denies` };
  }
  const denying = shell.rules.find((rule) => rule.effect !== "allow" && rule.target.kind === "shell");
  if (denying === undefined || !analysis.hidden) return undefined;
  const reason = `what it runs cannot be told from its text (${analysis.opaqueReasons.at(-1) ?? "it is opaque"})`;
  return { decision: "ask", by: "rule", rule: denying, reason };
}

function refuses(rule: Rule, { policy, question, analysis }: ShellCase): "yes" | "maybe" | "no" {
  const { target } = rule;
  switch (target.kind) {
    case "shell": {
      if (target.words === undefined) return "yes";
      let result: "maybe" | "no" = patternStrays(target, analysis) ? "maybe" : "no";
      for (const command of analysis.commands) {
        const match = patternRefuses(target, command);
        if (match === "yes") return "yes";
        if (match === "maybe") result = "maybe";
      }
      return result;
    }
    case "read":
    case "write": {
      const { path: denied } = target;
      if (denied === undefined) return target.kind === "write" && writes(analysis) ? "yes" : "no";
      const hits = (path: string): boolean =>
        pathRuleMatches(policy, { rule: denied, path, cwd: question.cwd, refusing: true });
      const words = analysis.commands.flatMap((command) => command.words.slice(1));
      return [...analysis.redirections.map((one) => one.target), ...analysis.paths, ...words].some(hits) ? "yes" : "no";
    }
    case "url": {
      const { pattern } = target;
      if (pattern === undefined) return analysis.urls.length > 0 ? "yes" : "no";
      return analysis.urls.some((url) => urlMatches(pattern, url, true)) ? "yes" : "no";
    }
    default:
      return "no";
  }
}

function writes(analysis: ShellAnalysis): boolean {
  return analysis.redirections.some((one) => one.write && !DEVICES.has(one.target));
}

/** Whether a word is a path can only be guessed; one that leads nowhere is left to the command, unless it creates. */
function outsideRoots({ policy, question, analysis }: ShellCase): Decision | undefined {
  const { cwd } = question;
  const targets = analysis.redirections.map((one) => one.target);
  const programs = new Set(analysis.commands.map((command) => command.words[0]));
  const creates = analysis.commands.some((command) => changesItsOperands(baseName(command.words[0] ?? "")));
  const isOutside = (path: string): boolean => !DEVICES.has(path) && !isInRoots(policy, path, cwd);
  const isReal = (path: string): boolean => creates || policy.isThere(policy.resolvePath(path, cwd));
  const outside =
    [...targets, ...analysis.directories].find(isOutside) ??
    analysis.paths.find((path) => !programs.has(path) && isOutside(path) && isReal(path));
  if (outside === undefined) return undefined;
  return { decision: "ask", by: "default", reason: `${outside} is outside the allowed folders` };
}

function allowance(shell: ShellCase): Decision | undefined {
  const { policy, question, analysis } = shell;
  const allowing = shell.rules.filter((rule) => rule.effect === "allow");
  const everything = allowing.find((rule) => rule.target.kind === "shell" && rule.target.words === undefined);
  if (everything !== undefined) return byRule("allow", everything);
  const piecewise = analysis.plain && redirectionsAllowed(shell) ? everyCommandAllowed(shell, allowing) : undefined;
  if (piecewise !== undefined) return piecewise;
  if (policy.mode.allTools) return { decision: "allow", by: "mode", reason: "every tool is allowed" };
  const onlyReads = analysis.plain && !writes(analysis) && analysis.commands.every((command) => command.readOnly);
  if (policy.mode.allReads && onlyReads && analysis.commands.length > 0) {
    return { decision: "allow", by: "mode", reason: `read-only command in ${question.cwd}` };
  }
  return undefined;
}

/** A file that is written by redirection needs what the same write by a file tool would need. */
function redirectionsAllowed({ policy, question, analysis, rules }: ShellCase): boolean {
  if (!writes(analysis)) return true;
  // After a change of folder a relative target is not where it seems to be.
  if (analysis.directories.length > 0) return false;
  const approved = [...policy.session, ...policy.location].some((approval) => approval.kind === "write");
  if (approved) return true;
  const covered = (path: string): boolean =>
    rules.some(({ effect, tool, target }) => {
      if (effect !== "allow" || tool !== undefined || target.kind !== "write") return false;
      if (target.path === undefined) return true;
      return pathRuleMatches(policy, { rule: target.path, path, cwd: question.cwd, refusing: false });
    });
  return analysis.redirections.every((one) => !one.write || DEVICES.has(one.target) || covered(one.target));
}

function everyCommandAllowed({ policy, analysis }: ShellCase, allowing: readonly Rule[]): Decision | undefined {
  let weakest: Decision | undefined;
  const rank = { rule: 0, session: 1, location: 2 } as const;
  for (const command of analysis.commands) {
    if (command.transparent) continue;
    const cover = coverOf(command, policy, allowing);
    if (cover === undefined) return undefined;
    if (weakest === undefined || rank[cover.by] > rank[weakest.by as keyof typeof rank]) weakest = cover.decision;
  }
  return weakest;
}

function coverOf(
  command: ShellCommand,
  policy: Policy,
  allowing: readonly Rule[],
): { by: "rule" | "session" | "location"; decision: Decision } | undefined {
  const rule = allowing.find(({ target }) => target.kind === "shell" && patternAllows(target, command));
  if (rule !== undefined) return { by: "rule", decision: byRule("allow", rule) };
  for (const by of ["session", "location"] as const) {
    if (policy[by].some((approval) => approvesCommand(approval, command))) {
      return { by, decision: { decision: "allow", by, reason: `approved for this ${by}` } };
    }
  }
  return undefined;
}

function uncovered(analysis: ShellAnalysis): string {
  if (analysis.plain) return "no rule or approval covers every command in it";
  return `it is not a plain command: ${analysis.opaqueReasons.join(", ")}`;
}
