import { firstCharacters } from "../../lib/text.ts";

/** An open file, or content in memory. */
export interface TextSource {
  read(buffer: Buffer, offset: number, length: number, position: number): Promise<{ readonly bytesRead: number }>;
}

const HEAD_BYTES = 8192;
const CHUNK_BYTES = 64 * 1024;
const CLIPPED = "… [line cut]";

/** Reads the start of a file: enough to distinguish text from images and other binary content. */
export async function readHead(handle: TextSource): Promise<Buffer> {
  return readAt(handle, 0, HEAD_BYTES);
}

export function isBinary(head: Buffer): boolean {
  return encodingOf(head) === "utf-8" && head.includes(0);
}

/**
 * Yields the lines of a text file, reading only as far as needed. A trailing line break is followed by one more, empty
 * line. Keeps at most `maxLineCharacters` of a line.
 */
export async function* readLines(
  handle: TextSource,
  { head, maxLineCharacters, signal }: { head: Buffer; maxLineCharacters: number; signal: AbortSignal },
): AsyncGenerator<string> {
  const decoder = new TextDecoder(encodingOf(head));
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  let line = "";
  for (let position = 0; ; ) {
    signal.throwIfAborted();
    const { bytesRead } = await handle.read(buffer, 0, CHUNK_BYTES, position);
    position += bytesRead;
    const parts = decoder.decode(buffer.subarray(0, bytesRead), { stream: bytesRead > 0 }).split("\n");
    for (const [index, part] of parts.entries()) {
      if (index > 0) {
        yield clipLine(line, maxLineCharacters);
        line = "";
      }
      // Two more than are shown: one to detect that the line is too long, one for a possible carriage return.
      if (line.length < maxLineCharacters + 2) line += part.slice(0, maxLineCharacters + 2 - line.length);
    }
    if (bytesRead === 0) break;
  }
  yield clipLine(line, maxLineCharacters);
}

function clipLine(line: string, maxCharacters: number): string {
  const text = line.endsWith("\r") ? line.slice(0, -1) : line;
  return text.length > maxCharacters ? `${firstCharacters(text, maxCharacters)}${CLIPPED}` : text;
}

/** Reads at most `length` bytes; fewer only at the end of the file. */
export async function readAt(handle: TextSource, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await handle.read(buffer, filled, length - filled, position + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}

export function inMemory(content: Buffer): TextSource {
  return {
    async read(buffer, offset, length, position) {
      return { bytesRead: content.copy(buffer, offset, position, position + length) };
    },
  };
}

function encodingOf(head: Buffer): "utf-8" | "utf-16le" | "utf-16be" {
  if (head[0] === 0xff && head[1] === 0xfe) return "utf-16le";
  if (head[0] === 0xfe && head[1] === 0xff) return "utf-16be";
  return "utf-8";
}
