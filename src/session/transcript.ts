import { join } from "node:path";
import type { SessionLog } from "../store/store.ts";

/** Returns the path of the log, for programs and agents that read it. */
export function transcriptOf({ directory, clientFiles }: Pick<SessionLog, "directory" | "clientFiles">): string {
  return clientFiles?.nameOf("events.jsonl") ?? join(directory, "events.jsonl");
}
