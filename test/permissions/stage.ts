/** What the tests of the permission engine share: names, rules and a policy around a folder. */

import type { Approval } from "../../src/permissions/approvals.ts";
import { decide } from "../../src/permissions/decide.ts";
import type { Allowances, Decision, PermissionQuestion, Policy } from "../../src/permissions/policy.ts";
import { exists, isUnsettled, realPathOf } from "../../src/permissions/resolve-path.ts";
import { parseRule, type Rule, type RuleEffect, type RuleNames } from "../../src/permissions/rules.ts";
import { analyseShell, loadShellParser } from "../../src/permissions/shell/analyse.ts";
import type { Access } from "../../src/protocol/permission.ts";

export const names: RuleNames = {
  tools: { bash: "shell", view: "read", grep: "read", create: "write", edit: "write", web_fetch: "url" },
  servers: ["github", "read"],
  customTools: ["deploy"],
};

export const parser = await loadShellParser();

export function rules(effect: RuleEffect, ...texts: string[]): Rule[] {
  return texts.map((text) => parseRule(text, { effect, source: { name: `--${effect}-tool` } }, names));
}

/** The rules against which the shell cases of the security design are stated. */
export const baseline: readonly Rule[] = [
  ...rules("allow", "shell(echo *)", "shell(grep *)", "shell(git status)", "shell(git log *)", "shell(npm test)"),
  ...rules("deny", "shell(curl *)", "shell(rm *)"),
];

export interface PolicyParts {
  rules?: readonly Rule[];
  session?: readonly Approval[];
  location?: readonly Approval[];
  allowances?: Partial<Allowances>;
  root?: string;
}

const ROOT = "/srv/project";

export function policy(parts: PolicyParts = {}): Policy {
  const root = parts.root ?? ROOT;
  return {
    rules: parts.rules ?? [],
    sessionApprovals: parts.session ?? [],
    locationApprovals: parts.location ?? [],
    allowances: {
      allTools: false,
      allPaths: false,
      allUrls: false,
      allReads: false,
      askReads: false,
      ...parts.allowances,
    },
    roots: [root],
    protectedPaths: {
      stateRoot: "/srv/state",
      writable: ["/srv/state/session-state/1/files"],
      gitFolders: ["/srv/main/.git"],
      linkTargets: ["/srv/project/linked"],
    },
    resolvePath: realPathOf,
    isUnsettled,
    exists,
  };
}

export const yolo: Partial<Allowances> = { allTools: true, allPaths: true, allUrls: true };

export function shellQuestion(command: string, cwd = ROOT): PermissionQuestion {
  const access: Access = { kind: "shell", command, cwd, intention: "" };
  return { access, toolName: "bash", cwd, analysis: analyseShell(parser, command) };
}

export function decideCommand(command: string, parts: PolicyParts = {}): Decision {
  return decide(policy(parts), shellQuestion(command, parts.root));
}

export function decideAccess(access: Access, parts: PolicyParts = {}, toolName = "view"): Decision {
  return decide(policy(parts), { access, toolName, cwd: parts.root ?? ROOT });
}

/** "deny rule" or "allow mode": what most tables compare. */
export function verdict(decision: Decision): string {
  return `${decision.decision} ${decision.by}`;
}
