import { ToolError } from "../tool-error.ts";

/**
 * Decodes a text file; the byte order mark and line endings are preserved. Throws for content that is not UTF-8 text.
 */
export function decodeText(content: Uint8Array, path: string): string {
  const refuse = (what: string): ToolError =>
    new ToolError(`${path} ${what}; only UTF-8 text can be edited. Use a shell command for such files.`);
  if ((content[0] === 0xff && content[1] === 0xfe) || (content[0] === 0xfe && content[1] === 0xff)) {
    throw refuse("is UTF-16 text");
  }
  if (content.includes(0)) throw refuse("is a binary file");
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(content);
  } catch {
    throw refuse("is not valid UTF-8");
  }
}

/** Throws for an unpaired surrogate, which UTF-8 cannot store. */
export function encodeText(text: string): Buffer {
  if (/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(text)) {
    throw new ToolError(
      "The text contains half of a surrogate pair, which UTF-8 cannot store. Send the complete text again.",
    );
  }
  return Buffer.from(text);
}

export type LineEnding = "\n" | "\r\n";

export interface TextLine {
  /** Without the line ending. */
  readonly text: string;
  /** Empty only for the last line of a file without a final line break. */
  readonly ending: LineEnding | "";
}

export function splitLines(text: string): TextLine[] {
  const lines: TextLine[] = [];
  for (let start = 0; start < text.length; ) {
    const at = text.indexOf("\n", start);
    if (at === -1) {
      lines.push({ text: text.slice(start), ending: "" });
      break;
    }
    const isPair = at > start && text[at - 1] === "\r";
    lines.push({ text: text.slice(start, isPair ? at - 1 : at), ending: isPair ? "\r\n" : "\n" });
    start = at + 1;
  }
  return lines;
}

/** Returns the 1-based line number of the offset. */
export function lineAt(text: string, offset: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at !== -1 && at < offset; at = text.indexOf("\n", at + 1)) line++;
  return line;
}

/** Returns "3", "3 and 9", "3, 9 and 12" or "3, 9, 12, 20, 31 and 4 more". */
export function listNumbers(numbers: readonly number[], most = 5): string {
  const shown = numbers.slice(0, most).map(String);
  const rest = numbers.length - shown.length;
  if (rest > 0) shown.push(`${rest} more`);
  const last = shown.pop() ?? "";
  return shown.length === 0 ? last : `${shown.join(", ")} and ${last}`;
}
