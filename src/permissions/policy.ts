/**
 * The permission engine: what may be attempted. `rules.ts` is the syntax people write, `shell/analyse.ts` says what a
 * command would do, `decide.ts` is the one pure decision, `grants.ts` remembers answers, `request.ts` is what a person
 * is shown, and here is what a decision is made of. Nothing in this folder is a boundary; the sandbox is.
 */
import type { Access } from "../protocol/permission.ts";
import type { Approval } from "./approvals.ts";
import { isBelow, type PathScope } from "./path-scope.ts";
import { type Rule, showSource } from "./rules.ts";
import type { ShellAnalysis } from "./shell/analyse.ts";

export interface Policy extends PathScope {
  readonly rules: readonly Rule[];
  /** Approved by a person, for this session and for this place. */
  readonly session: readonly Approval[];
  readonly location: readonly Approval[];
  readonly mode: Mode;
}

export interface Mode {
  readonly allTools: boolean;
  readonly allPaths: boolean;
  readonly allUrls: boolean;
  /** Read-only commands run without a question. */
  readonly allReads: boolean;
  /** Reads inside the roots are asked about too, because a client wants to decide. */
  readonly askReads: boolean;
}

export interface PermissionQuestion {
  readonly access: Access;
  /** The tool that is called. */
  readonly toolName: string;
  readonly cwd: string;
  /** Present for shell commands. */
  readonly analysis?: ShellAnalysis;
}

export interface Decision {
  readonly decision: "allow" | "deny" | "ask";
  readonly by: "policy" | "rule" | "session" | "location" | "mode" | "default";
  readonly rule?: Rule;
  /** One sentence without a final full stop, for events and people. */
  readonly reason: string;
}

export function byRule(decision: Decision["decision"], rule: Rule): Decision {
  const verbs = { allow: "allowed", deny: "denied", ask: "to be asked about" } as const;
  return {
    decision,
    by: "rule",
    rule,
    reason: `${verbs[decision]} by the rule ${rule.text} (${showSource(rule.source)})`,
  };
}

export function isInRoots(policy: Policy, path: string, cwd: string): boolean {
  if (policy.mode.allPaths || policy.roots.length === 0) return true;
  return isBelow(policy.resolvePath(path, cwd), policy.roots);
}
