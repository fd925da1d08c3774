import { basename, dirname, join, resolve } from "node:path";
import { defined } from "../../lib/defined.ts";
import type { JudgedCall, Run } from "../../loop/run.ts";
import { INTERRUPTED } from "../../loop/run-calls.ts";
import { decide } from "../../permissions/decide.ts";
import type { Grants } from "../../permissions/grants.ts";
import { denialForModel, denialForUser } from "../../permissions/messages.ts";
import { type Decision, isInRoots, type PermissionQuestion, type Policy } from "../../permissions/policy.ts";
import { questionFor } from "../../permissions/question.ts";
import type { SandboxStatus } from "../../permissions/request.ts";
import { isRememberable, permissionRequest, type RequestFacts } from "../../permissions/request.ts";
import type { Emit, EventData } from "../../protocol/event.ts";
import { ToolError } from "../../tools/tool-error.ts";
import type { Broker } from "./broker.ts";
import type { AnswersByKind, PermissionRequest } from "./requests.ts";

export interface PermitOptions {
  readonly policy: Policy;
  readonly cwd: string;
  readonly emit: Emit;
  readonly broker: Broker;
  /** The user's approvals for this session and this location. Grows with each answer. */
  readonly grants: Grants;
  readonly signal: AbortSignal;
  /** Hooks that run unless a rule denies. They can deny, or approve in place of the user. */
  readonly hookDecision?: (request: PermissionRequest, signal: AbortSignal) => Promise<HookVerdict>;
  readonly onFileAccess?: (path: string, toolName: string) => Promise<void>;
  /** Returns the reason to deny an access that no rule can allow, such as one that would leak a secret. */
  readonly reasonToRefuse?: (question: PermissionQuestion) => string | undefined;
  readonly sandboxStatus?: () => Promise<SandboxStatus>;
}

export type HookVerdict =
  | { readonly kind: "none" }
  | { readonly kind: "allow"; readonly by: string }
  | { readonly kind: "deny"; readonly message?: string; readonly interrupt?: boolean };

interface Verdict {
  readonly allowed: boolean;
  readonly by: string;
  readonly reason: string;
  readonly rule?: string;
  /** Replaces the usual message to the model. */
  readonly message?: string;
  /** The user, or a hook with `interrupt`, rejected the call, which ends the answer. */
  readonly rejected?: boolean;
}

/**
 * Judges an access of a call: by rules and modes, then by hooks, then by asking a client.
 * Every verdict except an allowed read is logged with its reason. If no client can be asked, the access is denied; the
 * messages to the model and to the user name a flag that would allow it, if there is one.
 */
export function permitter(options: PermitOptions): Run["permit"] {
  const { policy, cwd, emit, grants } = options;
  return async (access, call) => {
    const question = await questionFor(access, { toolName: call.toolName, cwd, policy });
    const { sessionApprovals, locationApprovals } = grants;
    const decision =
      refusalOf(options, question) ?? decide({ ...policy, sessionApprovals, locationApprovals }, question);
    // Resolved before asking, so that a link changed meanwhile does not lead outside what was approved.
    const reads = access.kind === "read" ? outsidePaths(access.path, options) : [];
    const verdict = await judge(options, { question, decision, call });
    const { allowed, message, rejected, ...logged } = verdict;
    if (!(allowed && access.kind === "read")) {
      const { toolName, toolCallId } = call;
      const outcome = allowed ? "allowed" : "denied";
      await emit("troupe.permission", { toolName, toolCallId, kind: access.kind, decision: outcome, ...logged });
    }
    if (allowed && (access.kind === "read" || access.kind === "write")) {
      await options.onFileAccess?.(resolve(cwd, access.path), call.toolName);
    }
    if (allowed && access.kind === "shell" && decision.confined) {
      policy.containment?.readOnly({ toolCallId: call.toolCallId, command: access.command });
    }
    if (allowed) return { allowed, ...(reads.length > 0 && verdict.by === "person" && { reads }) };
    if (message === undefined) {
      void emit("session.warning", { warningType: "permission_denied", message: denialForUser(decision, question) });
    }
    return { allowed, message: message ?? denialForModel(decision, question), ...(rejected && { rejected }) };
  };
}

/** Returns the path with its last link resolved and unresolved, if it is outside the allowed folders. */
function outsidePaths(path: string, { policy, cwd }: PermitOptions): readonly string[] {
  if (isInRoots(policy, path, cwd)) return [];
  const named = resolve(cwd, path);
  const link = join(policy.resolvePath(dirname(named), cwd), basename(named));
  return [...new Set([link, policy.resolvePath(path, cwd)])];
}

function refusalOf({ reasonToRefuse }: PermitOptions, question: PermissionQuestion): Decision | undefined {
  const reason = reasonToRefuse?.(question);
  return reason === undefined ? undefined : { decision: "deny", by: "policy", reason };
}

interface Case {
  readonly question: PermissionQuestion;
  readonly decision: Decision;
  readonly call: JudgedCall;
}

async function judge(options: PermitOptions, { question, decision, call }: Case): Promise<Verdict> {
  const facts = decision.decision === "ask" ? await factsOf(options, question) : {};
  // The cast is safe: `permissionRequest` builds the request that the event's schema describes.
  const request = permissionRequest(question, call.toolCallId, facts) as PermissionRequest;
  const { approvedBy } = call;
  const verdict = await judgeUnasked(options, { question, decision, request, approvedBy });
  if (verdict && !verdict.allowed) return verdict;
  const { broker, emit, grants } = options;
  const refusal = broker.refusedBefore({ permissionRequest: request }, { emit, asks: verdict === undefined });
  if (refusal) return verdictOf(refusal, grants);
  return verdict ?? ask(options, request);
}

