/**
 * The actions of a scripted model in one call, as plain data: events with waits and errors between them. The faux model
 * plays a step through the provider port. The model server plays the same step over HTTP.
 */

import { defined } from "../../lib/defined.ts";
import type { Json } from "../../lib/json.ts";
import { parseJson } from "../../lib/json.ts";
import { firstCharacters } from "../../lib/text.ts";
import type { ToolCall } from "../../protocol/message.ts";
import { kindOfStatus, ModelError, type ModelErrorKind } from "../model-error.ts";
import { type ModelEvent, noUsage, type Usage } from "../provider.ts";

/** One action of a scripted model. Without `until`, a wait lasts until the caller aborts. */
export type Move =
  | ModelEvent
  | { readonly type: "wait"; readonly until?: Promise<unknown> }
  | { readonly type: "throw"; readonly error: unknown };

/** One reply. A list without an `end` is a reply that breaks off. */
export type Moves = readonly Move[];

/** A tool call to make. Without an id it is numbered by its position in the script: `call_view_1`. */
export type WantedCall = readonly [name: string, args?: Json, toolCallId?: string];

export interface SaysOptions {
  /** Cuts the text into deltas of at most this many characters. */
  readonly chunkSize?: number;
  readonly usage?: Partial<Usage>;
}

/** Replies with text and without calls. The items of a list are sent as separate deltas. */
export function says(text: string | readonly string[], options: SaysOptions = {}): Moves {
  const deltas = typeof text === "string" ? chunks(text, options.chunkSize) : text;
  return [
    ...deltas.map((delta): Move => ({ type: "text", delta })),
    { type: "end", stop: "done", ...(options.usage && { usage: wholeUsage(options.usage) }) },
  ];
}

/** Calls tools: `calls(["view", { path: "a.txt" }], ["grep", { pattern: "b" }])`. */
export function calls(...wanted: readonly WantedCall[]): Moves {
  return [
    ...wanted.map(
      ([name, args = {}, toolCallId = ""]): Move => ({ type: "call", call: { toolCallId, name, arguments: args } }),
    ),
    { type: "end", stop: "tools" },
  ];
}

/** Calls one tool with this exact argument text, whether or not it is JSON. */
export function callsWithText(name: string, argumentText: string, toolCallId = ""): Moves {
  const parsed = parseJson(argumentText);
  const call: ToolCall = parsed.ok
    ? { toolCallId, name, arguments: parsed.value }
    : { toolCallId, name, arguments: argumentText, argumentsError: parsed.error };
  return [
    { type: "call", call },
    { type: "end", stop: "tools" },
  ];
}

/** Sends reasoning, then continues with `then`. Without it the reply ends there. */
export function thinks(text: string, ...then: readonly Moves[]): Moves {
  return together([{ type: "reasoning", delta: text }], ...(then.length > 0 ? then : [says([])]));
}

export interface FailsOptions {
  readonly retryAfterMs?: number;
  readonly message?: string;
  /** The provider's own code, such as `insufficient_quota`. */
  readonly code?: string;
}

/** Fails the call with this kind of error, or the kind for an HTTP status. */
export function fails(kindOrStatus: ModelErrorKind | number, options: FailsOptions = {}): Moves {
  const kind = typeof kindOrStatus === "number" ? kindOfStatus(kindOrStatus) : kindOrStatus;
  const statusCode = typeof kindOrStatus === "number" ? kindOrStatus : statusOfKind[kind];
  const message =
    options.message ?? `faux: scripted failure (${statusCode === undefined ? kind : `HTTP ${statusCode}`})`;
  const error = new ModelError(message, {
    kind,
    provider: "faux",
    ...defined({ statusCode, code: options.code, retryAfterMs: options.retryAfterMs }),
  });
  return [{ type: "end", stop: "error", error }];
}

export function rateLimited(retryAfterMs?: number): Moves {
  return fails(429, { message: "faux: too many requests", ...defined({ retryAfterMs }) });
}

/** Sends nothing until the caller aborts or `until` settles. Then continues with `then`, or ends. */
export function stalls(until?: Promise<unknown>, ...then: readonly Moves[]): Moves {
  if (until === undefined) return [{ type: "wait" }];
  return together([{ type: "wait", until }], ...(then.length > 0 ? then : [says([])]));
}

/** Sends text and stops without an end, like a broken connection. */
export function breaksOff(text: string | readonly string[] = [], options: SaysOptions = {}): Moves {
  return says(text, options).filter((move) => move.type !== "end");
}

/** Throws, like a defect in a provider. */
export function throws(error: unknown): Moves {
  return [{ type: "throw", error }];
}

/** Joins replies into one. Only the last one ends it, with "tools" if any of them calls a tool. */
export function together(...parts: readonly Moves[]): Moves {
  const joined = parts.flatMap((part, index) =>
    index === parts.length - 1 ? part : part.filter((move) => move.type !== "end"),
  );
  const hasCall = joined.some((move) => move.type === "call");
  return joined.map((move) =>
    hasCall && move.type === "end" && move.stop === "done" ? { ...move, stop: "tools" } : move,
  );
}

/** Returns the same reply with this usage. */
export function withUsage(moves: Moves, usage: Partial<Usage>): Moves {
  if (!moves.some((move) => move.type === "end"))
    throw new Error("withUsage: this step never ends, so there is no place to report usage");
  return moves.map((move) => (move.type === "end" ? { ...move, usage: wholeUsage(usage) } : move));
}

function wholeUsage(usage: Partial<Usage>): Usage {
  return { ...noUsage, ...usage };
}

/** Plays a step as events. Rejects with the signal's reason as soon as it aborts. */
export async function* playMoves(moves: Moves, signal: AbortSignal): AsyncGenerator<ModelEvent> {
  for (const move of moves) {
    await Promise.resolve();
    signal.throwIfAborted();
    if (move.type === "wait") await settledOrAborted(move.until, signal);
    else if (move.type === "throw") throw move.error;
    else yield move;
  }
}

/** Waits for `until` (forever if absent), but rejects on abort. */
export function settledOrAborted<T>(until: Promise<T> | undefined, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const stop = (): void => reject(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
    const settle = (): void => signal.removeEventListener("abort", stop);
    until?.finally(settle).then(resolve, reject);
  });
}

const statusOfKind: Partial<Record<ModelErrorKind, number>> = {
  authentication: 401,
  quota: 402,
  request: 400,
  context_length: 400,
  rate_limit: 429,
  server: 500,
};

function chunks(text: string, size = text.length): string[] {
  const pieces: string[] = [];
  for (let rest = text; rest.length > 0; ) {
    const piece = firstCharacters(rest, size) || rest.slice(0, 2);
    pieces.push(piece);
    rest = rest.slice(piece.length);
  }
  return pieces;
}
