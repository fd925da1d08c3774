import { childEnvironment, looksSecret } from "../lib/node/child-environment.ts";

export interface Receiver {
  readonly scope: "user" | "project";
  /** Names that are secret beside those that look like it. */
  readonly secretNames: readonly string[];
  /** Names that were approved with a project's extension. */
  readonly variableNames: readonly string[];
}

/** Whether an extension has this variable of ours without asking for it. */
export function isGiven(name: string, { scope, secretNames, variableNames }: Receiver): boolean {
  if (looksSecret(name) || secretNames.includes(name) || name === "NODE_OPTIONS") return false;
  return scope === "user" || Object.hasOwn(childEnvironment({ [name]: "" }, { names: variableNames }), name);
}
