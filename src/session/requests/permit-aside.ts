import { decide } from "../../permissions/decide.ts";
import { isRememberable, permissionRequest } from "../../permissions/request.ts";
import type { Access } from "../../protocol/permission.ts";
import type { Session } from "../session.ts";
import { hookOpinion } from "../turn/hooked-calls.ts";
import { judgeUnasked } from "./permit.ts";
import type { PermissionRequest } from "./requests.ts";

/** How long someone who is asked beside any call may take. */
const PATIENCE_MS = 10 * 60_000;

/**
 * Judges what a program wants that is no call of an agent's: by the same rules, approvals and modes, then by hooks, then by
 * whoever can be asked. No answer is a no.
 */
export async function permitAside(session: Session, access: Access, signal: AbortSignal): Promise<boolean> {
  const { policy, grants, cwd } = session.settings;
  const question = { access, toolName: access.kind, cwd };
  const known = { ...policy, session: grants.session, location: grants.location };
  const decision = decide(known, question);
  // The wire's request in the broker's words: both come from the same table.
  const facts = { isRememberable: isRememberable(known, question) };
  const request = permissionRequest(question, undefined, facts) as PermissionRequest;
  const opinion = hookOpinion(session.hooks);
  const opinions = { emit: session.say, broker: session.requests, signal, ...(opinion && { opinion }) };
  const verdict = await judgeUnasked(opinions, { question, decision, request });
  if (verdict) return verdict.allowed;
  const how = { signal, timeoutMs: PATIENCE_MS };
  const answer = await session.requests.request("permission", { permissionRequest: request }, how);
  if (typeof answer === "string") return false;
  if (answer.kind === "approved-for-session") grants.approveForSession(answer.approval);
  if (answer.kind === "approved-for-location") await grants.approveForLocation(answer.approval);
  return answer.kind.startsWith("approved");
}
