import { allowedToolRules } from "../context/skills/allowed-tools.ts";
import { findSkill } from "../context/skills/skill.ts";
import type { SessionEvent } from "../protocol/event.ts";
import type { CurrentRules } from "./permissions/current-rules.ts";
import type { CurrentSkills } from "./setup/current-skills.ts";

/**
 * Returns a listener that adds the `allowed-tools` of a skill to the rules once the main agent or the user has used it.
 * They apply until the session closes. A skill of the workspace adds none, and deny rules still win.
 */
export function skillRules(parts: {
  readonly skills: CurrentSkills;
  readonly rules: CurrentRules;
  notice(message: string): void;
}): (event: SessionEvent) => void {
  const { skills, rules, notice } = parts;
  const used = new Set<string>();
  return (event) => {
    if (event.type !== "skill.invoked" || event.agentId !== undefined) return;
    const skill = findSkill(event.data.name, skills.all);
    if (!skill || skill.path !== event.data.path || used.has(skill.path)) return;
    used.add(skill.path);
    const allowed = allowedToolRules(skill, (rule) => rules.problemOf(rule));
    rules.allow(allowed.rules, `the skill ${skill.name}`);
    for (const { message } of allowed.notices) notice(message);
  };
}
