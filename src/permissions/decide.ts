/**
 * The permission decision. Order: protected files, deny rules, files that need consent, ask rules, allow rules,
 * approvals of the session and of the location, then the mode; see docs/how-to/permissions.md. A denial beats every
 * allowance, however broad. With a ceiling (the rules of the session that started this one) the stricter decision of
 * both holds. Pure: depends on its arguments only.
 */
import { resolve } from "node:path";
import { approves } from "./approvals.ts";
import { decideShell } from "./decide-shell.ts";
import { pathRuleMatches } from "./path-scope.ts";
import { byRule, type Decision, isInRoots, outsideFolders, type PermissionQuestion, type Policy } from "./policy.ts";
import { protectionOfBoth } from "./protected-paths.ts";
import type { Rule } from "./rules.ts";
import { urlMatches } from "./urls.ts";

export function decide(policy: Policy, question: PermissionQuestion): Decision {
  const own = decideAlone(policy, question);
  const { ceiling, sessionApprovals } = policy;
  if (!ceiling) return own;
  // The ceiling keeps this session's approvals, because people here answer its questions too.
  const above = decide({ ...ceiling, sessionApprovals, locationApprovals: [] }, question);
  return strictness(above) > strictness(own) ? above : own;
}

const strictness = ({ decision, confined }: Decision): number =>
  decision === "deny" ? 3 : decision === "ask" ? 2 : confined ? 1 : 0;

function decideAlone(policy: Policy, question: PermissionQuestion): Decision {
  const { access } = question;
  if (access.kind === "shell") return decideShell(policy, { ...question, access });
  const protection = protectedTarget(policy, question);
  if (protection?.decision === "deny") return protection;
  const rules = policy.rules.filter((rule) => ruleApplies(rule, question));
  const denying = firstMatch(rules, "deny", policy, question) ?? readDenial(policy, question);
  if (denying !== undefined) return byRule("deny", denying);
  const agreed = protection && access.kind === "write" ? consent(policy, access.path, question.cwd) : undefined;
  if (protection !== undefined && agreed === undefined) return protection;
  const asking = firstMatch(rules, "ask", policy, question);
  if (asking !== undefined) return byRule("ask", asking);
  if (agreed !== undefined) return agreed;
  const allowing = firstMatch(rules, "allow", policy, question);
  if (allowing !== undefined) return byRule("allow", allowing);
  return decideByApprovals(policy, question) ?? byModeOrDefault(policy, question);
}

/** Returns true when the rule is about this kind of access and this tool. */
function ruleApplies(rule: Rule, question: PermissionQuestion): boolean {
  return rule.target.kind === question.access.kind && (rule.tool === undefined || rule.tool === question.toolName);
}

/**
 * Returns the rule that denies reading the file. Editing shows the surrounding text, so a file that may not be read may
 * not be edited either. `create` may replace it.
 */
function readDenial(policy: Policy, { access, ...question }: PermissionQuestion): Rule | undefined {
  if (access.kind !== "write" || question.toolName === "create") return undefined;
  const reading: PermissionQuestion = { ...question, access: { kind: "read", path: access.path } };
  const rules = policy.rules.filter((rule) => ruleApplies(rule, reading));
  return firstMatch(rules, "deny", policy, reading);
}

/** Returns both readings of a path with `..`: file tools resolve it by text, but the kernel follows links first. */
function readingsOf(path: string, cwd: string): readonly string[] {
  const plain = resolve(cwd, path);
  return plain === path || !/\.\.|^~/.test(path) ? [path] : [plain, path];
}

/** Denies writing a protected file. Asks about a file that needs consent. */
function protectedTarget(policy: Policy, question: PermissionQuestion): Decision | undefined {
  const { access } = question;
  if (access.kind !== "write") return undefined;
  const written = access.written ?? access.path;
  const found = readingsOf(access.path, question.cwd).map((path) =>
    protectionOfBoth({ real: policy.resolvePath(path, question.cwd), written }, policy.protectedPaths),
  );
  if (found.includes("deny")) {
    const why = "it can run code later or change troupe's own rules";
    return { decision: "deny", by: "policy", reason: `${access.path} is protected: ${why}` };
  }
  if (found.includes("ask")) {
    return {
      decision: "ask",
      by: "policy",
      reason: `${access.path} decides what other programs run, so the user must agree`,
    };
  }
  return undefined;
}

