import type { AgentDefinition } from "./agent.ts";

/**
 * Returns the skills that are included in full in the agent's prompt: only those that its definition lists. `find`
 * looks up a skill of the session by name.
 */
export function effectiveSkills<T>(
  definition: Pick<AgentDefinition, "skills">,
  find: (name: string) => T | undefined,
): { readonly skills: readonly T[]; readonly missing: readonly string[] } {
  const found = definition.skills.map((name) => ({ name, skill: find(name) }));
  return {
    skills: [...new Set(found.flatMap(({ skill }) => (skill === undefined ? [] : [skill])))],
    missing: found.filter(({ skill }) => skill === undefined).map(({ name }) => name),
  };
}
