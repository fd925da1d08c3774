/** Parses a skill from the first lines of its file. Reports a broken one as a notice. */
import { defined } from "../../lib/defined.ts";
import { type FileStart, readStart } from "../../lib/node/small-file.ts";
import { clip, sanitise } from "../../lib/text.ts";
import { splitAllowedTools } from "./allowed-tools.ts";
import { skillFrontmatter } from "./frontmatter-fast.ts";
import { MAX_SKILL_BYTES, type Note, type Skill, type SkillLocation } from "./skill.ts";

/** A file that may be a skill. */
export interface SkillCandidate {
  readonly location: SkillLocation;
  /** Real path of the location. */
  readonly root: string;
  readonly directory: string;
  readonly path: string;
  /** The name if the file has none. */
  readonly fallbackName: string;
}

/** A skill as parsed, before it is decided whether it may be used. */
export type ReadSkill = Omit<Skill, "enabled" | "hasScripts">;

const HEAD_BYTES = 8 * 1024;
const MAX_DESCRIPTION_CHARACTERS = 1024;
const MAX_HINT_CHARACTERS = 200;
const NAME = /^[A-Za-z0-9](?:[A-Za-z0-9\-_.: ]{0,62}[A-Za-z0-9\-_.:])?$/;

export async function readSkill(candidate: SkillCandidate, note: Note): Promise<ReadSkill | undefined> {
  const { location, path, root } = candidate;
  const broken = (problem: string): undefined =>
    note({ kind: "broken", path, message: `The skill ${path} was left out: ${problem}` }) ?? undefined;
  const head = readHead(path, root);
  if (head.kind === "missing" || head.kind === "special") return undefined;
  if (head.kind === "outside") return broken(`it leads out of ${location.path} by a link.`);
  if (head.kind === "unreadable") return broken("it cannot be read.");
  if (head.size > MAX_SKILL_BYTES) {
    return broken(`it has ${head.size} bytes; the limit is ${MAX_SKILL_BYTES}. Move parts of it into files beside it.`);
  }
  const { data, body, problem } = await skillFrontmatter(head.bytes.toString("utf8"));
  if (problem) return broken(`line ${problem.line}: ${problem.message}`);
  const name = textOf(data.name) || candidate.fallbackName;
  if (!NAME.test(name)) {
    return broken(
      `the name ${JSON.stringify(clip(name, 80))} must have 1 to 64 letters, digits, spaces or any of - _ . : in it.`,
    );
  }
  const description = oneLine(textOf(data.description) || firstParagraph(body));
  if (description === "") return broken("it is empty. Write a description and instructions.");
  if (description.length > MAX_DESCRIPTION_CHARACTERS) {
    const message = `The description of the skill ${path} was cut at ${MAX_DESCRIPTION_CHARACTERS} characters.`;
    note({ kind: "limit", path, message });
  }
  const hint = hintOf(data["argument-hint"]);
  return {
    name,
    description: clip(description, MAX_DESCRIPTION_CHARACTERS),
    directory: candidate.directory,
    path,
    root,
    source: location.source,
    scope: location.workspace === undefined ? "user" : "workspace",
    form: location.form,
    userInvocable: isTrue(data["user-invocable"], true),
    modelInvocable: !isTrue(data["disable-model-invocation"], false),
    ...(hint !== "" && { argumentHint: hint }),
    ...allowedTools(data["allowed-tools"], candidate, note),
    ...defined({ pluginName: location.pluginName, pluginVersion: location.pluginVersion }),
  };
}

/** Returns the text for the model: exactly as written, without the frontmatter and the empty lines after it. */
export async function skillBody(text: string): Promise<string> {
  const { body } = await skillFrontmatter(text);
  return body.replace(/^\ufeff?(?:[ \t]*\r?\n)+/, "");
}

/** Reads the frontmatter and some of the body; the rest is read when the skill is used. */
function readHead(path: string, root: string): FileStart {
  const head = readStart(path, { below: root, maxBytes: HEAD_BYTES });
  if (head.kind !== "read" || head.size <= HEAD_BYTES || head.size > MAX_SKILL_BYTES) return head;
  const isClosed = /^(?!\ufeff?---)|\n---[ \t]*\r?\n/.test(head.bytes.toString("utf8"));
  return isClosed ? head : readStart(path, { below: root, maxBytes: MAX_SKILL_BYTES });
}

function allowedTools(value: unknown, { location, path }: SkillCandidate, note: Note): Pick<Skill, "allowedTools"> {
  const { tools, problem } = splitAllowedTools(value);
  if (problem !== undefined) note({ kind: "tools", path, message: `allowed-tools in ${path}: ${problem}` });
  if (tools.length === 0) return {};
  if (location.workspace === undefined) return { allowedTools: tools };
  const reason =
    "a workspace may only forbid tools, not allow them. The skill works, but each call needs permission as usual.";
  note({ kind: "tools", path, message: `allowed-tools in ${path} is not used: ${reason}` });
  return {};
}

function textOf(value: unknown): string {
  if (typeof value === "number") return String(value);
  return typeof value === "string" ? value.trim() : "";
}

/** Joins a list: YAML parses `[file]` as a list, but authors mean text. */
function hintOf(value: unknown): string {
  const text = Array.isArray(value) ? value.map((item) => `[${textOf(item)}]`).join(" ") : textOf(value);
  return clip(oneLine(text), MAX_HINT_CHARACTERS);
}

function isTrue(value: unknown, otherwise: boolean): boolean {
  if (typeof value === "boolean") return value;
  return value === "true" || (value === "false" ? false : otherwise);
}

function firstParagraph(body: string): string {
  const paragraphs = body.replace(/<!--[\s\S]*?(?:-->|$)/g, "").split(/\r?\n[ \t]*(?:\r?\n|$)/);
  const texts = paragraphs.map((paragraph) => paragraph.replace(/^#+ .*$/gm, "").trim());
  const heading = /^#+ (.+)$/m.exec(body)?.[1] ?? "";
  return clip(texts.find((text) => text !== "") ?? heading, MAX_DESCRIPTION_CHARACTERS);
}

function oneLine(text: string): string {
  return sanitise(text).replace(/\s+/g, " ").trim();
}
