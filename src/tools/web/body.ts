/** Reads and decompresses the body of a response. The limit applies to the decompressed size. */
import type { IncomingMessage } from "node:http";
import { Readable, type Transform } from "node:stream";
import { ToolError } from "../tool-error.ts";

const MAX_BODY_BYTES = 10 * 1024 * 1024;

export async function readBody(
  response: IncomingMessage,
  signal: AbortSignal,
): Promise<{ bytes: Buffer; isCut: boolean }> {
  const unpacked = await unpack(response);
  const pieces: Buffer[] = [];
  let size = 0;
  try {
    for await (const piece of unpacked) {
      signal.throwIfAborted();
      const bytes: Buffer = Buffer.isBuffer(piece) ? piece : Buffer.from(piece);
      pieces.push(bytes);
      size += bytes.length;
      if (size > MAX_BODY_BYTES) break;
    }
  } finally {
    unpacked.destroy();
    response.destroy();
  }
  return { bytes: Buffer.concat(pieces, Math.min(size, MAX_BODY_BYTES)), isCut: size > MAX_BODY_BYTES };
}

async function unpack(response: IncomingMessage): Promise<Readable> {
  const coding = response.headers["content-encoding"]?.trim().toLowerCase() ?? "identity";
  if (coding === "identity" || coding === "") return response;
  const zlib = await import("node:zlib");
  switch (coding) {
    case "gzip":
    case "x-gzip":
      return through(response, zlib.createGunzip());
    case "br":
      return through(response, zlib.createBrotliDecompress());
    case "deflate":
      return unpackDeflate(response, zlib);
    default:
      response.destroy();
      throw new ToolError(`The server used a content encoding that was not requested (${clipped(coding)}).`);
  }
}

/**
 * Handles servers that send raw deflate without the two-byte zlib header, whose first byte always has 8 in its low
 * half.
 */
async function unpackDeflate(response: IncomingMessage, zlib: typeof import("node:zlib")): Promise<Readable> {
  const source = response[Symbol.asyncIterator]();
  const first = await source.next();
  if (first.done) return Readable.from([]);
  const head: Buffer = first.value;
  const isBare = ((head[0] ?? 0) & 0x0f) !== 8;
  const whole = Readable.from(prepend(head, source));
  return through(whole, isBare ? zlib.createInflateRaw() : zlib.createInflate());
}

async function* prepend(head: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield head;
  for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value;
}

function through(source: Readable, transform: Transform): Readable {
  source.on("error", (error) => transform.destroy(error));
  return source.pipe(transform);
}

const clipped = (text: string): string => text.replace(/[^\x20-\x7e]/g, "").slice(0, 40);
