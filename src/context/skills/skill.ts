/** What a skill is, and the words in which the files beside this one speak of it. */
import type { ItemTrust, PinnedItem } from "../../lib/pinned-item.ts";
import type { EventData } from "../../protocol/event.ts";

type SkillOrigin = EventData<"session.skills_loaded">["skills"][number]["source"];

export interface Skill {
  readonly name: string;
  readonly description: string;
  /** The folder of the skill and its file, in the words of whoever named the location: links are not resolved. */
  readonly directory: string;
  readonly path: string;
  /** Real path of the location; nothing of the skill is read outside of it. */
  readonly root: string;
  readonly source: SkillOrigin;
  /** Who brought it. What a workspace brings may be hostile: it allows nothing, and its scripts need trust. */
  readonly scope: "user" | "workspace";
  /** A command is a single Markdown file. */
  readonly form: "skill" | "command";
  readonly userInvocable: boolean;
  readonly modelInvocable: boolean;
  readonly enabled: boolean;
  /** True when the folder holds something that can be run, or more than was looked at. */
  readonly hasScripts: boolean;
  readonly argumentHint?: string;
  /** As written in the file; absent for what a workspace brings. */
  readonly allowedTools?: readonly string[];
  readonly pluginName?: string;
  readonly pluginVersion?: string;
  /** What its files were when a person approved them. */
  readonly approvedDigest?: string;
}

/** A folder in which to look. */
export interface SkillLocation {
  readonly path: string;
  readonly source: SkillOrigin;
  readonly form: "skill" | "command";
  /** Set when the folder belongs to a workspace: the real path of that workspace, which it must not leave. */
  readonly workspace?: string;
  readonly pluginName?: string;
  readonly pluginVersion?: string;
}

/** Something people should know; nothing stops because of it. */
export interface SkillNotice {
  readonly kind: "broken" | "refused" | "untrusted" | "changed" | "shadowed" | "limit" | "tools";
  readonly path: string;
  readonly message: string;
}

export type Note = (notice: SkillNotice) => void;

export type CheckPinned = (item: PinnedItem<"skill" | "plugin">) => ItemTrust | Promise<ItemTrust>;

export const MAX_SKILL_BYTES = 64 * 1024;

/** The name under which people call the skill. */
export function commandName(skill: { readonly name: string }): string {
  return skill.name.toLowerCase().replaceAll(" ", "-");
}

/** Exact first; then as people write it. */
export function findSkill<T extends { readonly name: string }>(name: string, skills: readonly T[]): T | undefined {
  const wanted = commandName({ name: name.trim() });
  return skills.find((skill) => skill.name === name) ?? skills.find((skill) => commandName(skill) === wanted);
}
