/**
 * This folder holds helpers that know nothing of agents or sessions. `node/` has those that use Node's APIs, `redact/`
 * removes secrets from text.
 */

/** Returns the candidate most like `wanted`, if one is close enough to be a likely typing error. */
export function nearest(wanted: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(wanted.length / 3)) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(wanted.toLowerCase(), candidate.toLowerCase(), bestDistance);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Returns the number of insertions, deletions, changes and swaps of neighbours between the two, at most `limit`. */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  let older: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swap = swapped ? (older[j - 2] ?? 0) + 1 : change;
      next[j] = Math.min(change, swap, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1);
    }
    older = row;
    row = next;
  }
  return row[b.length] ?? limit;
}

/** Returns at most `maxCharacters`, cut at a code point, with a mark for the missing part. */
export function clip(text: string, maxCharacters: number, mark = "…"): string {
  if (text.length <= maxCharacters) return text;
  return `${firstCharacters(text, Math.max(0, maxCharacters - mark.length))}${mark}`;
}

/** Returns the first characters without splitting a surrogate pair. */
export function firstCharacters(text: string, count: number): string {
  const last = text.charCodeAt(count - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? count - 1 : count);
}

/** Returns text in a Markdown fence that it cannot close. */
export function fenceText(text: string): string {
  let longest = 2;
  for (const [run] of text.matchAll(/`+/g)) longest = Math.max(longest, run.length);
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${text}${text.endsWith("\n") ? "" : "\n"}${fence}`;
}

/** "1 file", "2 files". */
export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/**
 * Makes untrusted text safe to show on a terminal. Escape sequences and control characters are dropped, the target of a
 * link is shown, and characters that hide or reorder text are made visible. New lines and tabs stay. The result
 * contains nothing to remove: a second call changes nothing.
 */
export function sanitise(text: string): string {
  if (!NOT_PLAIN.test(text) || !HARMFUL.test(text)) return text;
  return text.replace(HARMFUL_PART, (part) => {
    const first = part.codePointAt(0) ?? 0;
    if (first > 0x9f) return `<U+${first.toString(16).toUpperCase().padStart(4, "0")}>`;
    const target = LINK.exec(part)?.[1];
    return target === undefined ? "" : `<${sanitise(target)}>`;
  });
}

/**
 * Like `sanitise`, but nothing is dropped: escape sequences and control characters become visible too. For text that a
 * user decides about, where every character may be part of what runs.
 */
export function visible(text: string): string {
  const shown = (character: string): string =>
    `<U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}>`;
  return sanitise(text.replace(new RegExp(`[${CONTROL}]`, "g"), shown));
}

/** Like `sanitise`, for text within one line: names, paths, titles. */
export function sanitiseLine(text: string): string {
  return sanitise(text).replace(/[\n\t]+/g, " ");
}

const NOT_PLAIN = /[^\n\t -~]/;
/** Zero width, reordering, tags, fillers, selectors that carry data: characters that a reader cannot see. */
const HIDDEN =
  "\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufe00-\\ufe0d\\ufeff\\uffa0\\ufff0-\\ufffb\\ufffe\\uffff";
const CONTROL = "\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f";
/** A quick check whether there may be anything to do. Any character beyond the first plane needs a closer check. */
const HARMFUL = new RegExp(`[${CONTROL}${HIDDEN}\\ufe0e\\ufe0f\\ud800-\\udfff]`);
const HARMFUL_PART = new RegExp(
  [
    // Terminal strings (OSC, DCS, SOS, PM, APC) up to their end; without an end on the line, only the introducer is
    // dropped.
    "(?:\\u001b[\\]PX^_]|[\\u0090\\u0098\\u009d-\\u009f])[^\\u0000-\\u001f\\u007f-\\u009f]{0,8192}(?:\\u0007|\\u001b\\\\|\\u009c)",
    "\\u001b[\\]PX^_]",
    "(?:\\u001b\\[|\\u009b)[0-?]{0,256}[ -/]{0,16}[@-~]?",
    "\\u001b[ -/]{0,16}[0-~]?",
    `[${CONTROL}]`,
    `[${HIDDEN}\\u{d800}-\\u{dfff}\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}]`,
    // After a pictograph they select its form; elsewhere they can carry data.
    "(?<!\\p{Extended_Pictographic})[\\ufe0e\\ufe0f]",
  ].join("|"),
  "gu",
);
const LINK = /^(?:\u001b\]|\u009d)8;[^;]*;([^\u0007\u001b\u009c]+)/;
