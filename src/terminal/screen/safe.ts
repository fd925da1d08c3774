/**
 * Text from models, tools, files and agents before it reaches the terminal. Escape sequences and control characters are
 * removed; characters that hide or reorder text become visible. Emoji that are joined by U+200D stay whole.
 */
import { sanitise } from "../../lib/text.ts";

/** A valid emoji sequence with a joiner, a tag or a variation selector in it. */
const RGI_EMOJI = "\\p{RGI_Emoji}";
const JOINED = new RegExp(RGI_EMOJI, "gv");
const MAY_BE_JOINED = /[\u200d\ufe0f\u{e0020}-\u{e007f}]/u;

/** Keeps new lines and tabs. */
export function safe(text: string): string {
  if (!MAY_BE_JOINED.test(text)) return sanitise(text);
  let result = "";
  let at = 0;
  for (const match of text.matchAll(JOINED)) {
    if (!MAY_BE_JOINED.test(match[0])) continue;
    result += sanitise(text.slice(at, match.index)) + match[0];
    at = match.index + match[0].length;
  }
  return result + sanitise(text.slice(at));
}

/** For text inside one row: new lines and tabs become blanks. */
export function safeLine(text: string): string {
  return safe(text).replace(/[\n\t]+/g, " ");
}

/** For one row whose blanks matter, such as code: tabs become blanks, new lines too. */
export function safeCode(text: string): string {
  return safe(text).replaceAll("\t", "    ").replaceAll("\n", " ");
}
