/** HTTP behaviour of a scripted model: faults of the server and of the network. */
import type { Step } from "../model/faux/faux-plan.ts";
import { numberCalls } from "../model/faux/faux-plan.ts";
import type { Moves } from "../model/faux/faux-step.ts";

/**
 * The position of a fault: a number counts the events of a stream that are sent before it (0: after the headers).
 * "headers" is before the headers, "arguments" between two pieces of a tool call's arguments, and "end" before the
 * finish of the reply. A reply that is not streamed is one event.
 */
export interface Faults {
  /** Wait this long before the headers. */
  readonly delayMs?: number;
  /** Stops sending with the connection open: until `stallUntil` settles, or else until the client gives up. */
  readonly stall?: "headers" | "arguments" | "end" | number;
  readonly stallUntil?: Promise<unknown>;
  /** Break the TCP connection, before the headers or after this many bytes of the body. */
  readonly drop?: "headers" | number;
  /** End the response properly, but too early. */
  readonly cut?: "arguments" | "end" | number;
  /** Send the headers and then only comment lines, at this interval. */
  readonly pingsOnlyEveryMs?: number;
  /** Send the body in pieces of `bytes`, `everyMs` apart (0: without a delay, each in its own write). */
  readonly drip?: { readonly bytes: number; readonly everyMs: number };
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Receives the whole body and returns its replacement. */
  readonly garble?: (body: string) => string | Uint8Array;
}

/** A model's reply, sent with faults. */
export interface FaultyReply {
  readonly type: "faulty";
  readonly moves: Moves;
  readonly faults: Faults;
}

/** A response that is not a model's reply. Without a body, an error in the format of the requested API. */
export interface RawReply {
  readonly type: "raw";
  readonly status: number;
  readonly body: string | Uint8Array | undefined;
  readonly faults: Faults;
}

export type HttpPlay = Moves | FaultyReply | RawReply;
export type HttpStep = Step<HttpPlay>;

/** `withFaults(says("hello"), { stall: 2 })` */
export function withFaults(moves: Moves, faults: Faults): FaultyReply {
  return { type: "faulty", moves, faults };
}

/** `httpStatus(429, { headers: { "retry-after": "1" } })` */
export function httpStatus(status: number, faults: Faults & { readonly body?: string } = {}): RawReply {
  return { type: "raw", status, body: faults.body, faults };
}

/** Sends exactly these bytes, as a stream with status 200 unless the faults specify otherwise. */
export function rawBytes(body: string | Uint8Array, faults: Faults & { readonly status?: number } = {}): RawReply {
  return { type: "raw", status: faults.status ?? 200, body, faults: { contentType: "text/event-stream", ...faults } };
}

export function numberHttpCalls(play: HttpPlay, nextId: (toolName: string) => string): HttpPlay {
  if (isMoves(play)) return numberCalls(play, nextId);
  return play.type === "faulty" ? { ...play, moves: numberCalls(play.moves, nextId) } : play;
}

export function isMoves(play: HttpPlay): play is Moves {
  return Array.isArray(play);
}
