/** Tells which process has a stored session open. */
import { join } from "node:path";
import { holderOf, type SessionHolder } from "../../store/lock-holder.ts";

/** `home` is the state root. Ids that name no folder of a session are free. */
export async function sessionHolder(home: string, sessionId: string): Promise<SessionHolder> {
  if (!/^[\w-]+$/.test(sessionId)) return { kind: "nobody" };
  return holderOf(join(home, "session-state", sessionId));
}
