/** Skills that come with troupe: how a tool is used, told when someone asks instead of in every prompt. */

import type { SkillShelf } from "../../context/skills/load-skill.ts";
import { commandName } from "../../context/skills/skill.ts";
import { wrapped } from "../../lib/quoting.ts";
import subagentsSkill from "../../tools/subagents/skill.md";
import type { Tool } from "../../tools/tool.ts";

interface CoreSkill {
  readonly name: string;
  readonly description: string;
  readonly body: string;
  /** The tool it is about; without it, nobody needs the skill. */
  readonly tool: string;
}

const coreSkills: readonly CoreSkill[] = [{ ...frontMatter(subagentsSkill), tool: "subagents_run" }];

/** The shelf with ours, or the `chosen` ones of them, at its end. Whoever brings a skill of the same name takes its place. */
export function withCoreSkills(
  shelf: SkillShelf,
  tools: readonly Pick<Tool, "name">[],
  chosen?: readonly string[],
): SkillShelf {
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
      return { context: wrapped("skill", { name }, content), invoked: { ...invoked, trigger: "agent-invoked" } };
    },
  };
}

/** Ours are well-formed: a name, a description, and what follows. */
function frontMatter(text: string): Pick<CoreSkill, "name" | "description" | "body"> {
  const [, head = "", body = ""] = /^---\n([\s\S]*?)\n---\n([\s\S]*)$/.exec(text) ?? [];
  const field = (key: string): string => new RegExp(`^${key}: (.*)$`, "m").exec(head)?.[1] ?? "";
  return { name: field("name"), description: field("description"), body: body.trim() };
}
