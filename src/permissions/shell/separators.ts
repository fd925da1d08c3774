import type { Word } from "unbash";

/** The position of a word or a redirection in the source. */
export type SourceSpan = Pick<Word, "pos" | "end">;

/**
 * Returns true when nothing but separators is outside the spans. The parser is tolerant and skips text that it cannot
 * place.
 */
export function onlySeparators(text: string, spans: readonly SourceSpan[]): boolean {
  let rest = "";
  let end = 0;
  for (const span of [...spans].sort((one, other) => one.pos - other.pos)) {
    rest += text.slice(end, span.pos);
    end = Math.max(end, span.end);
  }
  return /^(?:[ \n;&|]|#[^\n]*)*$/.test(rest + text.slice(end));
}
