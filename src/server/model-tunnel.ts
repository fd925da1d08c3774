/**
 * Model requests that a client carries: it is told each request, and tells the reply piece by piece. One client of the process
 * does this for all; while it is away such requests fail, because nobody else was asked to reach the network.
 */
import { type Deferred, deferred } from "../lib/deferred.ts";
import type { ModelFetch } from "../model/wire/place.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { Connection } from "./connection.ts";

interface Carried {
  readonly head: Deferred<Response>;
  readonly body: WritableStreamDefaultWriter<Uint8Array>;
  readonly stream: ReadableStream<Uint8Array>;
  status: number | undefined;
}

export interface ResponseHead {
  readonly status: number;
  readonly statusText?: string | undefined;
  readonly headers: Readonly<Record<string, readonly string[]>>;
}

export interface ResponsePart {
  readonly data: string;
  readonly binary?: boolean | undefined;
  readonly end?: boolean | undefined;
  readonly error?: { readonly message: string } | undefined;
}

/** Replies that have no body. */
const BODILESS = new Set([204, 205, 304]);
/** A client that takes longer to take a request than this will not take it. */
const TAKE_MS = 30_000;

export class ModelTunnel {
  #holder: Connection | undefined;
  readonly #carried = new Map<string, Carried>();

  /** Whether requests go this way: from the first client that asked for it on. */
  isUsed = false;

  hold(connection: Connection): void {
    if (this.#holder && !this.#holder.isClosed && this.#holder !== connection) {
      throw new TroupeError("usage", "Another client carries the model requests of this server already.");
    }
    this.#holder = connection;
    this.isUsed = true;
  }

  /** What it carried breaks off. */
  forget(connection: Connection): void {
    if (this.#holder !== connection) return;
    this.#holder = undefined;
    for (const [requestId] of this.#carried)
      this.#fail(requestId, new TypeError("The client that carried it has left."));
  }

  readonly fetch: ModelFetch = async (url, init) => {
    const holder = this.#holder;
    if (!holder) throw new TypeError("The client that carries model requests has left.");
    const requestId = crypto.randomUUID();
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const carried: Carried = { head: deferred(), body: writable.getWriter(), stream: readable, status: undefined };
    this.#carried.set(requestId, carried);
    const { signal } = init;
    const cancel = (): void => {
      if (!this.#carried.has(requestId)) return;
      void holder
        .ask("llmInference.httpRequestChunk", { requestId, data: "", end: true, cancel: true })
        .catch(() => undefined);
      this.#fail(requestId, signal?.reason);
    };
    signal?.addEventListener("abort", cancel, { once: true });
    try {
      signal?.throwIfAborted();
      const { agentId, parentAgentId, interactionType, sessionId } = init.origin ?? {};
      const whose = { sessionId, agentId, parentAgentId, interactionType };
      const head = { requestId, method: init.method ?? "GET", url, headers: headersOf(init.headers), ...whose };
      await holder.ask("llmInference.httpRequestStart", head, { timeoutMs: TAKE_MS });
      const data = typeof init.body === "string" ? init.body : "";
      await holder.ask("llmInference.httpRequestChunk", { requestId, data, end: true }, { timeoutMs: TAKE_MS });
      return await carried.head.promise;
    } catch (error) {
      this.#fail(requestId, error);
      throw error;
    }
  };

  /** False when nobody waits for it. */
  begin(requestId: string, { status, statusText = "", headers }: ResponseHead): boolean {
    const carried = this.#carried.get(requestId);
    if (!carried || carried.status !== undefined) return false;
    carried.status = status;
    const all = Object.entries(headers).flatMap(([name, values]) =>
      values.map((value): [string, string] => [name, value]),
    );
    const body = BODILESS.has(status) ? null : carried.stream;
    carried.head.resolve(new Response(body, { status, statusText, headers: all }));
    return true;
  }

  /** Resolves when there is room for more; false when nobody waits for it. */
  async add(requestId: string, { data, binary, end, error }: ResponsePart): Promise<boolean> {
    const carried = this.#carried.get(requestId);
    if (!carried) return false;
    if (error) {
      this.#fail(requestId, new TypeError(error.message));
      return true;
    }
    // Who reads no more has cancelled; that is not the client's trouble.
    if (data !== "") await carried.body.write(Buffer.from(data, binary ? "base64" : "utf8")).catch(() => undefined);
    if (end) {
      this.#carried.delete(requestId);
      await carried.body.close().catch(() => undefined);
    }
    return true;
  }

  #fail(requestId: string, reason: unknown): void {
    const carried = this.#carried.get(requestId);
    if (!carried) return;
    this.#carried.delete(requestId);
    carried.head.reject(reason);
    carried.head.promise.catch(() => undefined);
    void carried.body.abort(reason).catch(() => undefined);
  }
}

function headersOf(given: RequestInit["headers"]): Record<string, string[]> {
  const all: Record<string, string[]> = {};
  for (const [name, value] of new Headers(given ?? {})) all[name] = [...(all[name] ?? []), value];
  return all;
}
