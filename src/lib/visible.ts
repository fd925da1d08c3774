/**
 * Shows untrusted text to a user who must decide about it. Nothing is removed: invisible characters are named, and
 * padding that would push the rest out of sight is counted. `sanitise`, in contrast, is for reading.
 */

/**
 * All invisible characters and those that move others: controls, format and private characters, fillers, and spaces
 * except the usual one.
 */
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/u;
const UNSEEN_EACH = new RegExp(`(?!\\n)(?:${UNSEEN.source})`, "gu");
/** A run of the same invisible character. */
const REPEATED = new RegExp(`((?![\\n\\t])(?:${UNSEEN.source}))\\1{4,}`, "gu");
/** Marks that are stacked on one letter until they cover the lines around it. */
const STACKED = /\p{M}{3,}/gu;
/** More than the indentation of a script. */
const BLANKS = /[ \t]{17,}|\t{9,}/g;
const NEW_LINES = /\n(?:[ \t]*\n){3,}/g;

/** Writes invisible characters as `<U+200B>` and long runs of blanks as `··· 2,000 spaces ···`. New lines stay. */
export function visible(text: string): string {
  return text
    .replace(NEW_LINES, (run) => `\n··· ${counted(lineFeeds(run) - 1)} empty lines ···\n`)
    .replace(BLANKS, (run) => ` ··· ${counted(run.length)} ${kindOf(run)} ··· `)
    .replace(STACKED, (run) => [...run].map(named).join(""))
    .replace(REPEATED, (run, character: string) => `${named(character)}×${counted(run.length / character.length)}`)
    .replace(UNSEEN_EACH, (character) => (character === "\t" ? "\t" : named(character)));
}

/** Like `visible`, within one line: new lines are shown as `⏎`. */
export function visibleLine(text: string): string {
  return visible(text)
    .replace(/\s*\n\s*/g, " ⏎ ")
    .replaceAll("\t", " ");
}

/** Returns the number of characters that `visible` would name, without new lines and tabs. */
export function unseenCharacters(text: string): number {
  return (text.match(UNSEEN_EACH) ?? []).filter((one) => one !== "\t").length;
}

/** Returns at most about `most` characters: the beginning and the end, with the number of omitted ones between them. */
export function bounded(text: string, most: number): string {
  if (text.length <= most) return text;
  const half = Math.floor(most / 2);
  // A surrogate pair that is cut would be shown as two broken characters.
  const head = text.slice(0, half).replace(/[\ud800-\udbff]$/, "");
  const tail = text.slice(-half).replace(/^[\udc00-\udfff]/, "");
  const hidden = text.length - head.length - tail.length;
  return `${head} ··· ${counted(hidden)} characters are not shown ··· ${tail}`;
}

export const counted = (count: number): string => count.toLocaleString("en-US");

const kindOf = (run: string): string => (run.includes("\t") ? (run.includes(" ") ? "blanks" : "tabs") : "spaces");

const lineFeeds = (text: string): number => text.split("\n").length - 1;

const named = (character: string): string =>
  `<U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}>`;

/** Quotes a name with line breaks, so that it cannot look like two names. */
export function onOneLine(name: string): string {
  return /[\u0000-\u001f\u007f]/.test(name) ? JSON.stringify(name) : name;
}
