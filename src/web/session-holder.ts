import { sessionHolder } from "../runtime/sessions/session-holder.ts";
import type { SessionHolder } from "../store/lock-holder.ts";

/** Returns the process that has a session open; undefined when none has. */
export async function holdingProcess(
  home: string,
  sessionId: string,
): Promise<Extract<SessionHolder, { kind: "process" }> | undefined> {
  const holder = await sessionHolder(home, sessionId);
  return holder.kind === "process" ? holder : undefined;
}
