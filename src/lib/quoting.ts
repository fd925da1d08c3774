/**
 * Untrusted text inside a model's input: between our tags, which the text can neither open, close nor imitate.
 * `wrapInTag` makes every frame, and `quoted` prepares its text.
 */
import { summarySections } from "./summary-sections.ts";
import { clip, sanitise, sanitiseLine } from "./text.ts";

/** Tags that mark the source of a text. A frame with a tag that is not listed here does not compile. */
export const frameTags = [
  "agent_instructions",
  "agent_message",
  "board_item",
  "code_change_instructions",
  "consolidation_board",
  "current_datetime",
  "custom_instructions",
  "draft",
  "dynamic_context_board",
  "environment_context",
  "github_references",
  "ide_selection",
  "inbox_message",
  "instruction_discovered",
  "instruction_file",
  "latest_commits",
  "linked_resource",
  "mcp_prompt",
  "mcp_server_instructions",
  "memories",
  "memory",
  "organization_instructions",
  "piped_input",
  "reminder",
  "said_by_agent",
  "said_by_person",
  "session_checkpoint",
  "session_limits_status",
  "session_turns",
  "skill",
  "skill-context",
  "summary",
  "system_notification",
  "system_reminder",
  "tagged_files",
  "factory_run_settled",
  "tools_changed_notice",
  "user_message",
] as const;
export type FrameTag = (typeof frameTags)[number];

/** Tags with a meaning only inside a summary, or in the request for one. */
export const summaryTags = [...summarySections, "agents", "focus", "plan", "skills", "todos"] as const;
export type SummaryTag = (typeof summaryTags)[number];

/** Puts text between tags. The caller must have quoted the text; attributes are escaped here. */
export function wrapInTag(
  tag: FrameTag | SummaryTag,
  attributes: Readonly<Record<string, string | undefined>>,
  text: string,
): string {
  const shown = Object.entries(attributes).flatMap(([name, value]) =>
    value === undefined ? [] : [` ${name}="${attribute(value)}"`],
  );
  return `<${tag}${shown.join("")}>\n${text}\n</${tag}>`;
}

const MAX_ATTRIBUTE_CHARACTERS = 400;

function attribute(value: string): string {
  return sanitise(value)
    .replace(/\s+/g, " ")
    .slice(0, MAX_ATTRIBUTE_CHARACTERS)
    .replaceAll("&", "&amp;")
    .replaceAll('"', "&quot;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;");
}

/**
 * Returns the text with hidden characters made visible and every tag of ours encoded. Quoting twice changes nothing.
 */
export function quoted(text: string): string {
  return withoutTags(sanitise(text));
}

/** Like `quoted`, for text inside a summary: the tags of its sections are encoded too. */
export function quotedInSummary(text: string): string {
  return encoded(sanitise(text), inSummary);
}

/** Like `quoted`, for text whose hidden characters must stay unchanged. */
export function withoutTags(text: string): string {
  return encoded(text, inFrames);
}

/** Returns the same JSON value with the tags in its strings and member names encoded. */
export function quotedJson<T extends object>(value: T): T {
  return JSON.parse(withoutTags(JSON.stringify(value)));
}

const MAX_LINE_CHARACTERS = 300;

/** Returns the text on one line, truncated, without tags or quotation marks. */
export function quotedLine(text: string): string {
  return clip(sanitiseLine(text).replace(/\s+/g, " "), MAX_LINE_CHARACTERS)
    .replaceAll("&", "&amp;")
    .replace(new RegExp(OPENER, "g"), "&lt;")
    .replace(/[>\uff1e\ufe65]/g, "&gt;")
    .replaceAll('"', "'");
}

interface Lexicon {
  /** The names without separators. True: only the whole word counts, because it is an ordinary word. */
  readonly names: ReadonlyMap<string, boolean>;
  readonly beginnings: ReadonlySet<string>;
}

const inFrames = lexicon(frameTags);
const inSummary = lexicon([...frameTags, ...summaryTags]);

