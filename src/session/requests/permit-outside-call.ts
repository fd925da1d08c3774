import { defined } from "../../lib/defined.ts";
import { decide } from "../../permissions/decide.ts";
import { isRememberable, permissionRequest } from "../../permissions/request.ts";
import type { Access } from "../../protocol/permission.ts";
import type { Session } from "../session.ts";
import { hookVerdict } from "../turn/hooked-calls.ts";
import { judgeUnasked } from "./permit.ts";
import type { PermissionRequest } from "./requests.ts";

/** Time that a user may take to answer a request outside any call. */
const PATIENCE_MS = 10 * 60_000;

/**
 * Judges an access that is not an agent's call: by rules, approvals and modes, then by hooks, then by asking. No answer
 * means denied.
 */
export async function permitOutsideCall(session: Session, access: Access, signal: AbortSignal): Promise<boolean> {
  const { policy, grants } = session.permissions;
  const { cwd } = session.workspace;
  const question = { access, toolName: access.kind, cwd };
  const known = { ...policy, sessionApprovals: grants.sessionApprovals, locationApprovals: grants.locationApprovals };
  const decision = decide(known, question);
  const facts = { isRememberable: isRememberable(known, question) };
  // The cast is safe: `permissionRequest` builds the request that the event's schema describes.
  const request = permissionRequest(question, undefined, facts) as PermissionRequest;
  const hookDecision = hookVerdict(session.permissions.hooks);
  const ports = { emit: session.record.emit, broker: session.requests, signal, ...defined({ hookDecision }) };
  const verdict = await judgeUnasked(ports, { question, decision, request });
  if (verdict) return verdict.allowed;
  const options = { signal, timeoutMs: PATIENCE_MS };
  const answer = await session.requests.request("permission", { permissionRequest: request }, options);
  if (typeof answer === "string") return false;
  if (answer.kind === "approved-for-session") grants.approveForSession(answer.approval);
  if (answer.kind === "approved-for-location") await grants.approveForLocation(answer.approval);
  return answer.kind.startsWith("approved");
}
