/**
 * Messages on a byte stream: `Content-Length: <bytes>`, an empty line, and that many bytes of JSON. The reader holds at
 * most one message. It refuses a message that would be too expensive to parse before it parses it, and continues after
 * it.
 */
import { isHeavierThan, parseJson, prototypeKeyIn } from "../../lib/json.ts";
import { RpcError, rpcCodes } from "./errors.ts";

export interface FrameLimits {
  readonly bytes: number;
  readonly depth: number;
  /** Maximum number of commas, colons and opening brackets, which bounds the number of values. */
  readonly marks: number;
}

/**
 * Blobs are sent inside messages, so a message may be long. It may have only as many members as one of 1 MiB could
 * have.
 */
const frameLimits: FrameLimits = { bytes: 32 * 1024 * 1024, depth: 64, marks: 350_000 };

export type Frame =
  | { readonly kind: "message"; readonly value: unknown }
  /** `id` if it could be read without parsing the message. */
  | { readonly kind: "refused"; readonly id: number | string | null; readonly error: RpcError };

const MAX_HEADER_BYTES = 4096;
/** Enough bytes of a refused message to find its request id. */
const HEAD_BYTES = 512;
/** A refused message is read to its end and discarded, up to this size. */
const MAX_SKIPPED_BYTES = 1024 * 1024 * 1024;

/** The input is not a message. The stream cannot be used any more. */
export class FramingError extends Error {
  override readonly name = "FramingError";
}

const encoder = new TextEncoder();

export function encodeFrame(message: unknown): Uint8Array {
  const body = encoder.encode(JSON.stringify(message));
  const header = encoder.encode(`Content-Length: ${body.byteLength}\r\n\r\n`);
  const frame = new Uint8Array(header.byteLength + body.byteLength);
  frame.set(header);
  frame.set(body, header.byteLength);
  return frame;
}

export class FrameReader {
  readonly #limits: FrameLimits;
  /** Bytes of the header so far. */
  #header: number[] = [];
  /** Set while a body is read. */
  #body:
    | { readonly length: number; readonly chunks: Uint8Array[]; read: number; readonly isSkipped: boolean }
    | undefined;

  constructor(limits: FrameLimits = frameLimits) {
    this.#limits = limits;
  }

  /** True between the first byte of a message and its last. */
  get isInside(): boolean {
    return this.#body !== undefined || this.#header.length > 0;
  }

  /** Yields whole messages, in order. Throws a `FramingError`, after which the reader must not be used. */
  *read(chunk: Uint8Array): Generator<Frame> {
    for (let at = 0; at < chunk.byteLength || this.#body?.length === this.#body?.read; ) {
      if (!this.#body) {
        if (at >= chunk.byteLength) return;
        at = this.#readHeader(chunk, at);
        continue;
      }
      const { length, chunks, read, isSkipped } = this.#body;
      const part = chunk.subarray(at, at + length - read);
      at += part.byteLength;
      this.#body.read += part.byteLength;
      if (!isSkipped || read < HEAD_BYTES) chunks.push(part);
      if (this.#body.read < length) return;
      this.#body = undefined;
      yield isSkipped
        ? refusal(headOf(chunks), tooLong(length, this.#limits))
        : this.#parse(joinChunks(chunks, length));
    }
  }

  #readHeader(chunk: Uint8Array, start: number): number {
    for (let at = start; at < chunk.byteLength; at++) {
      this.#header.push(chunk[at] ?? 0);
      if (this.#header.length > MAX_HEADER_BYTES) throw new FramingError("The header of a message is too long.");
      if (chunk[at] === LINE_FEED && isHeaderEnd(this.#header)) {
        const length = contentLength(String.fromCharCode(...this.#header));
        this.#header = [];
        this.#body = { length, chunks: [], read: 0, isSkipped: length > this.#limits.bytes };
        return at + 1;
      }
      // Rejects a browser or another foreign protocol by its first line, before it can send more.
      if (chunk[at] === LINE_FEED) requireHeaderLine(String.fromCharCode(...this.#header));
    }
    return chunk.byteLength;
  }

  #parse(bytes: Uint8Array): Frame {
    let text: string;
    try {
      text = decoder.decode(bytes);
    } catch {
      return refusal(headOf([bytes]), new RpcError(rpcCodes.parseError, "The message is not UTF-8."));
    }
    if (isHeavierThan(text, this.#limits)) {
      const { depth, marks } = this.#limits;
      const message = `The message is too complex: the limits are ${depth} levels and ${marks} members.`;
      return refusal(text.slice(0, HEAD_BYTES), new RpcError(rpcCodes.invalidRequest, message));
    }
    const parsed = parseJson(text);
    if (!parsed.ok) return refusal("", new RpcError(rpcCodes.parseError, "The message is not JSON."));
    const forbidden = SUSPECT.test(text) ? prototypeKeyIn(parsed.value) : undefined;
    if (forbidden === undefined) return { kind: "message", value: parsed.value };
    const message = `The message has a member named ${forbidden}, which is not allowed.`;
    return refusal(text.slice(0, HEAD_BYTES), new RpcError(rpcCodes.invalidRequest, message));
  }
}

const decoder = new TextDecoder("utf-8", { fatal: true });
const LINE_FEED = 10;
const SUSPECT = /__proto__|constructor|prototype|\\u/;

function refusal(head: string, error: RpcError): Frame {
  // All known clients send the members in this order. Others receive a response without an id.
  const [, id] = /^\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,15}|"[^"\\]{1,100}")\s*,/.exec(head) ?? [];
  return { kind: "refused", id: id === undefined ? null : JSON.parse(id), error };
}

function tooLong(length: number, limits: FrameLimits): RpcError {
  return new RpcError(rpcCodes.invalidRequest, `The message has ${length} bytes; the limit is ${limits.bytes}.`);
}

const headOf = (chunks: readonly Uint8Array[]): string =>
  new TextDecoder().decode(joinChunks(chunks, Number.POSITIVE_INFINITY).subarray(0, HEAD_BYTES));

function joinChunks(chunks: readonly Uint8Array[], length: number): Uint8Array {
  const [only] = chunks;
  if (only && chunks.length === 1) return only;
  const size = Math.min(
    length,
    chunks.reduce((sum, { byteLength }) => sum + byteLength, 0),
  );
  const whole = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.byteLength;
  }
  return whole;
}

function isHeaderEnd(header: readonly number[]): boolean {
  const end = String.fromCharCode(...header.slice(-4));
  return end === "\r\n\r\n" || end.endsWith("\n\n");
}

function requireHeaderLine(text: string): void {
  if (!/^([A-Za-z-]+:[^\n]*\n|\r?\n)+$/.test(text)) throw new FramingError("This is not a message header.");
}

function contentLength(header: string): number {
  const length = Number(/^content-length:\s*(\d{1,15})\s*$/im.exec(header)?.[1] ?? Number.NaN);
  if (Number.isNaN(length)) throw new FramingError("A message has no Content-Length.");
  if (length > MAX_SKIPPED_BYTES) throw new FramingError(`The Content-Length is not valid: ${length}.`);
  return length;
}