function lexicon(tags: readonly string[]): Lexicon {
  const names = new Map(tags.map((tag) => [tag.replace(/[_-]/g, ""), !/[_-]/.test(tag)]));
  const beginnings = [...names.keys()].flatMap((name) =>
    Array.from({ length: name.length }, (_, index) => name.slice(0, index + 1)),
  );
  return { names, beginnings: new Set(beginnings) };
}

/** `<` and characters that a reader may take for it. */
const OPENER = "[<\\u02c2\\u1438\\u2039\\u226e\\u227a\\u2329\\u276e\\u27e8\\u3008\\ufe64\\uff1c]";
/** Replaces one hidden character after `sanitise`. */
const MARK = "<U\\+[0-9A-F]{4,6}>";
/** Matches every opener once, except where it is part of a mark. */
const CANDIDATE = new RegExp(`${MARK}|(${OPENER})`, "g");

/** Linear in the length of the text: the part skipped after one opener contains no other. */
function encoded(text: string, known: Lexicon): string {
  return text.replace(CANDIDATE, (found: string, opener: string | undefined, at: number) =>
    opener !== undefined && SKIPPED.some((skipped) => namesTag(text, at + 1, { skipped, known })) ? "&lt;" : found,
  );
}

/** Skipped anywhere in a tag: white space, slashes, separators, hidden and combining characters. */
const NOISE = `${MARK}|[\\s/\\\\_\\-\\p{M}\\p{C}\\p{Z}\\p{Pc}\\p{Pd}\\p{Default_Ignorable_Code_Point}\\u2044\\u2215\\u29f8\\uff0f\\uff3c]`;
/**
 * In JSON white space is escaped; elsewhere the same two characters are a backslash and a letter. So both are tried.
 */
const ESCAPES = "\\\\(?:[bfnrt]|u[0-9a-fA-F]{4})";
const SKIPPED = [new RegExp(`(?:${NOISE})+`, "uy"), new RegExp(`(?:${ESCAPES}|${NOISE})+`, "uy")];

/** Whether the text from `from` on, read as loosely as a model may read it, begins with the name of a tag. */
function namesTag(text: string, from: number, { skipped, known }: { skipped: RegExp; known: Lexicon }): boolean {
  let name = "";
  for (let at = from; at < text.length; ) {
    skipped.lastIndex = at;
    at += skipped.exec(text)?.[0].length ?? 0;
    const character = String.fromCodePoint(text.codePointAt(at) ?? 0);
    at += character.length;
    name += folded(character);
    const isWord = known.names.get(name);
    if (isWord === false || (isWord === true && !/^[\p{L}\p{N}]/u.test(text.slice(at, at + 2)))) return true;
    if (!known.beginnings.has(name)) return false;
  }
  return false;
}

/** Letters of other scripts that look like Latin ones; compatibility forms are folded by Unicode's own rules. */
const LOOKALIKES = new Map(
  Object.entries({
    а: "a",
    α: "a",
    ɑ: "a",
    с: "c",
    ϲ: "c",
    ԁ: "d",
    ɗ: "d",
    е: "e",
    ε: "e",
    є: "e",
    ɡ: "g",
    һ: "h",
    հ: "h",
    і: "i",
    ι: "i",
    ı: "i",
    ɩ: "i",
    ј: "j",
    к: "k",
    κ: "k",
    ӏ: "l",
    ḷ: "l",
    м: "m",
    п: "n",
    ո: "n",
    η: "n",
    о: "o",
    ο: "o",
    օ: "o",
    σ: "o",
    р: "p",
    ρ: "p",
    г: "r",
    ѕ: "s",
    т: "t",
    τ: "t",
    ս: "u",
    υ: "u",
    ν: "v",
    ѵ: "v",
    ԝ: "w",
    ѡ: "w",
    х: "x",
    χ: "x",
    у: "y",
    γ: "y",
  }),
);

function folded(character: string): string {
  if (character < "\u0080") return character.toLowerCase();
  const plain = character.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  return Array.from(plain, (letter) => LOOKALIKES.get(letter) ?? letter).join("");
}
