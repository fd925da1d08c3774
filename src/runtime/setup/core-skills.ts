/** Built-in skills: they explain a tool on demand instead of in every prompt. */

import type { SkillPort } from "../../context/skills/load-skill.ts";
import { commandName } from "../../context/skills/skill.ts";
import { wrapInTag } from "../../lib/quoting.ts";
import subagentsSkill from "../../tools/coordination/skill.md";
import type { Tool } from "../../tools/tool.ts";

interface CoreSkill {
  readonly name: string;
  readonly description: string;
  readonly body: string;
  /** The tool it explains. Without the tool, the skill is not offered. */
  readonly tool: string;
}

const coreSkills: readonly CoreSkill[] = [{ ...frontMatter(subagentsSkill), tool: "subagents_run" }];

/**
 * Returns the shelf with the built-in skills (or only the `chosen` ones) at its end. Other skills of the same name
 * replace them.
 */
export function withCoreSkills(
  shelf: SkillPort,
  tools: readonly Pick<Tool, "name">[],
  chosen?: readonly string[],
): SkillPort {
  const ours = (): readonly CoreSkill[] => {
    const taken = new Set(shelf.list().map((skill) => commandName(skill)));
    return coreSkills.filter(
      ({ name, tool }) =>
        !taken.has(name) && (chosen?.includes(name) ?? true) && tools.some((one) => one.name === tool),
    );
  };
  return {
    list: () => [...shelf.list(), ...ours().map(({ name, description }) => ({ name, description }))],
    async load(wanted, signal) {
      const skill = ours().find(({ name }) => name === commandName({ name: wanted.trim() }));
      if (!skill) return shelf.load(wanted, signal);
      const { name, description, body: content } = skill;
      const invoked = { name, path: `builtin:${name}`, content, description, source: "builtin" } as const;
      return { context: wrapInTag("skill", { name }, content), invoked: { ...invoked, trigger: "agent-invoked" } };
    },
  };
}

/** Parses a built-in skill, which is known to be well-formed. */
function frontMatter(text: string): Pick<CoreSkill, "name" | "description" | "body"> {
  const [, head = "", body = ""] = /^---\n([\s\S]*?)\n---\n([\s\S]*)$/.exec(text) ?? [];
  const field = (key: string): string => new RegExp(`^${key}: (.*)$`, "m").exec(head)?.[1] ?? "";
  return { name: field("name"), description: field("description"), body: body.trim() };
}
