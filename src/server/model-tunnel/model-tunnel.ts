/**
 * Model requests that a client forwards to the network. It receives each request and returns the response in parts. One
 * client does this for the whole process. While it is disconnected such requests fail, because no other route was
 * approved.
 */
import type { RequestOrigin } from "../../model/provider.ts";
import type { ModelFetch } from "../../model/wire/endpoint.ts";
import type { OpenSocket } from "../../model/wire/transport/socket.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { ClientConnection } from "../connection.ts";
import { CarriedRequest, type ForwardedRequest, type ResponseHead, type ResponsePart } from "./carried-request.ts";
import { CarriedSocket } from "./carried-socket.ts";

/** Timeout for the client to accept a request. */
const ACCEPT_MS = 30_000;
/** Timeout for the client to open a WebSocket. */
const OPEN_MS = 30_000;

interface Head {
  readonly method: string;
  readonly url: string;
  readonly headers: RequestInit["headers"];
  readonly transport: "http" | "websocket";
  readonly origin: RequestOrigin | undefined;
}

export class ModelTunnel {
  #holder: ClientConnection | undefined;
  readonly #carried = new Map<string, ForwardedRequest>();

  /** Whether requests use the tunnel. True from the first client that asked for it. */
  isUsed = false;

  hold(connection: ClientConnection): void {
    if (this.#holder && !this.#holder.isClosed && this.#holder !== connection) {
      throw new TroupeError("usage", "Another client already carries the model requests of this server.");
    }
    this.#holder = connection;
    this.isUsed = true;
  }

  /** Fails the requests that this client forwarded. */
  forget(connection: ClientConnection): void {
    if (this.#holder !== connection) return;
    this.#holder = undefined;
    for (const [requestId] of this.#carried) this.#fail(requestId, new TypeError(GONE));
  }

  /** Closes the WebSockets of a session that was closed. */
  release(sessionId: string): void {
    for (const one of [...this.#carried.values()]) {
      if (one instanceof CarriedSocket && one.sessionId === sessionId) one.close("done");
    }
  }

  readonly fetch: ModelFetch = async (url, init) => {
    const holder = this.#presentHolder();
    const requestId = crypto.randomUUID();
    const carried = new CarriedRequest();
    this.#carried.set(requestId, carried);
    const { signal, origin, method = "GET", headers } = init;
    const cancel = (): void => {
      if (!this.#carried.has(requestId)) return;
      this.#cancel(holder, requestId);
      this.#fail(requestId, signal?.reason);
    };
    signal?.addEventListener("abort", cancel, { once: true });
    try {
      signal?.throwIfAborted();
      await this.#start(holder, requestId, { method, url, headers, transport: "http", origin });
      const data = typeof init.body === "string" ? init.body : "";
      await holder.ask("llmInference.httpRequestChunk", { requestId, data, end: true }, { timeoutMs: ACCEPT_MS });
      return await carried.head.promise;
    } catch (error) {
      this.#fail(requestId, error);
      throw error;
    }
  };

  readonly openSocket: OpenSocket = async (url, { headers, signal, origin }) => {
    const holder = this.#presentHolder();
    const requestId = crypto.randomUUID();
    const socket = new CarriedSocket(origin?.sessionId, {
      async send(data) {
        await holder.ask("llmInference.httpRequestChunk", { requestId, data, end: false }, { timeoutMs: ACCEPT_MS });
      },
      close: (how) => {
        this.#carried.delete(requestId);
        if (how === "cancelled") this.#cancel(holder, requestId);
        else
          void holder.ask("llmInference.httpRequestChunk", { requestId, data: "", end: true }).catch(() => undefined);
      },
    });
    this.#carried.set(requestId, socket);
    const giveUp = (): void => socket.close("cancelled");
    const timer = setTimeout(giveUp, OPEN_MS);
    signal.addEventListener("abort", giveUp, { once: true });
    try {
      signal.throwIfAborted();
      await this.#start(holder, requestId, { method: "GET", url, headers, transport: "websocket", origin });
      await socket.opened;
      return socket;
    } catch (error) {
      this.#fail(requestId, error);
      throw error;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", giveUp);
    }
  };

  /** Returns false if no request with this id is pending. */
  begin(requestId: string, head: ResponseHead): boolean {
    return this.#carried.get(requestId)?.begin(head) ?? false;
  }

  /** Resolves when there is room for more. Returns false if no request with this id is pending. */
  async add(requestId: string, part: ResponsePart): Promise<boolean> {
    const carried = this.#carried.get(requestId);
    if (!carried) return false;
    if (part.error) this.#fail(requestId, new TypeError(part.error.message));
    else {
      await carried.add(part);
      if (part.end) this.#carried.delete(requestId);
    }
    return true;
  }

  #presentHolder(): ClientConnection {
    if (!this.#holder) throw new TypeError(GONE);
    return this.#holder;
  }

  async #start(holder: ClientConnection, requestId: string, { origin, headers, ...head }: Head): Promise<void> {
    const { agentId, parentAgentId, interactionType, sessionId } = origin ?? {};
    const whose = { sessionId, agentId, parentAgentId, interactionType };
    const params = { requestId, ...head, headers: headersOf(headers), ...whose };
    await holder.ask("llmInference.httpRequestStart", params, { timeoutMs: ACCEPT_MS });
  }

  #cancel(holder: ClientConnection, requestId: string): void {
    const params = { requestId, data: "", end: true, cancel: true };
    void holder.ask("llmInference.httpRequestChunk", params, { timeoutMs: ACCEPT_MS }).catch(() => undefined);
  }

  #fail(requestId: string, reason: unknown): void {
    const carried = this.#carried.get(requestId);
    this.#carried.delete(requestId);
    carried?.fail(reason);
  }
}

const GONE = "The client that carries model requests has disconnected.";

function headersOf(given: RequestInit["headers"]): Record<string, string[]> {
  const all: Record<string, string[]> = {};
  for (const [name, value] of new Headers(given ?? {})) all[name] = [...(all[name] ?? []), value];
  return all;
}
