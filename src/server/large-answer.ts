/**
 * Responses that are too large for one buffer. They are encoded in pieces while the client reads, so that neither the
 * maximum string length nor memory bounds the history of a session.
 */
import { setImmediate as nextTask } from "node:timers/promises";
import { RpcError, rpcCodes } from "../protocol/rpc/errors.ts";
import { encodeFrame } from "../protocol/rpc/frame.ts";

/** One message. Its length is known before its bytes are encoded. */
export interface LargeMessage {
  /** The bytes of the header and the body. Throws an `RpcError` if the message is too large for any client. */
  pieces(): AsyncGenerator<Uint8Array, void>;
  /** The error response to send instead, if nothing was sent yet. */
  refusal(error: unknown): Uint8Array;
}

/** Responses up to this size are sent at once. */
const SMALL_BYTES = 1024 * 1024;
/** A list with more items than this is encoded item by item. */
const LONG_LIST = 500;
const PIECE_CHARACTERS = 256 * 1024;
/** No Node program can hold a longer message as a string. */
const MAX_BYTES = 500 * 1024 * 1024;

/** Encodes a response: as the bytes of a frame, or as a message to be sent in pieces. */
export function encodeAnswer(answer: Readonly<Record<string, unknown>>): Uint8Array | LargeMessage {
  const refusal = (error: unknown): Uint8Array =>
    encodeFrame({ jsonrpc: "2.0", id: answer.id, error: wireError(error) });
  if (hasLongList(answer.result)) return { refusal, pieces: () => piecesOf(answer) };
  let frame: Uint8Array;
  try {
    frame = encodeFrame(answer);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return refusal(tooLarge());
  }
  if (frame.byteLength <= SMALL_BYTES) return frame;
  return { refusal, pieces: () => slicesOf(frame) };
}

function hasLongList(result: unknown): boolean {
  if (typeof result !== "object" || result === null) return false;
  return [result, ...Object.values(result)].some((value) => Array.isArray(value) && value.length > LONG_LIST);
}

async function* slicesOf(frame: Uint8Array): AsyncGenerator<Uint8Array, void> {
  for (let at = 0; at < frame.byteLength; at += PIECE_CHARACTERS) yield frame.subarray(at, at + PIECE_CHARACTERS);
}

async function* piecesOf(answer: Readonly<Record<string, unknown>>): AsyncGenerator<Uint8Array, void> {
  let length = 0;
  for (const text of joinParts(answer)) {
    length += Buffer.byteLength(text);
    if (length > MAX_BYTES) throw tooLarge();
    await nextTask();
  }
  yield Buffer.from(`Content-Length: ${length}\r\n\r\n`);
  for (const text of joinParts(answer)) {
    const bytes = Buffer.from(text);
    length -= bytes.byteLength;
    yield bytes;
  }
  if (length !== 0) throw new Error("The answer changed while it was being sent.");
}

/** Yields the text of the message in pieces of a useful size. */
function* joinParts(message: unknown): Generator<string, void> {
  let text = "";
  for (const part of textOf(message, LIST_DEPTH)) {
    text += part;
    if (text.length < PIECE_CHARACTERS) continue;
    yield text;
    text = "";
  }
  if (text !== "") yield text;
}

/** Lists are in the message's `result`, or in a member of it. */
const LIST_DEPTH = 3;

/** Yields the same text as `JSON.stringify`, in parts. */
function* textOf(value: unknown, depth: number): Generator<string, void> {
  if (depth === 0 || typeof value !== "object" || value === null || "toJSON" in value) {
    yield JSON.stringify(value) ?? "null";
    return;
  }
  const isList = Array.isArray(value);
  let separator = isList ? "[" : "{";
  for (const [name, member] of isList ? value.entries() : Object.entries(value)) {
    if (!isList && !isEncodable(member)) continue;
    yield isList ? separator : `${separator}${JSON.stringify(name)}:`;
    separator = ",";
    yield* textOf(member, depth - 1);
  }
  yield `${separator === "," ? "" : separator}${isList ? "]" : "}"}`;
}

const isEncodable = (member: unknown): boolean => !["undefined", "function", "symbol"].includes(typeof member);

function tooLarge(): RpcError {
  const message = "The answer is too large for one message. Read the events page by page: session.eventLog.read.";
  return new RpcError(rpcCodes.refused, message);
}

function wireError(error: unknown): { code: number; message: string } {
  if (error instanceof RpcError) return { code: error.code, message: error.message };
  return { code: rpcCodes.internalError, message: error instanceof Error ? error.message : String(error) };
}
