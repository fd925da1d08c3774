/** Writes running text as lines: collapses white space, separates blocks, and adds the marks of quotes and lists. */
export interface TextWriter {
  /** Running text; white space at its edges separates words. */
  text(text: string): void;
  /** Verbatim text without space before the next text, after the previous text, or both. */
  mark(text: string, position: "before" | "after" | "between"): void;
  /** Whole lines, verbatim. */
  block(lines: readonly string[]): void;
  /** Starts the next text on a new line (1) or after an empty line (2). */
  apart(lines: 1 | 2): void;
  /** Put before every line that starts from now on. */
  prefix: string;
  readonly length: number;
  toString(): string;
}

export function textWriter(): TextWriter {
  const pieces: string[] = [];
  let length = 0;
  let breaks = 0;
  let isSpaceDue = false;
  let isAtStart = true;
  let isTight = false;

  function put(piece: string): void {
    pieces.push(piece);
    length += piece.length;
  }
  function startLine(): void {
    if (breaks > 0 && length > 0) put("\n".repeat(breaks));
    if (isAtStart || breaks > 0) put(writer.prefix);
    else if (isSpaceDue) put(" ");
    breaks = 0;
    isSpaceDue = false;
    isAtStart = false;
  }
  const writer: TextWriter = {
    prefix: "",
    text(text) {
      const words = text.replace(/[\s\u00a0]+/g, " ");
      if (words === " " || words === "") {
        isSpaceDue ||= words === " ";
        return;
      }
      if (words.startsWith(" ")) isSpaceDue = true;
      if (isTight) isSpaceDue = false;
      startLine();
      put(words.trim());
      isTight = false;
      isSpaceDue = words.endsWith(" ");
    },
    mark(text, position) {
      if (position === "between") isSpaceDue = false;
      if (position !== "after" || isAtStart) startLine();
      put(text);
      isTight = position !== "after";
    },
    block(lines) {
      for (const line of lines) {
        writer.apart(1);
        startLine();
        put(line);
      }
    },
    apart(lines) {
      breaks = Math.max(breaks, lines);
      isSpaceDue = false;
      isTight = false;
    },
    get length() {
      return length;
    },
    toString: () => pieces.join(""),
  };
  return writer;
}
