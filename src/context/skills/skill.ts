/** The types of a skill, shared by the files of this folder. */
import type { ItemTrust, PinnedItem } from "../../lib/pinned-item.ts";
import type { EventData } from "../../protocol/event.ts";

type SkillOrigin = EventData<"session.skills_loaded">["skills"][number]["source"];

export interface Skill {
  readonly name: string;
  readonly description: string;
  /** The skill's folder and file as the location names them: links are not resolved. */
  readonly directory: string;
  readonly path: string;
  /** Real path of the location. Nothing of the skill is read outside of it. */
  readonly root: string;
  readonly source: SkillOrigin;
  /** The origin. A workspace may be hostile: its skills allow no tools, and their scripts need trust. */
  readonly scope: "user" | "workspace";
  /** A command is a single Markdown file. */
  readonly form: "skill" | "command";
  readonly userInvocable: boolean;
  readonly modelInvocable: boolean;
  readonly enabled: boolean;
  /** True when the folder has files that can be run, or more files than were listed. */
  readonly hasScripts: boolean;
  readonly argumentHint?: string;
  /** As written in the file; absent for workspace skills. */
  readonly allowedTools?: readonly string[];
  readonly pluginName?: string;
  readonly pluginVersion?: string;
  /** Hash of its files when the user approved them. */
  readonly approvedDigest?: string;
}

/** A folder to search. */
export interface SkillLocation {
  readonly path: string;
  readonly source: SkillOrigin;
  readonly form: "skill" | "command";
  /** Real path of the workspace that the folder belongs to and must not lead out of. */
  readonly workspace?: string;
  readonly pluginName?: string;
  readonly pluginVersion?: string;
}

/** A notice for the user. It stops nothing. */
export interface SkillNotice {
  readonly kind: "broken" | "refused" | "untrusted" | "changed" | "shadowed" | "limit" | "tools";
  readonly path: string;
  readonly message: string;
}

export type Note = (notice: SkillNotice) => void;

export type CheckPinned = (item: PinnedItem<"skill" | "plugin">) => ItemTrust | Promise<ItemTrust>;

export const MAX_SKILL_BYTES = 64 * 1024;

/** Returns the command name of the skill. */
export function commandName(skill: { readonly name: string }): string {
  return skill.name.toLowerCase().replaceAll(" ", "-");
}

/** Finds a skill by exact name first, then by its command name. */
export function findSkill<T extends { readonly name: string }>(name: string, skills: readonly T[]): T | undefined {
  const wanted = commandName({ name: name.trim() });
  return skills.find((skill) => skill.name === name) ?? skills.find((skill) => commandName(skill) === wanted);
}
