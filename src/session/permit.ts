import type { Run } from "../loop/run.ts";
import type { Approval } from "../permissions/approvals.ts";
import { decide } from "../permissions/decide.ts";
import { denialForModel, denialForUser } from "../permissions/messages.ts";
import type { Decision, PermissionQuestion, Policy } from "../permissions/policy.ts";
import { questionFor } from "../permissions/question.ts";
import { permissionRequest } from "../permissions/request.ts";
import type { Emit } from "../protocol/event.ts";
import type { Broker, PermissionRequest } from "./broker.ts";

interface Permitter {
  readonly policy: Policy;
  readonly cwd: string;
  readonly emit: Emit;
  readonly broker: Broker;
  /** Approved by a person for the rest of the session; grows as they say so. */
  readonly approvals: Approval[];
  readonly signal: AbortSignal;
}

interface Verdict {
  readonly allowed: boolean;
  readonly by: string;
  readonly reason: string;
  readonly rule?: string;
  /** Told to the model instead of the usual words. */
  readonly message?: string;
}

/**
 * Judges what a call would touch: by rules and modes, then by whoever can be asked. Every verdict but "reads where it
 * may read" is an event with its reason. Where nobody can be asked a question is a denial, and both the model and the
 * user are told what would allow it.
 */
export function permitter(options: Permitter): Run["permit"] {
  const { policy, cwd, emit, approvals } = options;
  return async (access, call) => {
    const question = await questionFor(access, { toolName: call.toolName, cwd });
    const decision = decide({ ...policy, session: approvals }, question);
    const verdict = decision.decision === "ask" ? await ask(options, question, call.toolCallId) : ruled(decision);
    const { allowed, message, ...told } = verdict;
    if (!(allowed && access.kind === "read")) {
      const outcome = allowed ? "allowed" : "denied";
      await emit("troupe.permission", { ...call, kind: access.kind, decision: outcome, ...told });
    }
    if (allowed) return { allowed };
    if (message === undefined) {
      void emit("session.warning", { warningType: "permission_denied", message: denialForUser(decision, question) });
    }
    return { allowed, message: message ?? denialForModel(decision, question) };
  };
}

function ruled({ decision, by, reason, rule }: Decision): Verdict {
  return { allowed: decision === "allow", by, reason, ...(rule && { rule: rule.text }) };
}

async function ask(options: Permitter, question: PermissionQuestion, toolCallId: string): Promise<Verdict> {
  const { broker, approvals, signal } = options;
  // The wire's request in the broker's words: both come from the same table.
  const permission = permissionRequest(question, toolCallId) as PermissionRequest;
  const answer = await broker.request("permission", { permissionRequest: permission }, { signal });
  signal.throwIfAborted();
  if (typeof answer === "string") return { allowed: false, by: "nobody_to_ask", reason: "nobody could be asked" };
  switch (answer.kind) {
    case "approved-for-session":
    case "approved-for-location":
      approvals.push(answer.approval);
      return { allowed: true, by: "person", reason: "approved for this session" };
    case "approved":
      return { allowed: true, by: "person", reason: "approved once" };
    case "denied-interactively-by-user": {
      const feedback = answer.feedback ? ` They said: ${answer.feedback}` : "";
      return { allowed: false, by: "person", reason: "declined", message: `The user declined this call.${feedback}` };
    }
    default:
      return { allowed: false, by: "person", reason: answer.kind, message: "Permission for this call was not given." };
  }
}
