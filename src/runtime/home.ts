import { homedir } from "node:os";
import { join, resolve } from "node:path";

/** Where troupe keeps its state: `TROUPE_HOME`, else `COPILOT_HOME`, else `~/.troupe`. */
export function stateRoot(environment: Readonly<Record<string, string | undefined>>): string {
  const chosen = environment.TROUPE_HOME || environment.COPILOT_HOME;
  return chosen ? resolve(chosen) : join(environment.HOME || homedir(), ".troupe");
}
