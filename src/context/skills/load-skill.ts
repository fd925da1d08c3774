/** Loads a skill's text when it is used, and formats it for the model. */

import { defined } from "../../lib/defined.ts";
import { openForReading, PathError } from "../../lib/node/paths.ts";
import { realPath } from "../../lib/node/real-path.ts";
import { quoted, wrapInTag } from "../../lib/quoting.ts";
import { clip, plural } from "../../lib/text.ts";
import { onOneLine } from "../../lib/visible.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { EventData } from "../../protocol/event.ts";
import { pinnedItem } from "./pin.ts";
import { skillBody } from "./read-skill.ts";
import { findSkill, MAX_SKILL_BYTES, type Skill } from "./skill.ts";
import { holdsScripts, lookAtFiles, type SkillFiles } from "./skill-files.ts";

export type SkillInvoked = EventData<"skill.invoked">;

export interface LoadedSkill {
  /** The text for the model. */
  readonly context: string;
  readonly invoked: SkillInvoked;
  /** True when the user's request was inserted into the text. */
  readonly takesRequest?: boolean;
}

/** The port of the `skill` tool. */
export interface SkillPort {
  list(): readonly { readonly name: string; readonly description: string }[];
  load(name: string, signal: AbortSignal): Promise<LoadedSkill>;
}

const MAX_LISTED_FILES = 50;
const MAX_LISTED_CHARACTERS = 4000;
const MAX_PRELOADED = 20;
const MAX_PRELOADED_CHARACTERS = 256 * 1024;

/** Calls `skills` each time, so that disabling a skill takes effect at once. */
export function skillPort(skills: () => readonly Skill[]): SkillPort {
  const offered = (): Skill[] => skills().filter((skill) => skill.enabled && skill.modelInvocable);
  return {
    list: offered,
    async load(name, signal) {
      const skill = findSkill(name, offered());
      if (skill === undefined) throw notOffered(name, skills());
      const loaded = await loadSkill(skill, "agent-invoked");
      signal.throwIfAborted();
      return loaded;
    },
  };
}

/** Throws a `TroupeError` when the file is missing, or its scripts changed since they were approved. */
export async function loadSkill(
  skill: Skill,
  trigger: "user-invoked" | "agent-invoked" | "context-load",
  request = "",
): Promise<LoadedSkill> {
  const text = await skillBody(await readWhole(skill));
  const filled = trigger === "user-invoked" ? withArguments(text, request) : { body: text, takesRequest: false };
  const { body, takesRequest } = filled;
  const files = skill.form === "skill" ? await filesNow(skill) : undefined;
  const invoked = {
    name: skill.name,
    path: skill.path,
    content: body,
    description: skill.description,
    source: skill.source,
    trigger,
    ...(skill.scope === "user" && skill.allowedTools !== undefined && { allowedTools: [...skill.allowedTools] }),
    ...defined({ pluginName: skill.pluginName, pluginVersion: skill.pluginVersion }),
  };
  return { context: contextText(skill, body, files), invoked, takesRequest };
}

/**
 * Replaces `$ARGUMENTS` with the whole request and `$1` to `$9` with single words.
 * - `\$1` and `\$ARGUMENTS` stay as text, as does a `$1` behind `awk` on its line.
 * - Without `$1` or `$ARGUMENTS` in the text, `$2` to `$9` stay as text: they are more likely prices.
 * - `takesRequest` is true only if no word of the request was left out.
 */
function withArguments(text: string, request: string): { body: string; takesRequest: boolean } {
  const words = request.split(/\s+/).filter(Boolean);
  const used = new Set<number>();
  const hasArguments = /(?<!\\)\$(?:ARGUMENTS\b|1(?!\w|\.\d))/.test(text.replace(/\bawk\b.*/g, ""));
  const fill = (part: string, pattern: RegExp): string =>
    part.replace(pattern, (found: string) => {
      if (found.startsWith("\\")) return found.slice(1);
      const argumentIndex = Number(found.slice(1)) - 1;
      for (const index of found === "$ARGUMENTS" ? words.keys() : [argumentIndex]) used.add(index);
      return found === "$ARGUMENTS" ? request : (words[argumentIndex] ?? "");
    });
  const everything = hasArguments ? /\\?\$(?:ARGUMENTS\b|[1-9](?!\w|\.\d))/g : WHOLE_REQUEST;
  const parts = text.split(/(\bawk\b.*)/);
  const body = parts.map((part, index) => fill(part, index % 2 === 1 ? WHOLE_REQUEST : everything)).join("");
  return { body, takesRequest: used.size > 0 && words.every((_, index) => used.has(index)) };
}

const WHOLE_REQUEST = /\\?\$ARGUMENTS\b/g;

/**
 * Loads the skills that an agent names, in full, before it starts. Reports skills that cannot be loaded in `missing`.
 */
