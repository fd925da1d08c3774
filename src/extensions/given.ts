import { looksSecret } from "../lib/node/child-environment.ts";

/** Whether an extension has this variable of ours without asking for it. */
export function isGiven(name: string, secretNames: readonly string[]): boolean {
  return !looksSecret(name) && !secretNames.includes(name) && name !== "NODE_OPTIONS";
}