async function factsOf(options: PermitOptions, question: PermissionQuestion): Promise<RequestFacts> {
  const { policy, grants } = options;
  const { sessionApprovals, locationApprovals } = grants;
  const sandbox = question.access.kind === "shell" ? await options.sandboxStatus?.() : undefined;
  return {
    isRememberable: isRememberable({ ...policy, sessionApprovals, locationApprovals }, question),
    // The command does not run at all if a sandbox is required and missing.
    withoutSandbox: sandbox?.required ? undefined : sandbox?.absence,
  };
}

/** The parts needed to run hooks and to announce their decisions. */
export type DecisionPorts = Pick<PermitOptions, "hookDecision" | "emit" | "signal"> & {
  readonly broker: Pick<Broker, "newRequestId" | "mode">;
};

/** Returns the verdict of rules and hooks, or undefined if a user must decide. */
export async function judgeUnasked(
  options: DecisionPorts,
  judged: {
    readonly question: PermissionQuestion;
    readonly decision: Decision;
    readonly request: PermissionRequest;
    readonly approvedBy?: string | undefined;
  },
): Promise<Verdict | undefined> {
  const { question, decision, request, approvedBy } = judged;
  if (decision.decision === "deny") return permissionResult(decision);
  const hookDecision = await askHooks(options, question, request);
  if (hookDecision.kind === "deny") return deniedByHook(options, request, hookDecision);
  if (decision.decision === "allow") return permissionResult(decision);
  // A hook's approval replaces the user's only if no rule and no policy requires asking.
  const standIn = hookDecision.kind === "allow" ? hookDecision.by : approvedBy;
  if (standIn === undefined || decision.by !== "default") return undefined;
  await announceHook(options, request, { kind: "approved" });
  return { allowed: true, by: "hook", reason: `approved by ${standIn}` };
}

async function askHooks(
  { hookDecision, signal }: DecisionPorts,
  { access }: PermissionQuestion,
  request: PermissionRequest,
): Promise<HookVerdict> {
  if (!hookDecision || access.kind === "read" || access.kind === "hook") return { kind: "none" };
  const hookVerdict = await hookDecision(request, signal);
  signal.throwIfAborted();
  return hookVerdict;
}

async function deniedByHook(
  options: DecisionPorts,
  request: PermissionRequest,
  { message, interrupt }: Extract<HookVerdict, { kind: "deny" }>,
): Promise<Verdict> {
  await announceHook(options, request, {
    kind: "denied-by-permission-request-hook",
    ...defined({ message, interrupt }),
  });
  const explanation = `Denied by permissionRequest hook: ${message ?? "No reason provided"}`;
  return {
    allowed: false,
    by: "hook",
    reason: message ?? "denied by a hook",
    message: explanation,
    ...(interrupt && { rejected: true }),
  };
}

/** Logs a hook's decision as a request and its answer, like any other permission. */
async function announceHook(
  { broker, emit }: DecisionPorts,
  permissionRequest: PermissionRequest,
  result: EventData<"permission.completed">["result"],
): Promise<void> {
  const requestId = broker.newRequestId();
  void emit("permission.requested", { requestId, permissionRequest, resolvedByHook: true, ...broker.mode });
  await emit("permission.completed", { requestId, result });
}

function permissionResult({ decision, by, reason, rule }: Decision): Verdict {
  return { allowed: decision === "allow", by, reason, ...defined({ rule: rule?.text }) };
}

async function ask(options: PermitOptions, permission: PermissionRequest): Promise<Verdict> {
  const { broker, grants, signal, emit } = options;
  const answer = await broker.request("permission", { permissionRequest: permission }, { signal, emit });
  signal.throwIfAborted();
  // The session is closing: no one denied it, so no denial is recorded.
  if (answer === "cancelled") throw new ToolError(INTERRUPTED, { code: "interrupted" });
  if (typeof answer === "string") return { allowed: false, by: "nobody_to_ask", reason: "no user could be asked" };
  return verdictOf(answer, grants);
}

async function verdictOf(answer: AnswersByKind["permission"], grants: Grants): Promise<Verdict> {
  switch (answer.kind) {
    case "approved-for-session":
      grants.approveForSession(answer.approval);
      return { allowed: true, by: "person", reason: "approved for this session" };
    case "approved-for-location":
      await grants.approveForLocation(answer.approval);
      return { allowed: true, by: "person", reason: "approved for this location" };
    case "approved":
      return { allowed: true, by: "person", reason: "approved once" };
    case "denied-interactively-by-user": {
      const declined = { allowed: false, by: "person", reason: "declined" };
      const message = "The user rejected this tool call.";
      // With feedback the model can continue; without it the answer ends and the user decides.
      if (answer.feedback) return { ...declined, message: `${message} They said: ${answer.feedback}` };
      return { ...declined, message, rejected: true };
    }
    case "denied-no-approval-rule-and-could-not-request-from-user": {
      const message = "Permission denied and could not request permission from user";
      return { allowed: false, by: "nobody_to_ask", reason: "no user could be asked", message };
    }
    default:
      return { allowed: false, by: "person", reason: answer.kind, message: "Permission for this call was not given." };
  }
}
