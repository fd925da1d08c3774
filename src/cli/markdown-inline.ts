/** Emphasis, code and links within one line of Markdown, and lines of a given width. */
import { sanitise } from "../lib/text.ts";
import { columnsOf } from "./output/columns.ts";

/** Select Graphic Rendition codes that begin and end a style. */
export type Style = readonly [on: number, off: number];
export const BOLD: Style = [1, 22];
export const DIM: Style = [2, 22];
const ITALIC: Style = [3, 23];
export const UNDERLINE: Style = [4, 24];
const STRUCK: Style = [9, 29];
const CODE: Style = [36, 39];

export interface Span {
  readonly text: string;
  readonly styles: readonly Style[];
}

export function styled(text: string, styles: readonly Style[]): string {
  if (text === "" || styles.length === 0) return text;
  const codes = (side: 0 | 1) => styles.map((style) => style[side]).join(";");
  return `\u001b[${codes(0)}m${text}\u001b[${codes(1)}m`;
}

/** The alternatives are tried in this order at each position; none spans lines. */
const INLINE = new RegExp(
  [
    "\\\\(?<escaped>[!-/:-@[-`{-~])",
    "(?<ticks>`+)(?<code>(?!`).*?(?<!`))\\k<ticks>(?!`)",
    '!?\\[(?<label>[^\\[\\]]*)\\]\\((?<target>[^()\\s]*(?:\\([^()\\s]*\\)[^()\\s]*)*)(?:\\s+"[^"]*")?\\)',
    "<(?<address>https?://[^<>\\s]+)>",
    "\\*\\*\\*(?<both>\\S(?:.*?\\S)?)\\*\\*\\*",
    "\\*\\*(?<bold>\\S(?:.*?\\S)?)\\*\\*(?!\\*)",
    "(?<![\\p{L}\\p{N}_])__(?<bold2>\\S(?:.*?\\S)?)__(?![\\p{L}\\p{N}_])",
    "~~(?<struck>\\S(?:.*?\\S)?)~~",
    "\\*(?<italic>[^\\s*](?:[^*]*?[^\\s*])?)\\*(?!\\*)",
    "(?<![\\p{L}\\p{N}_])_(?<italic2>[^\\s_](?:[^_]*?[^\\s_])?)_(?![\\p{L}\\p{N}_])",
  ].join("|"),
  "gu",
);

const MAX_DEPTH = 4;
/** Longer lines are no prose, and backtracking in them is slow. */
const MAX_INLINE_CHARACTERS = 4_000;

/** Parses untrusted text into styled spans that cannot control the terminal. */
export function spansIn(text: string, styles: readonly Style[] = [], depth = 0): Span[] {
  const clean = depth === 0 ? sanitise(text) : text;
  if (clean.length > MAX_INLINE_CHARACTERS || depth > MAX_DEPTH) return [{ text: clean, styles }];
  const spans: Span[] = [];
  let last = 0;
  for (const match of clean.matchAll(INLINE)) {
    if (match.index > last) spans.push({ text: clean.slice(last, match.index), styles });
    spans.push(...matched(match.groups ?? {}, styles, depth + 1));
    last = match.index + match[0].length;
  }
  if (last < clean.length) spans.push({ text: clean.slice(last), styles });
  return spans;
}

function matched(
  groups: Readonly<Record<string, string | undefined>>,
  styles: readonly Style[],
  depth: number,
): readonly Span[] {
  const { escaped, code, label, target, address, both, struck } = groups;
  const bold = groups.bold ?? groups.bold2;
  const italic = groups.italic ?? groups.italic2;
  if (escaped !== undefined) return [{ text: escaped, styles }];
  if (code !== undefined) return [{ text: code.replace(/^ (.*\S.*) $/, "$1"), styles: [...styles, CODE] }];
  if (address !== undefined) return [{ text: address, styles: [...styles, UNDERLINE] }];
  if (label !== undefined) return link(label, target ?? "", styles, depth);
  if (both !== undefined) return spansIn(both, [...styles, BOLD, ITALIC], depth);
  if (bold !== undefined) return spansIn(bold, [...styles, BOLD], depth);
  if (struck !== undefined) return spansIn(struck, [...styles, STRUCK], depth);
  return spansIn(italic ?? "", [...styles, ITALIC], depth);
}

/** The target is always shown: a label can claim anything. */
function link(label: string, target: string, styles: readonly Style[], depth: number): readonly Span[] {
  if (label === "" || label === target) return [{ text: target, styles: [...styles, UNDERLINE] }];
  const shown = target === "" ? [] : [{ text: ` (${target})`, styles: [...styles, DIM] }];
  return [...spansIn(label, [...styles, UNDERLINE], depth), ...shown];
}

/** Writes words one after another, and begins a new line before a word that does not fit. */
export class Wrap {
  readonly #width: number;
  readonly #indent: string;
  #column: number;
  #blanks = "";
  #hasWord = false;

  /** `first`: the columns used at the start of the line. `indent`: the prefix of the lines after it. */
  constructor(how: { width: number; first: number; indent: string }) {
    this.#width = how.width;
    this.#indent = how.indent;
    this.#column = how.first;
  }

  write(spans: readonly Span[]): string {
    let out = "";
    for (const { text, styles } of spans) {
      for (const [part] of text.matchAll(/\s+|\S+/g)) {
        if (/^\s/.test(part)) this.#blanks += part.replace(/\t/g, "    ");
        else out += this.#word(part, styles);
      }
    }
    return out;
  }

  #word(word: string, styles: readonly Style[]): string {
    const columns = columnsOf(word);
    const blanks = this.#blanks;
    this.#blanks = "";
    if (this.#hasWord && blanks !== "" && this.#column + blanks.length + columns > this.#width) {
      this.#column = columnsOf(this.#indent) + columns;
      return `\n${this.#indent}${styled(word, styles)}`;
    }
    this.#hasWord = true;
    this.#column += blanks.length + columns;
    return `${blanks}${styled(word, styles)}`;
  }
}

/** Maximum number of words to look back in an unfinished line. The check is repeated with every word that arrives. */
const MAX_LOOKS = 8;

/** Returns how much of an unfinished line can be shown: up to a space where no emphasis, code or link is open. */
export function shownUpTo(line: string): number {
  let end = line.search(/\s\S*$/);
  for (let looks = 0; end > 0 && looks < MAX_LOOKS; looks++) {
    const text = line.slice(0, end);
    if (isClosed(text)) return end;
    end = text.search(/\s\S*$/);
  }
  return 0;
}

function isClosed(text: string): boolean {
  const rest = text.replace(INLINE, "").replace(/\[[^[\]]*\](?=[^(])/g, "");
  return !/[`[\\]|[*~]{1,3}(?=\S)|(?<![\p{L}\p{N}_])_{1,2}(?=\S)/u.test(rest);
}
