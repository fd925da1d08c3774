/** Decides on a shell command. All of its parts must be allowed; any of them can be refused. */
import { dirname, join } from "node:path";
import { approvesCommand } from "./approvals.ts";
import { isDevice, isSink } from "./devices.ts";
import { isBelow, pathRuleMatches, refusalCovers } from "./path-scope.ts";
import { byRule, type Decision, outsideFolders, type PermissionQuestion, type Policy } from "./policy.ts";
import { protectionOfBoth } from "./protected-paths.ts";
import type { Rule } from "./rules.ts";
import type { ShellAnalysis, ShellCommand } from "./shell/analyse.ts";
import { onlyShowsFiles, usesGit } from "./shell/free-reads.ts";
import { patternAllows, patternRefuses, patternStrays } from "./shell/match-command.ts";
import {
  connectsUnnamed,
  mayShowHistory,
  readsUnnamed,
  showsContent,
  writesNamed,
  writesUnnamed,
} from "./shell/reach.ts";
import { rearranges } from "./shell/rearranging.ts";
import { type NamedPath, namedPaths } from "./shell-paths.ts";
import { urlMatches } from "./urls.ts";

export function decideShell(policy: Policy, question: PermissionQuestion): Decision {
  const { analysis } = question;
  if (analysis === undefined) return { decision: "deny", by: "policy", reason: "the command was not analysed" };
  if (analysis.exceeded !== undefined) {
    return { decision: "deny", by: "policy", reason: `the command cannot be checked: ${analysis.exceeded}` };
  }
  const paths = namedPaths(policy, question.cwd, analysis);
  const shell: ShellCase = { policy, question, analysis, paths, rules: rulesFor(policy, question) };
  const protection = protectedTarget(shell);
  if (protection?.decision === "deny") return protection;
  return (
    refusal(shell) ?? protection ?? openQuestion(shell) ?? outsideRoots(shell) ?? allowance(shell) ?? uncovered(shell)
  );
}

interface ShellCase {
  readonly policy: Policy;
  readonly question: PermissionQuestion;
  readonly analysis: ShellAnalysis;
  readonly paths: readonly NamedPath[];
  readonly rules: readonly Rule[];
}

function rulesFor(policy: Policy, question: PermissionQuestion): Rule[] {
  return policy.rules.filter((rule) => rule.tool === undefined || rule.tool === question.toolName);
}

/** Denies a redirection into a protected name. Asks when a program that changes files is given a protected name. */
function protectedTarget({ policy, paths }: ShellCase): Decision | undefined {
  let asked: Decision | undefined;
  for (const { text, real, write, by, unsettled } of paths) {
    if (!write) continue;
    const found = real.map((path) => protectionOfBoth({ real: path, written: text }, policy.protectedPaths));
    if (by === "redirection" && found.includes("deny"))
      return { decision: "deny", by: "policy", reason: `${text} is protected from being written` };
    const verb = by === "redirection" ? "write" : "change";
    const isAgreed = !found.includes("deny") && real.every((path) => isConsented(policy, path));
    if (found.some((one) => one !== undefined) && !isAgreed)
      asked ??= { decision: "ask", by: "policy", reason: `the user must agree to ${verb} ${text}` };
    if (unsettled)
      asked ??= { decision: "ask", by: "policy", reason: `the target of ${text} is only known when the command runs` };
  }
  return asked;
}

function isConsented(policy: Policy, path: string): boolean {
  const cwd = policy.roots[0] ?? "/";
  return policy.consented?.some((rule) => pathRuleMatches(policy, { rule, path, cwd, refusing: false })) ?? false;
}

function refusal(shell: ShellCase): Decision | undefined {
  const rule = shell.rules.find((one) => one.effect === "deny" && refuses(one, shell) === "yes");
  return rule && byRule("deny", rule);
}

const VERBS: Readonly<Record<string, string>> = { read: "read", write: "change", url: "reach" };

