import { readdirSync } from "node:fs";
import { startTicks } from "../../../lib/node/process-identity.ts";

/** With the pid it names a process for all time; empty where the system does not say, or when it has ended. */
export function startOf(pid: number): string {
  return startTicks(pid) ?? "";
}

/** The names in a folder; none when it cannot be read. */
export function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
