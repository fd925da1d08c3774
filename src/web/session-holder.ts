import { join } from "node:path";
import { holderOf } from "../store/lock-holder.ts";

interface Holder {
  readonly pid: number;
  /** False for a process of another machine or container. */
  readonly isHere: boolean;
}

/** Returns the process that has a session open; undefined when none has. */
export async function sessionHolder(home: string, sessionId: string): Promise<Holder | undefined> {
  const holder = await holderOf(join(home, "session-state", sessionId));
  return holder.kind === "process" ? holder : undefined;
}
