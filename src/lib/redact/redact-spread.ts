/** Finds a value that was split over several parts of a URL or a command. */
import { squeezed } from "./redact-values.ts";

/** Four letters or digits in a row are rare enough that a whole value is not made of them by chance. */
const MIN_PIECE = 4;
/** A longer text would give too many chance matches. */
const MAX_CHARACTERS = 8 * 1024;
const MAX_WORDS = 500;

/**
 * Whether the text contains a whole form (see `squeezedForms`), in pieces of any order or in short words one after
 * another.
 */
export function holdsPieces(text: string, forms: readonly string[]): boolean {
  if (text.length > MAX_CHARACTERS) return false;
  const bare = squeezed(text);
  const words = text
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== "")
    .slice(0, MAX_WORDS);
  return forms.some((form) => isTiled(form, bare) || isSpelled(form, words));
}

/** Whether the form can be tiled with pieces of the text; only the last may be short. */
function isTiled(form: string, bare: string): boolean {
  let at = 0;
  while (at < form.length) {
    let length = Math.min(MIN_PIECE, form.length - at);
    if (!bare.includes(form.slice(at, at + length))) return false;
    while (at + length < form.length && bare.includes(form.slice(at, at + length + 1))) length++;
    at += length;
  }
  return true;
}

/** Whether words of the text, in order and with others between them, spell the form. */
function isSpelled(form: string, words: readonly string[]): boolean {
  let reached = new Set<number>([0]);
  for (const word of words) {
    const next = new Set(reached);
    for (const at of reached) {
      if (!form.startsWith(word, at)) continue;
      if (at + word.length === form.length) return true;
      next.add(at + word.length);
    }
    reached = next;
  }
  return false;
}
