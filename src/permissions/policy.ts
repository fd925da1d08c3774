/**
 * The permission engine: what may be attempted. `rules.ts` is the syntax people write, `shell/analyse.ts` says what a
 * command would do, `decide.ts` is the one pure decision, `grants.ts` remembers answers, `request.ts` is what a person
 * is shown, and here is what a decision is made of. Nothing in this folder is a boundary; the sandbox is.
 */
import type { Access } from "../protocol/permission.ts";
import type { Approval } from "./approvals.ts";
import type { DeniedFiles } from "./denied-files.ts";
import { isBelow, type PathScope } from "./path-scope.ts";
import { type Rule, showSource } from "./rules.ts";
import type { ShellAnalysis } from "./shell/analyse.ts";

export interface Policy extends PathScope {
  readonly rules: readonly Rule[];
  /** Approved by a person, for this session and for this place. */
  readonly session: readonly Approval[];
  readonly location: readonly Approval[];
  readonly mode: Mode;
  /** Paths that a person must agree to change, and has agreed to in advance; written like the paths of rules. */
  readonly consented?: readonly string[];
  /** Holds denials for shell commands beside their text; absent where nothing does. */
  readonly containment?: Containment;
}

/** How shell commands run, as far as known. */
export interface Containment {
  /** Tells which denials hold for the command, whatever its text says. */
  enforced(command: { readonly shellId?: string; readonly unsandboxed?: boolean }): Promise<(rule: Rule) => boolean>;
  /** True when git has stored a file that the rule denies. */
  stored(rule: Rule): boolean;
  /**
   * True when the command would run in a sandbox of its own that hides every denied file and has no network. Then it may
   * run with `readOnly`, which fails rather than run it without such a sandbox.
   */
  confines(command: { readonly shellId?: string; readonly unsandboxed?: boolean }): Promise<boolean>;
  /** Makes this call run where it can change nothing. */
  readOnly(call: ConfinedCall): void;
  /** The files that read rules deny. */
  files(): Promise<DeniedFiles>;
  /** Set when commands run without a sandbox: what does not hold then, for people to read. */
  readonly warning: string | undefined;
}

export interface ConfinedCall {
  readonly toolCallId: string;
  readonly command: string;
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
  /** For a command in a shell that was used before: it may have changed its folder. */
  readonly folderUnknown?: boolean;
  /** True when the sandbox holds this denial for the command, whatever its text says; absent when nothing does. */
  readonly enforced?: (rule: Rule) => boolean;
  /** True when git has stored a file that this rule denies: then hiding the file does not hide its content. */
  readonly stored?: (rule: Rule) => boolean;
  /** True when the command can run in a sandbox without network, in which nothing can be changed; see `Containment.confines`. */
  readonly confined?: boolean;
  /** Other names in the allowed folders of the file that is touched. */
  readonly aliases?: readonly string[];
  /** Shown with the request: how the command would run. */
  readonly warning?: string;
}

export interface Decision {
  readonly decision: "allow" | "deny" | "ask";
  readonly by: "policy" | "rule" | "session" | "location" | "mode" | "default";
  readonly rule?: Rule;
  /** One sentence without a final full stop, for events and people. */
  readonly reason: string;
}

/** The policy with other parts. Its rules stay those of the moment. */
export function policyWith(policy: Policy, other: Partial<Omit<Policy, "rules">>): Policy {
  return {
    ...policy,
    ...other,
    get rules() {
      return policy.rules;
    },
  };
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
