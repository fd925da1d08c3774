/**
 * The permission engine decides what may be attempted. This file has the types of a decision.
 * - `rules.ts`: the syntax of rules.
 * - `shell/analyse.ts`: what a command would do.
 * - `decide.ts`: the decision, a pure function.
 * - `grants.ts`: remembered answers.
 * - `request.ts`: the request shown to the user.
 *
 * Judging commands by their text is not a boundary; the sandbox is.
 */
import type { Access } from "../protocol/permission.ts";
import type { Approval } from "./approvals.ts";
import type { DeniedFiles } from "./denied-files.ts";
import { isBelow, type PermissionPathScope } from "./path-scope.ts";
import { type Rule, showSource } from "./rules.ts";
import type { ShellAnalysis } from "./shell/analyse.ts";

export interface Policy extends PermissionPathScope {
  readonly rules: readonly Rule[];
  /** Approved by the user, for this session and for this location. */
  readonly sessionApprovals: readonly Approval[];
  readonly locationApprovals: readonly Approval[];
  readonly allowances: Allowances;
  /** Protected paths that the user agreed in advance to change; written like the paths of rules. */
  readonly consented?: readonly string[];
  /** Enforces denials for shell commands beyond their text; absent when nothing does. */
  readonly containment?: Containment;
  /** The policy of the session that this one works for. What it does not allow is not allowed here. */
  readonly ceiling?: Omit<Policy, "sessionApprovals" | "locationApprovals" | "containment">;
}

/** How shell commands run, as far as known. */
export interface Containment {
  /** Returns a test for the denials that are enforced for the command, whatever its text. */
  enforced(command: { readonly shellId?: string; readonly unsandboxed?: boolean }): Promise<(rule: Rule) => boolean>;
  /** Returns true when git has stored a file that the rule denies. */
  stored(rule: Rule): boolean;
  /**
   * Returns true when the command would run in its own sandbox that hides every denied file and has no network. The
   * caller may then use `readOnly`, which makes the call fail when there is no such sandbox.
   */
  confines(command: { readonly shellId?: string; readonly unsandboxed?: boolean }): Promise<boolean>;
  /** Makes this call run in a sandbox that cannot change anything. */
  readOnly(call: ConfinedCall): void;
  /** Returns the files that read rules deny. */
  files(): Promise<DeniedFiles>;
  /** Set when commands run without a sandbox: a warning for the user that lists what is not enforced. */
  readonly warning: string | undefined;
}

export interface ConfinedCall {
  readonly toolCallId: string;
  readonly command: string;
}

/** Kinds of access that are allowed, or asked about, as a whole. In the log such a decision is `by: "mode"`. */
export interface Allowances {
  readonly allTools: boolean;
  readonly allPaths: boolean;
  readonly allUrls: boolean;
  /** Read-only commands run without a question. */
  readonly allReads: boolean;
  /** Asks about reads inside the roots too, because a client wants to decide. */
  readonly askReads: boolean;
}

export interface PermissionQuestion {
  readonly access: Access;
  /** The name of the called tool. */
  readonly toolName: string;
  readonly cwd: string;
  /** Present for shell commands. */
  readonly analysis?: ShellAnalysis;
  /** True for a command in a shell that was used before: it may be in another folder by now. */
  readonly folderUnknown?: boolean;
  /**
   * Returns true when the sandbox enforces this denial for the command, whatever its text. Absent when nothing does.
   */
  readonly enforced?: (rule: Rule) => boolean;
  /** Returns true when git has stored a file that this rule denies. Hiding the file then does not hide its content. */
  readonly stored?: (rule: Rule) => boolean;
  /** True when the command can run read-only in a sandbox without network; see `Containment.confines`. */
  readonly confined?: boolean;
  /** Other names of the accessed file in the allowed folders. */
  readonly aliases?: readonly string[];
  /** Shown with the request: how the command would run. */
  readonly warning?: string;
}

export interface Decision {
  readonly decision: "allow" | "deny" | "ask";
  readonly by: "policy" | "rule" | "session" | "location" | "mode" | "default";
  readonly rule?: Rule;
  /** One sentence without a final full stop, for events and users. */
  readonly reason: string;
  /** The cause of a denial, where the kind of access alone does not tell which flag would allow it. */
  readonly code?: "outside_folders" | "not_plain";
  /** Allowed only because the sandbox prevents changes: the caller must run the command read-only in it. */
  readonly confined?: true;
}

/** Returns the policy with some parts replaced. Its rules stay live: later changes are visible. */
export function policyWith(policy: Policy, other: Partial<Omit<Policy, "rules">>): Policy {
  return {
    ...policy,
    ...other,
    get rules() {
      return policy.rules;
    },
  };
}

export const outsideFolders = (path: string): Decision => ({
  decision: "ask",
  by: "policy",
  reason: `${path} is outside the allowed folders`,
  code: "outside_folders",
});

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
  if (policy.allowances.allPaths || policy.roots.length === 0) return true;
  return isBelow(policy.resolvePath(path, cwd), policy.roots);
}
