import { join } from "node:path";
import type { SessionLog } from "../store/store.ts";

/** The log by its path, for those who are told where to read what was said. */
export function transcriptOf({ directory, elsewhere }: Pick<SessionLog, "directory" | "elsewhere">): string {
  return elsewhere?.nameOf("events.jsonl") ?? join(directory, "events.jsonl");
}