/** Allows a path that the user agreed to in advance. */
function consent(policy: Policy, path: string, cwd: string): Decision | undefined {
  const rule = policy.consented?.find((one) =>
    readingsOf(path, cwd).every((reading) =>
      pathRuleMatches(policy, { rule: one, path: reading, cwd, refusing: false }),
    ),
  );
  if (rule === undefined) return undefined;
  return { decision: "allow", by: "rule", reason: `agreed to with --allow-consent-path ${rule}` };
}

function firstMatch(
  rules: readonly Rule[],
  effect: Rule["effect"],
  policy: Policy,
  question: PermissionQuestion,
): Rule | undefined {
  return rules.find((rule) => rule.effect === effect && ruleMatches(rule, policy, question));
}

function ruleMatches(rule: Rule, policy: Policy, question: PermissionQuestion): boolean {
  const { access, cwd } = question;
  const { target } = rule;
  const refusing = rule.effect !== "allow";
  switch (target.kind) {
    case "read":
    case "write": {
      if (access.kind !== target.kind) return false;
      const { path: rule } = target;
      if (rule === undefined) return refusing || isWithin(policy, access.path, cwd);
      const matches = (path: string): boolean => pathRuleMatches(policy, { rule, path, cwd, refusing });
      const readings = readingsOf(access.path, cwd);
      return refusing ? [...readings, ...(question.aliases ?? [])].some(matches) : readings.every(matches);
    }
    case "url":
      return (
        access.kind === "url" && (target.pattern === undefined || urlMatches(target.pattern, access.url, refusing))
      );
    case "mcp":
      return (
        access.kind === "mcp" &&
        access.serverName === target.server &&
        (target.tool === undefined || target.tool === access.toolName)
      );
    case "custom-tool":
      return access.kind === "custom-tool" && access.toolName === target.tool;
    case "memory":
    case "sandbox-off":
      return access.kind === target.kind;
    case "mcp-sampling":
      return access.kind === "mcp-sampling" && (target.server === undefined || target.server === access.serverName);
    case "agent":
      return access.kind === "agent" && (target.agent === undefined || sameName(target.agent, access.agentName));
    case "shell":
      return false;
  }
}

function isWithin(policy: Policy, path: string, cwd: string): boolean {
  return readingsOf(path, cwd).every((one) => isInRoots(policy, one, cwd));
}

/** Compares agent names without case, and with spaces and underscores as hyphens. */
function sameName(a: string, b: string): boolean {
  const plain = (name: string): string => name.toLowerCase().replace(/[\s_]+/g, "-");
  return plain(a) === plain(b);
}

function decideByApprovals(policy: Policy, question: PermissionQuestion): Decision | undefined {
  const { access, cwd } = question;
  const isPath = access.kind === "read" || access.kind === "write";
  if (isPath && !isWithin(policy, access.path, cwd)) return undefined;
  for (const by of ["session", "location"] as const) {
    if (policy[`${by}Approvals`].some((approval) => approves(approval, access))) {
      return { decision: "allow", by, reason: `approved for this ${by}` };
    }
  }
  return undefined;
}

function byModeOrDefault(policy: Policy, question: PermissionQuestion): Decision {
  const { access, cwd } = question;
  const { allowances } = policy;
  const allow = (by: "mode" | "default", reason: string): Decision => ({ decision: "allow", by, reason });
  switch (access.kind) {
    case "read":
    case "write": {
      if (!isWithin(policy, access.path, cwd)) {
        return outsideFolders(access.path);
      }
      if (allowances.allTools) return allow("mode", "every tool is allowed");
      if (access.kind === "read" && !allowances.askReads) return allow("default", "reading inside the allowed folders");
      break;
    }
    case "url":
      if (allowances.allUrls) return allow("mode", "every address is allowed");
      break;
    case "shell":
      break;
    case "agent":
      return allow("default", "agents may be started");
    case "sandbox-off":
      return { decision: "ask", by: "policy", reason: "only the user can allow leaving the sandbox" };
    case "extension-env-access":
      return { decision: "ask", by: "policy", reason: "only the user can hand out secrets, by name" };
    case "hook":
      return { decision: "ask", by: "policy", reason: access.hookMessage ?? "a hook asks for the user's decision" };
    default:
      if (allowances.allTools) return allow("mode", "every tool is allowed");
  }
  return { decision: "ask", by: "default", reason: "no rule or approval covers it" };
}
