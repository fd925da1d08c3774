/**
 * Skills: folders with a SKILL.md that describe how to do something. They are discovered at session start, which reads
 * each location and the first lines of each file. A skill's text is read when it is used. This folder discovers, checks
 * and loads them.
 */

import { join } from "node:path";
import { defined } from "../../lib/defined.ts";
import { isInside } from "../../lib/node/paths.ts";
import { realPath } from "../../lib/node/real-path.ts";
import type { ItemTrust } from "../../lib/pinned-item.ts";
import { clip, plural } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { EventData } from "../../protocol/event.ts";
import { pinnedItem } from "./pin.ts";
import { readFolder } from "./read-inside.ts";
import { type ReadSkill, readSkill, type SkillCandidate } from "./read-skill.ts";
import { type CheckPinned, commandName, type Note, type Skill, type SkillLocation, type SkillNotice } from "./skill.ts";
import { type FileBudget, holdsScripts, lookAtFiles, type SkillFiles } from "./skill-files.ts";

export interface Discovery {
  /** In the order of the locations, without duplicate names. */
  readonly skills: readonly Skill[];
  readonly notices: readonly SkillNotice[];
}

const MAX_SKILLS = 500;
const MAX_ENTRIES = 2000;
const MAX_FILES_IN_ALL = 10_000;
const MAX_NOTICES = 100;

/** Discovers skills. Without `check`, workspace skills with scripts are skipped. */
export async function discoverSkills(options: {
  locations: readonly SkillLocation[];
  disabled?: readonly string[];
  check?: CheckPinned;
  limits?: { maxSkills?: number };
}): Promise<Discovery> {
  const notices: SkillNotice[] = [];
  const note: Note = (notice) => void (notices.length < MAX_NOTICES && notices.push(notice));
  const maxSkills = options.limits?.maxSkills ?? MAX_SKILLS;
  const disabled = new Set((options.disabled ?? []).map((name) => commandName({ name })));
  const gate: Gate = { budget: { left: MAX_FILES_IN_ALL }, untrusted: new Set(), check: options.check, note };
  const found = new Map<string, Skill>();
  for (const candidate of candidatesIn(options.locations, note)) {
    const read = await readSkill(candidate, note);
    const admitted = read && (await admit(read, candidate, gate));
    if (!admitted) continue;
    const key = commandName(admitted);
    const earlier = found.get(key);
    if (earlier) noteShadowed(earlier, admitted, note);
    else if (found.size < maxSkills) found.set(key, { ...admitted, enabled: !disabled.has(key) });
    else {
      note({ kind: "limit", path: candidate.path, message: `Only the first ${maxSkills} skills are used.` });
      break;
    }
  }
  return { skills: [...found.values()], notices };
}

/** Returns the event data. */
export function skillsLoaded(skills: readonly Skill[]): EventData<"session.skills_loaded"> {
  return {
    skills: skills.map((skill) => ({
      name: skill.name,
      commandName: commandName(skill),
      description: skill.description,
      source: skill.source,
      userInvocable: skill.userInvocable,
      enabled: skill.enabled,
      path: skill.path,
      ...defined({ argumentHint: skill.argumentHint }),
    })),
  };
}

function* candidatesIn(locations: readonly SkillLocation[], note: Note): Generator<SkillCandidate> {
  for (const location of locations) {
    const read = readFolder(location.path, MAX_ENTRIES);
    const root = read && realPath(location.path);
    if (read === undefined || root === undefined) continue;
    if (location.workspace !== undefined && !isInside(root, [location.workspace])) {
      const message = `${location.path} leads out of its workspace by a link; skills there were left out.`;
      note({ kind: "refused", path: location.path, message });
      continue;
    }
    if (!read.complete) {
      note({
        kind: "limit",
        path: location.path,
        message: `Only ${MAX_ENTRIES} entries of ${location.path} were read.`,
      });
    }
    const isOneSkill = location.workspace === undefined && read.entries.some(({ name }) => name === "SKILL.md");
    if (location.form === "command") yield* commandsIn(location, root, read.entries);
    else if (isOneSkill) yield folderCandidate(location, root, location.path);
    else {
      const folders = read.entries.filter(({ kind }) => kind === "folder" || kind === "link");
      for (const { name } of folders) yield folderCandidate(location, root, join(location.path, name));
    }
  }
}

