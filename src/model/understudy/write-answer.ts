/** Formats answers: Markdown that also reads well as plain text, bounded, with every fact cited as `path:line`. */
import { clip } from "../../lib/text.ts";
import { withoutControls } from "./bounds.ts";
import type { Hit, SourceLine } from "./project/evidence.ts";
import { languageOf } from "./project/languages.ts";
import type { Remark } from "./project/read-source.ts";

const SIGNATURE =
  "_understudy: troupe's built-in offline model. It follows fixed rules and does not reason; for a real model run `troupe login` or start Ollama – see `troupe models`._";

const MAX_LINES = 80;
const MAX_LINE_CHARACTERS = 240;

/** Joins sections with blank lines. Omits empty ones. */
export function writeAnswer(sections: readonly (string | readonly string[] | undefined)[]): string {
  const blocks = sections
    .map((section) => (typeof section === "string" ? [section] : (section ?? [])))
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join("\n"));
  return `${limitText(blocks.join("\n\n"))}\n\n${SIGNATURE}`;
}

export function heading(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [`**${title}**`, ...lines];
}

export function cite(path: string, line: number): string {
  return `\`${path}:${line}\``;
}

/** Returns a row with the file's description. */
export function remarkRow(path: string, remark: Remark | undefined): string[] {
  return remark === undefined ? [] : [`${inlineText(remark.text, 220)} (${cite(path, remark.line)})`];
}

/** Returns one hit as a row. */
export function hitRow(hit: Hit): string {
  return `- ${cite(hit.path, hit.line)}  ${inlineCode(hit.text)}`;
}

export function inlineCode(text: string): string {
  const shown = clip(text.trim(), 110);
  if (shown === "") return "";
  return shown.includes("`") ? `\`\` ${shown} \`\`` : `\`${shown}\``;
}

/** Returns a numbered excerpt under its path. */
export function excerpt(path: string, lines: readonly SourceLine[]): string[] {
  const first = lines[0];
  if (first === undefined) return [];
  const width = String(lines.at(-1)?.number ?? 0).length;
  const fence = lines.some((line) => line.text.includes("```")) ? "````" : "```";
  return [
    cite(path, first.number),
    `${fence}${languageOf(path)?.endings[0] ?? ""}`,
    ...lines.map((line) => `${String(line.number).padStart(width)}  ${clip(line.text, 160)}`.trimEnd()),
    fence,
  ];
}

/** Returns at most `limit` rows, and one that counts the rest. */
export function limitRows(rows: readonly string[], limit: number, noun = "more"): string[] {
  return rows.length <= limit ? [...rows] : [...rows.slice(0, limit), `- … ${rows.length - limit} ${noun}`];
}

/** Returns prose from a file as safe inline text. */
export function inlineText(text: string, maxCharacters: number): string {
  return clip(text.replace(/\s+/g, " ").trim(), maxCharacters);
}

export function list(items: readonly string[], limit: number): string {
  const shown = items.slice(0, limit).join(", ");
  return items.length > limit ? `${shown} and ${items.length - limit} more` : shown;
}

function limitText(text: string): string {
  const lines = withoutControls(text)
    .split("\n")
    .map((line) => clip(line, MAX_LINE_CHARACTERS));
  if (lines.length <= MAX_LINES) return lines.join("\n");
  const kept = lines.slice(0, MAX_LINES - 1);
  const fences = kept.filter((line) => /^`{3,}/.test(line));
  if (fences.length % 2 === 1) kept.push(/^`+/.exec(fences.at(-1) ?? "")?.[0] ?? "```");
  return [...kept, `… ${lines.length - MAX_LINES + 1} more lines left out; ask about one part to see it.`].join("\n");
}