/** Asks when a deny rule might apply but the text leaves it open, and when an ask rule applies. */
function openQuestion(shell: ShellCase): Decision | undefined {
  const { analysis } = shell;
  for (const rule of shell.rules) {
    if (rule.effect === "allow") continue;
    const match = refuses(rule, shell);
    if (match === "no") continue;
    if (rule.effect === "ask") return byRule("ask", rule);
    return {
      decision: "ask",
      by: "rule",
      rule,
      reason: `it may ${VERBS[rule.target.kind] ?? "run"} what the rule ${rule.text} denies`,
    };
  }
  const denying = shell.rules.find((rule) => rule.effect !== "allow" && rule.target.kind === "shell");
  if (denying === undefined || !analysis.hidden) return undefined;
  const reason = `its text does not show what it runs (${analysis.opaqueReasons.at(-1) ?? "it is opaque"})`;
  return { decision: "ask", by: "rule", rule: denying, reason };
}

function refuses(rule: Rule, shell: ShellCase): "yes" | "maybe" | "no" {
  const { question, analysis } = shell;
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
    case "write":
      return refusesPaths(rule, { kind: target.kind, denied: target.path }, shell);
    case "url": {
      const { pattern } = target;
      const names = (url: string): boolean => pattern === undefined || urlMatches(pattern, url, true);
      if (analysis.urls.some(names)) return "yes";
      const isOpen = rule.effect === "deny" && connectsUnnamed(analysis) && !question.enforced?.(rule);
      return isOpen ? "maybe" : "no";
    }
    default:
      return "no";
  }
}

function refusesPaths(
  rule: Rule,
  target: { readonly kind: "read" | "write"; readonly denied: string | undefined },
  { policy, question, analysis, paths }: ShellCase,
): "yes" | "maybe" | "no" {
  const { kind, denied } = target;
  if (denied === undefined) {
    // Without a path the rule covers tools, and commands that are known to read or write.
    if (kind === "write" && (writes(analysis) || writesNamed(analysis))) return "yes";
    if (kind === "read" && analysis.plain && !showsContent(analysis)) return "no";
    return analysis.plain && kind === "write" ? "no" : "maybe";
  }
  const { cwd } = question;
  const covers = ({ text, real }: NamedPath): boolean =>
    real.some((path) => refusalCovers(policy, { rule: denied, real: path, written: text, cwd }));
  if (paths.some(covers)) return "yes";
  if (rule.effect !== "deny") return "no";
  const isOpen = kind === "read" ? readsUnnamed(analysis) : writesUnnamed(analysis);
  if (!isOpen) return "no";
  const isHidden = question.enforced?.(rule) === true;
  return isHidden && !(question.stored?.(rule) === true && mayShowHistory(analysis)) ? "no" : "maybe";
}

function writes(analysis: ShellAnalysis): boolean {
  return analysis.redirections.some((one) => one.write && !isSink(one.target));
}

/**
 * Asks about paths outside the allowed folders. Whether a word is a path is a guess: a word that names nothing is
 * ignored unless the command creates it.
 */
function outsideRoots({ policy, analysis, paths }: ShellCase): Decision | undefined {
  if (policy.allowances.allPaths || policy.roots.length === 0) return undefined;
  const programs = new Set(analysis.commands.map((command) => command.words[0]));
  const outside = paths.find(
    ({ text, real, by, counts, write }) =>
      by !== "program" &&
      counts &&
      !(by === "operand" && (programs.has(text) || isDevice(text, { write }))) &&
      real.some((path) => !isBelow(path, policy.roots)),
  );
  if (outside !== undefined) return outsideFolders(outside.text);
  const isLost = [...analysis.commands, ...analysis.redirections].some(({ folders }) => folders?.unknown);
  if (!isLost && !analysis.directories.includes("-")) return undefined;
  return { decision: "ask", by: "policy", reason: "the folder it changes into is only known when it runs" };
}