function folderCandidate(location: SkillLocation, root: string, directory: string): SkillCandidate {
  const fallbackName = directory.split(/[\\/]/).pop() ?? "";
  return { location, root, directory, path: join(directory, "SKILL.md"), fallbackName };
}

function* commandsIn(
  location: SkillLocation,
  root: string,
  entries: readonly { name: string }[],
): Generator<SkillCandidate> {
  for (const { name } of entries) {
    if (!name.endsWith(".md")) continue;
    const path = join(location.path, name);
    yield { location, root, directory: location.path, path, fallbackName: name.slice(0, -".md".length) };
  }
}

interface Gate {
  readonly budget: FileBudget;
  /** Workspaces known to be untrusted, so that they are not checked again. */
  readonly untrusted: Set<string>;
  readonly check: CheckPinned | undefined;
  readonly note: Note;
}

type Admitted = ReadSkill & Pick<Skill, "hasScripts" | "approvedDigest">;

/** Text may come from any origin. Scripts must be the user's, or approved in their current state. */
async function admit(skill: ReadSkill, { location, root }: SkillCandidate, gate: Gate): Promise<Admitted | undefined> {
  if (skill.form === "command") return { ...skill, hasScripts: false };
  const folder = realPath(skill.directory);
  const files = folder && isInside(folder, [root]) ? lookAtFiles(folder, { root, budget: gate.budget }) : undefined;
  if (files === undefined || files.leavesBy !== undefined) {
    const link = files?.leavesBy === undefined ? "its folder" : `the link ${clip(files.leavesBy, 200)}`;
    const message = `The skill ${skill.path} was left out: ${link} leads out of ${location.path}.`;
    return void gate.note({ kind: "refused", path: skill.path, message });
  }
  const hasScripts = holdsScripts(files);
  if (!hasScripts || location.workspace === undefined) return { ...skill, hasScripts };
  const { verdict, digest, problem } = await verdictOn(skill, location.workspace, gate);
  if (verdict === "approved") return { ...skill, hasScripts, approvedDigest: digest };
  const message = problem ?? refusal(skill, files, verdict);
  return void gate.note({ kind: verdict === "changed" ? "changed" : "untrusted", path: skill.path, message });
}

type Judged = { verdict: Exclude<ItemTrust, "approved">; digest?: string; problem?: string } | Approved;
type Approved = { verdict: "approved"; digest: string; problem?: undefined };

async function verdictOn(skill: ReadSkill, workspace: string, gate: Gate): Promise<Judged> {
  if (gate.check === undefined || gate.untrusted.has(workspace)) return { verdict: "untrusted" };
  try {
    const item = await pinnedItem(skill);
    const verdict = await gate.check(item);
    if (verdict === "untrusted") gate.untrusted.add(workspace);
    return { verdict, digest: item.digest };
  } catch (error) {
    if (!(error instanceof TroupeError)) throw error;
    return { verdict: "new", problem: `${error.message} ${error.hint ?? ""}`.trim() };
  }
}

function refusal(skill: ReadSkill, files: SkillFiles, verdict: Exclude<ItemTrust, "approved">): string {
  const [first] = files.scripts;
  const more = files.scripts.length - 1;
  const script = first === undefined ? "too many files to check" : JSON.stringify(clip(first, 80));
  const what = `${script}${more > 0 ? ` and ${plural(more, "more script")}` : ""}`;
  const reasons = {
    untrusted: "and this folder is not trusted",
    new: "and they are not approved yet",
    changed: "and they have changed since they were approved",
  };
  return `The skill ${skill.name} in ${skill.directory} was left out: it holds ${what}, ${reasons[verdict]}. Review them, then run: troupe trust`;
}

/** Reports a repository's skill that shadows one of the user's own. */
function noteShadowed(used: Skill, hidden: Admitted, note: Note): void {
  if (used.scope !== "workspace" || hidden.scope !== "user") return;
  const message = `The skill ${used.name} of this workspace (${used.path}) is used instead of ${hidden.path}.`;
  note({ kind: "shadowed", path: used.path, message });
}
