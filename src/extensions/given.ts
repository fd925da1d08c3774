import { childEnvironment, looksSecret } from "../lib/node/child-environment.ts";

export interface Receiver {
  readonly scope: "user" | "project";
  /** Names of secret variables, in addition to names that look secret. */
  readonly secretNames: readonly string[];
  /** Variables approved for a project's extension. */
  readonly variableNames: readonly string[];
}

/** Returns whether an extension gets this variable without requesting it. */
export function isGiven(name: string, { scope, secretNames, variableNames }: Receiver): boolean {
  if (looksSecret(name) || secretNames.includes(name) || name === "NODE_OPTIONS") return false;
  return scope === "user" || Object.hasOwn(childEnvironment({ [name]: "" }, { names: variableNames }), name);
}
