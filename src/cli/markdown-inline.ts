/** Emphasis, code and links within one line of Markdown, and lines of a given width. */
import { INLINE, markdownSpans, type Span, type Style, styled } from "../lib/markdown-spans.ts";
import { sanitise } from "../lib/text.ts";
import { columnsOf } from "./output/columns.ts";

/** Parses untrusted text into styled spans that cannot control the terminal. */
export function spansIn(text: string, styles: readonly Style[] = []): Span[] {
  return markdownSpans(sanitise(text), styles);
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
