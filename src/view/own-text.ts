/** Text that is kept while the text it was cut from is not. */
import { clip as cut } from "../lib/text.ts";

/** Engines keep the whole text alive for a slice of it; a copy keeps only itself. */
export function ownCopy(text: string): string {
  return text.length < SHORT ? text : ` ${text}`.slice(1);
}

/** As `clip` of `lib`, as a text of its own. */
export function clip(text: string, maxCharacters: number): string {
  return ownCopy(cut(text, maxCharacters));
}

/** Engines copy these anyway. */
const SHORT = 13;
