import { join } from "node:path";
import type { SessionLog } from "../store/store.ts";

/** Returns the path of the log, for programs and agents that read it. */
export function transcriptOf({ directory, elsewhere }: Pick<SessionLog, "directory" | "elsewhere">): string {
  return elsewhere?.nameOf("events.jsonl") ?? join(directory, "events.jsonl");
}
