/** What a scripted model does over HTTP beyond what it says: faults of the server and of the way to it. */
import type { Step } from "../model/faux/faux-plan.ts";
import { numberCalls } from "../model/faux/faux-plan.ts";
import type { Moves } from "../model/faux/faux-step.ts";

/**
 * Where a fault has a place, a number counts the events of a stream that are sent before it (0: after the headers),
 * "headers" is before the headers, "arguments" between two pieces of a tool call's arguments, and "end" before the
 * finish of the reply. A reply that is not streamed is one event.
 */
export interface Faults {
  /** Wait this long before the headers. */
  readonly delayMs?: number;
  /** Fall silent with the connection open: until `stallUntil` settles, or else until the client gives up. */
  readonly stall?: "headers" | "arguments" | "end" | number;
  readonly stallUntil?: Promise<unknown>;
  /** Break the TCP connection, before the headers or after this many bytes of the body. */
  readonly drop?: "headers" | number;
  /** End the response in good order, but too early. */
  readonly cut?: "arguments" | "end" | number;
  /** Send the headers and then nothing but comment lines, this far apart. */
  readonly pingsOnlyEveryMs?: number;
  /** Send the body in pieces of `bytes`, `everyMs` apart (0: as fast as they go, each in a write of its own). */
  readonly drip?: { readonly bytes: number; readonly everyMs: number };
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Gets the whole body and returns what to send in its place. */
  readonly garble?: (body: string) => string | Uint8Array;
}

/** A model's reply, sent with faults. */
export interface FaultyReply {
  readonly type: "faulty";
  readonly moves: Moves;
  readonly faults: Faults;
}

/** A response that no model wrote. Without a body, an error in the words of the API that was asked. */
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

/** Bytes exactly as given, as a stream with status 200 unless the faults say otherwise. */
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