export async function skillContext(
  names: readonly string[],
  skills: readonly Skill[],
): Promise<{ text: string; missing: { name: string; reason: string }[]; invoked: SkillInvoked[] }> {
  const texts: string[] = [];
  const missing: { name: string; reason: string }[] = [];
  const invoked: SkillInvoked[] = [];
  let left = MAX_PRELOADED_CHARACTERS;
  for (const name of new Set(names)) {
    const skill = findSkill(name, skills);
    const loaded = await preload(name, skill, texts.length < MAX_PRELOADED ? left : 0);
    if ("reason" in loaded) missing.push({ name, reason: loaded.reason });
    else {
      left -= loaded.context.length;
      texts.push(loaded.context);
      invoked.push(loaded.invoked);
    }
  }
  return { text: texts.join("\n\n"), missing, invoked };
}

async function preload(
  name: string,
  skill: Skill | undefined,
  room: number,
): Promise<LoadedSkill | { reason: string }> {
  if (skill === undefined) return { reason: `There is no skill called ${JSON.stringify(clip(name, 80))}.` };
  if (!skill.enabled) return { reason: `The skill ${skill.name} is switched off.` };
  try {
    const loaded = await loadSkill(skill, "context-load");
    return loaded.context.length <= room ? loaded : { reason: "The limit for loaded skills was reached." };
  } catch (error) {
    if (error instanceof TroupeError) return { reason: error.message };
    throw error;
  }
}

function notOffered(name: string, skills: readonly Skill[]): TroupeError {
  const skill = findSkill(name, skills);
  if (skill === undefined)
    return new TroupeError("usage", `There is no skill called ${JSON.stringify(clip(name, 80))}.`);
  const reason = skill.enabled ? "can be started only by the user" : "is switched off";
  return new TroupeError("usage", `The skill ${JSON.stringify(skill.name)} ${reason}.`);
}

async function readWhole({ path, root, directory, name }: Skill): Promise<string> {
  try {
    const opened = await openForReading(path, { cwd: directory, roots: [root], maxBytes: MAX_SKILL_BYTES });
    try {
      if (opened.kind !== "file") throw new PathError("missing", path, `${path} is a folder.`);
      const buffer = Buffer.alloc(Math.min(opened.stat.size, MAX_SKILL_BYTES));
      const { bytesRead } = await opened.handle.read(buffer, 0, buffer.length, 0);
      return buffer.toString("utf8", 0, bytesRead);
    } finally {
      await opened.handle.close();
    }
  } catch (error) {
    if (!(error instanceof PathError)) throw error;
    const hint = "Start a new session to load skills again.";
    throw new TroupeError("configuration", `The skill ${name} cannot be read: ${path} is ${problemWord(error)}.`, {
      hint,
    });
  }
}

function problemWord({ problem }: PathError): string {
  const words = { missing: "gone", outside: "now a link to another place", "too-large": "too large now" } as const;
  return problem in words ? words[problem as keyof typeof words] : "not readable";
}

/**
 * Lists the files again, as they may have changed. Throws if a workspace skill now has scripts that are not approved.
 */
async function filesNow(skill: Skill): Promise<SkillFiles | undefined> {
  const folder = realPath(skill.directory);
  if (folder === undefined) return undefined;
  const files = lookAtFiles(folder, { root: skill.root, budget: { left: Number.POSITIVE_INFINITY } });
  if (skill.scope === "user" || !holdsScripts(files)) return files;
  const { digest } = await pinnedItem(skill);
  if (digest === skill.approvedDigest) return files;
  const message = `The skill ${skill.name} has changed since it was found, and its scripts are not approved.`;
  throw new TroupeError("configuration", message, { hint: "Review them, then run: troupe trust" });
}

/** Returns the text for the model. Lists files only if there are more than SKILL.md. */
function contextText(skill: Skill, body: string, files: SkillFiles | undefined): string {
  const beside = (files?.files ?? []).filter((file) => file !== "SKILL.md");
  const list = beside.length === 0 ? "" : `${fileList(beside, files?.complete ?? true)}\n`;
  const head = `Base directory for this skill: ${onOneLine(skill.directory)}\n${list}\n`;
  return wrapInTag("skill-context", { name: skill.name }, quoted(`${head}${body}`));
}

function fileList(names: readonly string[], complete: boolean): string {
  const shown: string[] = [];
  let room = MAX_LISTED_CHARACTERS;
  for (const name of names.slice(0, MAX_LISTED_FILES).map(onOneLine)) {
    room -= name.length + 2;
    if (room < 0) break;
    shown.push(name);
  }
  const hidden = names.length - shown.length;
  const rest = hidden === 0 && complete ? "" : ` and ${complete ? "" : "at least "}${plural(hidden, "more file")}`;
  return `Files beside it: ${shown.join(", ")}${rest}`;
}
