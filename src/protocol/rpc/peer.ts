/**
 * JSON-RPC 2.0 for the server, the SDK and editors. A peer is one side of a connection, independent of its transport.
 * It answers requests concurrently and sends its own. Requests in both directions may be pending at once, so that a
 * handler can send a request before it answers.
 */

import { type Deferred, deferred } from "../../lib/deferred.ts";
import { defined } from "../../lib/defined.ts";
import { isObject, type Json } from "../../lib/json.ts";
import { RpcError, rpcCodes } from "./errors.ts";
import type { Frame } from "./frame.ts";

export interface PeerOptions {
  send(message: object): void;
  /** Answers a request. A thrown error becomes the error response; an `RpcError` is sent unchanged. */
  handle(method: string, params: unknown, request: IncomingRequest): Promise<unknown>;
  onNotification?(method: string, params: unknown): void;
  readonly maxInFlight?: number;
  /** The notification that cancels a request. Default: `$/cancelRequest` with `id`, as in most protocols. */
  readonly cancellation?: { readonly method: string; readonly idField: string };
}

export interface IncomingRequest {
  readonly id: Id;
  /** Aborts when the other side cancels the request or disconnects. */
  readonly signal: AbortSignal;
}

export interface AskOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

type Id = number | string;

const MAX_IN_FLIGHT = 1000;
/** Default timeout of a request. */
const TIMEOUT_MS = 24 * 60 * 60 * 1000;

export class Peer {
  readonly #options: PeerOptions;
  readonly #asked = new Map<Id, Deferred<unknown>>();
  readonly #answering = new Map<Id, AbortController>();
  #nextId = 0;
  #closed: RpcError | undefined;

  constructor(options: PeerOptions) {
    this.#options = options;
  }

  /** Number of requests of the other side that are being answered. */
  get inFlight(): number {
    return this.#answering.size;
  }

  receive(frame: Frame): void {
    if (frame.kind === "refused") this.#answer(frame.id, { error: frame.error });
    else if (isObject(frame.value) && frame.value.jsonrpc === "2.0") this.#take(frame.value);
    else if (Array.isArray(frame.value)) this.#complain("Batches are not supported: send one message at a time.");
    else this.#complain("This is not a JSON-RPC 2.0 message.");
  }

  #take(message: Readonly<Record<string, unknown>>): void {
    const { id, method } = message;
    const isId = typeof id === "number" || typeof id === "string";
    if (typeof method === "string" && id === undefined) this.#onNotification(method, message.params);
    else if (typeof method === "string" && isId) void this.#serve(id, method, message.params);
    else if (method === undefined && isId) this.#settle(id, message);
    // An error without an id is about a message that the other side could not parse. No request waits for it.
    else if (method !== undefined || id !== null) this.#complain("The id of a request must be a number or a string.");
  }

  /** Rejects with an `RpcError` if the other side fails, on a timeout, and when the connection ends. */
  async ask(method: string, params: object, options: AskOptions = {}): Promise<unknown> {
    if (this.#closed) throw this.#closed;
    const { signal, timeoutMs = TIMEOUT_MS } = options;
    signal?.throwIfAborted();
    const id = ++this.#nextId;
    const answer = deferred<unknown>();
    this.#asked.set(id, answer);
    const giveUp = (reason: unknown): void => {
      const { method: cancel, idField } = this.#cancellation;
      this.notify(cancel, { [idField]: id });
      answer.reject(reason);
    };
    const onAbort = (): void => giveUp(signal?.reason);
    const late = new RpcError(rpcCodes.refused, `${method} was not answered within ${timeoutMs} ms.`);
    const timer = setTimeout(() => giveUp(late), timeoutMs);
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      this.#options.send({ jsonrpc: "2.0", id, method, params });
      return await answer.promise;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      this.#asked.delete(id);
    }
  }

  notify(method: string, params: object): void {
    if (!this.#closed) this.#options.send({ jsonrpc: "2.0", method, params });
  }

  /** Ends pending requests: our own with an error, those of the other side by their signal. */
  close(reason: string): void {
    if (this.#closed) return;
    this.#closed = new RpcError(rpcCodes.refused, reason);
    for (const answer of this.#asked.values()) answer.reject(this.#closed);
    for (const answering of this.#answering.values()) answering.abort(this.#closed);
  }

  get #cancellation(): NonNullable<PeerOptions["cancellation"]> {
    return this.#options.cancellation ?? { method: "$/cancelRequest", idField: "id" };
  }

  #onNotification(method: string, params: unknown): void {
    const { method: cancel, idField } = this.#cancellation;
    if (method === cancel) {
      const id = isObject(params) ? params[idField] : undefined;
      if (typeof id === "number" || typeof id === "string") {
        this.#answering.get(id)?.abort(new RpcError(rpcCodes.cancelled, "The request was cancelled."));
      }
      return;
    }
    this.#options.onNotification?.(method, params);
  }

  async #serve(id: Id, method: string, params: unknown): Promise<void> {
    const { maxInFlight = MAX_IN_FLIGHT } = this.#options;
    if (this.#answering.has(id)) {
      this.#complain(`A request with the id ${id} is already in progress.`);
      return;
    }
    if (this.#answering.size >= maxInFlight) {
      const message = `A client can have at most ${maxInFlight} requests in progress.`;
      this.#answer(id, { error: new RpcError(rpcCodes.refused, message) });
      return;
    }
    const answering = new AbortController();
    this.#answering.set(id, answering);
    try {
      const result = await this.#options.handle(method, params, { id, signal: answering.signal });
      this.#answer(id, { result: result ?? null });
    } catch (error) {
      this.#answer(id, { error });
    } finally {
      this.#answering.delete(id);
    }
  }

  #settle(id: Id, message: Readonly<Record<string, unknown>>): void {
    const answer = this.#asked.get(id);
    if (!answer) return; // too late, or an error of the other side
    if (!isObject(message.error)) {
      answer.resolve(message.result);
      return;
    }
    const { code, message: text, data } = message.error;
    answer.reject(
      new RpcError(
        typeof code === "number" ? code : rpcCodes.internalError,
        typeof text === "string" ? text : "The other side failed.",
        data as Json | undefined,
      ),
    );
  }

  #complain(what: string): void {
    this.#answer(null, { error: new RpcError(rpcCodes.invalidRequest, what) });
  }

  #answer(id: Id | null, answer: { readonly result: unknown } | { readonly error: unknown }): void {
    if (this.#closed) return;
    const content = "result" in answer ? { result: answer.result } : { error: wireError(answer.error) };
    this.#options.send({ jsonrpc: "2.0", id, ...content });
  }
}

function wireError(error: unknown): { code: number; message: string; data?: Json } {
  if (!(error instanceof RpcError)) {
    return { code: rpcCodes.internalError, message: error instanceof Error ? error.message : String(error) };
  }
  const { code, message, data } = error;
  return { code, message, ...defined({ data }) };
}
