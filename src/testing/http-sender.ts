/** Sends one scripted reply over HTTP, byte by byte if a fault requires it. */

import type { ServerResponse } from "node:http";
import { defined } from "../lib/defined.ts";
import type { Stamp } from "../lib/stamp.ts";
import { type Moves, playMoves, settledOrAborted } from "../model/faux/faux-step.ts";
import type { ModelError } from "../model/model-error.ts";
import type { Faults, RawReply } from "./http-reply.ts";
import {
  type Body,
  encodeEvent,
  type Frame,
  type ReplyHead,
  type TestWire,
  type WireError,
  wireError,
} from "./wire/wire.ts";

export interface ReplyTarget {
  readonly response: ServerResponse;
  readonly wire: TestWire;
  readonly body: Body;
  readonly number: number;
  readonly faults: Faults;
  readonly stamp: Stamp;
  /** Aborts when the connection has ended, on either side. */
  readonly signal: AbortSignal;
}

/** Resolves when the response has ended in any way. Throws if a requested fault could not occur. */
export async function sendReply(moves: Moves, sending: ReplyTarget): Promise<void> {
  if (moves.some(({ type }) => type === "retry"))
    throw new Error('model server: a "retry" cannot be sent over HTTP; script the failure and then the next call');
  const first = moves[0];
  if (first?.type === "end" && first.error && first.error.kind !== "content_filter") {
    return sendFailure(first.error, sending);
  }
  const stream = sending.body.stream === true;
  const frames = stream ? streamed(moves, sending) : await whole(moves, sending);
  if (frames === "failed") return;
  const contentType = stream ? "text/event-stream" : "application/json";
  return sendBody({ status: 200, contentType, frames }, sending);
}

export function sendRaw(reply: RawReply, sending: ReplyTarget): Promise<void> {
  const { status, body } = reply;
  if (body === undefined) return sendStatus({ status, message: `scripted HTTP ${status}` }, sending);
  return sendBody({ status, contentType: "application/json", frames: once(body) }, sending);
}

export function sendStatus(
  error: WireError,
  sending: ReplyTarget,
  headers: Record<string, string> = {},
): Promise<void> {
  const text = JSON.stringify(sending.wire.errorBody(error));
  return sendBody({ status: error.status, contentType: "application/json", headers, frames: once(text) }, sending);
}

/** Sends an error kind as a status, or as the network failure that it stands for. */
async function sendFailure(error: ModelError, sending: ReplyTarget): Promise<void> {
  if (error.kind === "timeout") await settledOrAborted(undefined, sending.signal);
  if (error.kind === "network") return hangUp(sending.response);
  if (error.kind === "protocol")
    return sendBody({ status: 200, contentType: "text/event-stream", frames: [] }, sending);
  return sendStatus(wireError(error), sending, retryAfter(error));
}

function retryAfter({ retryAfterMs }: ModelError): Record<string, string> {
  if (retryAfterMs === undefined) return {};
  return { "retry-after": String(Math.ceil(retryAfterMs / 1000)), "retry-after-ms": String(retryAfterMs) };
}

interface AnyFrame {
  readonly at: Frame["at"];
  readonly data: string | Uint8Array;
}
type Frames = AsyncIterable<AnyFrame> | Iterable<AnyFrame>;

async function* streamed(moves: Moves, sending: ReplyTarget): AsyncGenerator<Frame> {
  const encoder = sending.wire.encoder(headOf(moves, sending));
  const seen = new Set<string>();
  yield* encoder.begin();
  for await (const event of playMoves(moves, sending.signal)) {
    if (event.type === "end") {
      if (event.error?.kind === "network") throw event.error;
      if (event.error?.kind === "timeout") await settledOrAborted(undefined, sending.signal);
      if (event.error?.kind === "protocol" || event.stop === "aborted") return;
    }
    yield* encodeEvent(encoder, event, seen);
    if (event.type === "end") return;
  }
}

/** Returns the reply as one body; half of it if the script breaks off. */
async function whole(moves: Moves, sending: ReplyTarget): Promise<Frames | "failed"> {
  const encoder = sending.wire.encoder(headOf(moves, sending));
  const seen = new Set<string>();
  try {
    for await (const event of playMoves(moves, sending.signal)) {
      if (event.type === "end" && event.error && event.error.kind !== "content_filter") {
        await sendFailure(event.error, sending);
        return "failed";
      }
      if (event.type === "end") return once(JSON.stringify(encoder.whole(event)));
      encodeEvent(encoder, event, seen);
    }
  } catch {
    sending.signal.throwIfAborted();
    await hangUp(sending.response);
    return "failed";
  }
  const unfinished = JSON.stringify(encoder.whole({ type: "end", stop: "done" }));
  return once(unfinished.slice(0, unfinished.length / 2));
}

function headOf(moves: Moves, { number, body, stamp }: ReplyTarget): ReplyHead {
  const end = moves.find((move) => move.type === "end");
  return {
    number,
    body,
    model: typeof body.model === "string" ? body.model : "faux",
    created: Math.floor(stamp.now() / 1000),
    ...defined({ usage: end?.usage, opaque: end?.reasoning?.opaque }),
  };
}

function once(data: string | Uint8Array): AnyFrame[] {
  return [{ at: "finish", data }];
}

