/** Tells which process has a stored session open. */
import { join } from "node:path";
import { holderOf, type SessionHolder } from "../../store/lock-holder.ts";

/** Ids that name no folder of a session are free. */
export async function sessionHolder(stateRoot: string, sessionId: string): Promise<SessionHolder> {
  if (!/^[\w-]+$/.test(sessionId)) return { kind: "nobody" };
  return holderOf(join(stateRoot, "session-state", sessionId));
}
