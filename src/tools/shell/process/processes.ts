import { readdirSync } from "node:fs";
import { startTicks } from "../../../lib/node/process-identity.ts";

/**
 * Returns the start time of a process. Together with the pid it identifies the process uniquely. Empty when the system
 * does not provide it, or when the process has ended.
 */
export function startOf(pid: number): string {
  return startTicks(pid) ?? "";
}

/** Returns the names in a folder; none when it cannot be read. */
export function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