interface ReplyBody {
  readonly status: number;
  readonly contentType: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly frames: Frames;
}

async function sendBody(outgoing: ReplyBody, sending: ReplyTarget): Promise<void> {
  const { response, faults, stamp, signal } = sending;
  if (faults.delayMs !== undefined) await stamp.sleep(faults.delayMs, signal);
  if (faults.stall === "headers") await settledOrAborted(faults.stallUntil, signal);
  if (faults.drop === "headers") return hangUp(response);
  const contentType = faults.contentType ?? outgoing.contentType;
  const headers = { "content-type": contentType, "cache-control": "no-cache", ...outgoing.headers, ...faults.headers };
  response.writeHead(outgoing.status, headers).flushHeaders();
  if (faults.pingsOnlyEveryMs !== undefined) return sendPings(faults.pingsOnlyEveryMs, sending);

  const fired = new Set<keyof Faults>();
  const writer = bodyWriter(sending, fired);
  const frames = faults.garble ? garbled(outgoing.frames, faults.garble) : outgoing.frames;
  try {
    for await (const { data } of withFaults(frames, sending, fired)) {
      await writer.write(data);
      if (response.destroyed) break;
    }
    await writer.end();
  } catch {
    signal.throwIfAborted();
    await hangUp(response);
  }
  for (const fault of ["stall", "cut", "drop"] as const) {
    if (typeof faults[fault] === "undefined" || faults[fault] === "headers" || fired.has(fault)) continue;
    throw new Error(`model server: the fault ${fault} at ${faults[fault]} never came about: the reply was too short`);
  }
}

/** Stalls and cuts at the positions of the faults. */
async function* withFaults(frames: Frames, sending: ReplyTarget, fired: Set<keyof Faults>): AsyncGenerator<AnyFrame> {
  const { faults, signal } = sending;
  let sent = 0;
  let inArguments = false;
  const isHere = (point: Faults["stall"], next?: AnyFrame): boolean =>
    point === sent || (point === "arguments" && inArguments) || (point === "end" && next?.at === "finish");
  const stallHere = async (next?: AnyFrame): Promise<void> => {
    if (fired.has("stall") || !isHere(faults.stall, next)) return;
    fired.add("stall");
    await settledOrAborted(faults.stallUntil, signal);
  };
  for await (const frame of frames) {
    await stallHere(frame);
    if (isHere(faults.cut, frame)) {
      fired.add("cut");
      return;
    }
    yield frame;
    sent += 1;
    inArguments ||= frame.at === "arguments";
  }
  await stallHere();
}

async function* garbled(frames: Frames, garble: (body: string) => string | Uint8Array): AsyncGenerator<AnyFrame> {
  let body = "";
  for await (const { data } of frames) body += typeof data === "string" ? data : Buffer.from(data).toString();
  yield* once(garble(body));
}

interface BodyWriter {
  write(data: string | Uint8Array): Promise<void>;
  end(): Promise<void>;
}

/** Drips, and drops the connection at the byte that the faults name. */
function bodyWriter({ response, faults, stamp, signal }: ReplyTarget, fired: Set<keyof Faults>): BodyWriter {
  let left = typeof faults.drop === "number" ? faults.drop : Number.POSITIVE_INFINITY;
  const drop = (): Promise<void> => {
    fired.add("drop");
    return hangUp(response);
  };
  return {
    async write(data) {
      const all = Buffer.from(data);
      const bytes = all.subarray(0, Math.min(all.length, left));
      for (const piece of pieces(bytes, faults.drip?.bytes)) {
        if (left < Number.POSITIVE_INFINITY || faults.drip) await flushed(response, piece, signal);
        else if (!response.write(piece)) await drained(response, signal);
        if (faults.drip && faults.drip.everyMs > 0) await stamp.sleep(faults.drip.everyMs, signal);
      }
      left -= bytes.length;
      if (bytes.length < all.length) await drop();
    },
    async end() {
      if (left === 0 && !response.destroyed) await drop();
      if (!response.destroyed) response.end();
    },
  };
}

function* pieces(bytes: Buffer, size = Math.max(1, bytes.length)): Generator<Buffer> {
  for (let start = 0; start < bytes.length; start += size) yield bytes.subarray(start, start + size);
}

function flushed(response: ServerResponse, bytes: Buffer, signal: AbortSignal): Promise<void> {
  const written = new Promise<void>((resolve) => response.write(bytes, () => setImmediate(resolve)));
  return settledOrAborted(written, signal);
}

function drained(response: ServerResponse, signal: AbortSignal): Promise<void> {
  return settledOrAborted(new Promise<void>((resolve) => response.once("drain", resolve)), signal);
}

async function sendPings(everyMs: number, { response, stamp, signal }: ReplyTarget): Promise<void> {
  while (!signal.aborted) {
    response.write(": ping\n\n");
    await stamp.sleep(everyMs, signal);
  }
}

/** Before the headers the client sees a reset; later, an incomplete body. */
async function hangUp(response: ServerResponse): Promise<void> {
  if (!response.headersSent) {
    response.socket?.resetAndDestroy();
    return;
  }
  // Data written in this turn of the event loop is sent at its end.
  await new Promise((resolve) => setImmediate(resolve));
  response.socket?.destroy();
}
