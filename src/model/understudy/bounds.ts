/** Everything from outside is cut before a pattern sees it, so that no text can make a search slow. */
import { firstCharacters } from "../../lib/text.ts";

/** Longer lines are made by programs: what stands behind this is matched by nothing and shown nowhere. */
const MAX_LINE_CHARACTERS = 500;
const MAX_QUESTION_CHARACTERS = 3000;
const QUESTION_END_CHARACTERS = 1000;
const BINARY_SAMPLE_CHARACTERS = 65_536;

export function cutLine(text: string): string {
  return firstCharacters(text, MAX_LINE_CHARACTERS);
}

/** Of a very long prompt the beginning and the end, where questions stand. */
export function cutQuestion(text: string): string {
  if (text.length <= MAX_QUESTION_CHARACTERS + QUESTION_END_CHARACTERS) return text;
  return `${firstCharacters(text, MAX_QUESTION_CHARACTERS)}\n${text.slice(-QUESTION_END_CHARACTERS)}`;
}

export interface Block {
  readonly name: string;
  readonly start: number;
  readonly end: number;
  readonly body: string;
}

/** The first `<name …>…</name>` of any of `names` at or after `from`, in time that grows only with the text. */
export function findBlock(text: string, names: readonly string[], from = 0): Block | undefined {
  const opening = new RegExp(`<(${names.join("|")})(?![\\w-])[^<>]{0,2000}>`, "gi");
  const unclosed = new Set<string>();
  opening.lastIndex = from;
  for (let match = opening.exec(text); match !== null; match = opening.exec(text)) {
    const name = match[1] ?? "";
    if (unclosed.has(name)) continue;
    const close = `</${name}>`;
    const body = match.index + match[0].length;
    const end = text.indexOf(close, body);
    if (end >= 0) return { name, start: match.index, end: end + close.length, body: text.slice(body, end) };
    unclosed.add(name);
    if (unclosed.size >= names.length) return undefined;
  }
  return undefined;
}

export function withoutBlocks(text: string, names: readonly string[]): string {
  const kept: string[] = [];
  let at = 0;
  for (let block = findBlock(text, names); block !== undefined; block = findBlock(text, names, at)) {
    kept.push(text.slice(at, block.start));
    at = block.end;
  }
  return [...kept, text.slice(at)].join("");
}

/** Bytes that were no text, or that no text holds. */
export function isBinaryText(text: string): boolean {
  const sample = text.slice(0, BINARY_SAMPLE_CHARACTERS);
  if (sample.includes("\0")) return true;
  const strange = sample.match(/[\u0001-\u0007\u000e-\u001a\u001c-\u001f\u007f\ufffd]/g)?.length ?? 0;
  return strange * 10 > sample.length;
}

/** No control character but tabs and line breaks reaches an answer. */
export function withoutControls(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, "");
}
