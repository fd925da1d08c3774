/** Emphasis, code and links within one line of Markdown, as spans with styles. */

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
export const INLINE = new RegExp(
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
    "(?<![\\p{L}\\p{N}_])_(?<italic2>[^\\s_](?:(?:[^_]|(?<=[\\p{L}\\p{N}])_(?=[\\p{L}\\p{N}]))*?[^\\s_])?)_(?![\\p{L}\\p{N}_])",
  ].join("|"),
  "gu",
);

const MAX_DEPTH = 4;
/** Longer lines are not prose, and backtracking in them is slow. */
const MAX_INLINE_CHARACTERS = 4_000;

/** Parses text that was made safe for the terminal before. */
export function markdownSpans(clean: string, styles: readonly Style[] = [], depth = 0): Span[] {
  if (clean.length > MAX_INLINE_CHARACTERS || depth > MAX_DEPTH) return [{ text: clean, styles }];
  const spans: Span[] = [];
  let last = 0;
  for (const match of clean.matchAll(INLINE)) {
    if (match.index > last) spans.push({ text: clean.slice(last, match.index), styles });
    spans.push(...spansOfMatch(match.groups ?? {}, styles, depth + 1));
    last = match.index + match[0].length;
  }
  if (last < clean.length) spans.push({ text: clean.slice(last), styles });
  return spans;
}

function spansOfMatch(
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
  if (both !== undefined) return markdownSpans(both, [...styles, BOLD, ITALIC], depth);
  if (bold !== undefined) return markdownSpans(bold, [...styles, BOLD], depth);
  if (struck !== undefined) return markdownSpans(struck, [...styles, STRUCK], depth);
  return markdownSpans(italic ?? "", [...styles, ITALIC], depth);
}

/** The target is always shown: a label can claim anything. */
function link(label: string, target: string, styles: readonly Style[], depth: number): readonly Span[] {
  if (label === "" || label === target) return [{ text: target, styles: [...styles, UNDERLINE] }];
  const shown = target === "" ? [] : [{ text: ` (${target})`, styles: [...styles, DIM] }];
  return [...markdownSpans(label, [...styles, UNDERLINE], depth), ...shown];
}