function allowance(shell: ShellCase): Decision | undefined {
  const { policy, question, analysis } = shell;
  const plain = unclear(shell) === undefined;
  const allowing = shell.rules.filter((rule) => rule.effect === "allow");
  const everything = allowing.find((rule) => rule.target.kind === "shell" && rule.target.words === undefined);
  if (everything !== undefined) return byRule("allow", everything);
  const piecewise = plain && redirectionsAllowed(shell) ? everyCommandAllowed(shell, allowing) : undefined;
  if (piecewise !== undefined) return piecewise;
  if (policy.allowances.allTools) return { decision: "allow", by: "mode", reason: "every tool is allowed" };
  const onlyReads = plain && !writes(analysis) && analysis.commands.every((command) => command.readOnly);
  if (policy.allowances.allReads && onlyReads && analysis.commands.length > 0) {
    return { decision: "allow", by: "mode", reason: `read-only command in ${question.cwd}` };
  }
  if (!isFreeRead(shell) || !plain) return undefined;
  const reason = "it only reads in the allowed folders, in the sandbox";
  return { decision: "allow", by: "default", reason, confined: true };
}

/**
 * Returns true for a command that needs no rule: the sandbox prevents all changes and network access, whatever the text
 * hides.
 */
function isFreeRead({ policy, question, analysis }: ShellCase): boolean {
  if (question.confined !== true || !onlyShowsFiles(analysis) || writes(analysis)) return false;
  return !usesGit(analysis) || hasRepository(policy, question.cwd);
}

/**
 * Returns true when the git folder of `cwd` is in the allowed folders. Otherwise the history could show files outside
 * them.
 */
function hasRepository(policy: Policy, cwd: string): boolean {
  if (policy.allowances.allPaths || policy.roots.length === 0) return true;
  for (let folder = cwd; isBelow(folder, policy.roots); folder = dirname(folder)) {
    if (policy.exists(join(folder, ".git"))) return true;
    if (folder === dirname(folder)) break;
  }
  return false;
}

/** Returns why the text does not show everything the command does, or undefined when it does. */
function unclear({ question, analysis, paths }: ShellCase): string | undefined {
  if (!analysis.plain) return analysis.opaqueReasons.join(", ");
  if (rearranges(analysis, paths)) return "it writes after it has moved files or made links";
  const isSomewhere = paths.some(
    ({ text, by, counts, write }) => by !== "program" && counts && (write || /[/.~]/.test(text)),
  );
  if (question.folderUnknown && isSomewhere) return "its shell may be in another folder";
  return undefined;
}

/** A file written by redirection needs the same permission as a write by a file tool. */
function redirectionsAllowed({ policy, question, analysis, rules }: ShellCase): boolean {
  if (!writes(analysis)) return true;
  // After a change of folder a relative target may be in another folder.
  if (analysis.directories.length > 0) return false;
  const approved = [...policy.sessionApprovals, ...policy.locationApprovals].some(
    (approval) => approval.kind === "write",
  );
  if (approved) return true;
  const covered = (path: string): boolean =>
    rules.some(({ effect, tool, target }) => {
      if (effect !== "allow" || tool !== undefined || target.kind !== "write") return false;
      if (target.path === undefined) return true;
      return pathRuleMatches(policy, { rule: target.path, path, cwd: question.cwd, refusing: false });
    });
  return analysis.redirections.every((one) => !one.write || isSink(one.target) || covered(one.target));
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
    if (policy[`${by}Approvals`].some((approval) => approvesCommand(approval, command))) {
      return { by, decision: { decision: "allow", by, reason: `approved for this ${by}` } };
    }
  }
  return undefined;
}

function uncovered(shell: ShellCase): Decision {
  const open = { decision: "ask", by: "default" } as const;
  const why = unclear(shell);
  return why === undefined
    ? { ...open, reason: "no rule or approval covers every command in it" }
    : { ...open, reason: `it is not a plain command: ${why}`, code: "not_plain" };
}
