/**
 * How bytes reach a server. Node's HTTP client is the default: `fetch` costs 40 ms at startup, half of a turn's CPU
 * time and 20 MB more memory. A `fetch` of the place (a client program that tunnels model traffic) replaces it.
 */

import { Agent, type IncomingMessage, request as requestPlainly } from "node:http";
import { request as requestSecurely, Agent as SecureAgent } from "node:https";
import type { Socket } from "node:net";
import { type Duplex, pipeline, type Readable, type Transform } from "node:stream";
import { constants, createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { defined } from "../../../lib/defined.ts";
import type { RequestOrigin } from "../../provider.ts";
import type { Connections, Endpoint } from "../endpoint.ts";
import { sendBySocket } from "./socket-transport.ts";

export interface HttpRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly signal: AbortSignal;
  readonly origin: RequestOrigin | undefined;
}

/** A response. Redirects are not followed. */
export interface HttpAnswer {
  readonly status: number;
  /** Returns a header by its lower-case name. */
  header(name: string): string | undefined;
  /** Returns the next bytes, or `undefined` at the end. Rejects when the connection breaks before that. */
  read(): Promise<Uint8Array | undefined>;
  /** Discards the rest of the body. */
  cancel(): void;
}

export type Send = (sending: HttpRequest) => Promise<HttpAnswer>;

/** Creates the sender of a provider. It lives as long as the provider and reuses connections. */
export function transport(endpoint: Endpoint): Send {
  const send = endpoint.fetch
    ? sendByFetch(endpoint.fetch)
    : sendByNode(new URL(endpoint.baseUrl).protocol === "https:", endpoint.connections ?? {});
  return endpoint.openSocket ? sendBySocket(endpoint.openSocket, send) : send;
}

function sendByFetch(fetch: NonNullable<Endpoint["fetch"]>): Send {
  return async ({ url, headers, body, signal, origin }) => {
    const init = { method: "POST", headers, body, signal, redirect: "manual", ...defined({ origin }) } as const;
    const response = await fetch(url, init);
    const reader = response.body?.getReader();
    return {
      status: response.status,
      header: (name) => response.headers.get(name) ?? undefined,
      read: async () => (await reader?.read())?.value,
      cancel: () => void reader?.cancel().catch(() => undefined),
    };
  };
}

function sendByNode(secure: boolean, connections: Connections): Send {
  const agent = agentOf(secure, connections);
  const request = secure ? requestSecurely : requestPlainly;
  const send = (sending: HttpRequest, again: boolean): Promise<HttpAnswer> =>
    new Promise((resolve, reject) => {
      const { url, headers, body, signal } = sending;
      const bytes = Buffer.from(body);
      const outgoing = request(url, {
        method: "POST",
        agent,
        signal,
        headers: { ...headers, "content-length": bytes.length },
      });
      outgoing.once("socket", (socket) => {
        clearTimeout(connections.idle?.get(socket));
        limitConnecting(socket, secure);
      });
      let answered = false;
      outgoing.once("response", (incoming) => {
        answered = true;
        resolve(answerOf(incoming));
      });
      outgoing.on("error", (error: NodeJS.ErrnoException) => {
        // The reader of the response gets this error too. A second request would have no reader.
        if (answered) return;
        // The server closed a reused connection before it answered, so a retry repeats nothing.
        if (again && outgoing.reusedSocket && error.code === "ECONNRESET") resolve(send(sending, false));
        else reject(error);
      });
      outgoing.end(bytes);
    });
  return (sending) => send(sending, true);
}

/** How long an idle connection stays open. */
const KEEP_MS = 30_000;

function agentOf(secure: boolean, connections: Connections): Agent {
  const kind = secure ? "secure" : "plain";
  const known = connections[kind];
  if (known) return known;
  const agent = secure ? new SecureAgent({ keepAlive: true }) : new Agent({ keepAlive: true });
  connections.idle ??= new WeakMap();
  const { idle } = connections;
  agent.on("free", (socket: Duplex) => {
    clearTimeout(idle.get(socket));
    idle.set(socket, setTimeout(() => socket.destroy(), connections.keepMs ?? KEEP_MS).unref());
  });
  connections[kind] = agent;
  return agent;
}

/** A host that does not answer at all fails long before a model that thinks. */
const CONNECT_MS = 15_000;

function limitConnecting(socket: Socket, secure: boolean): void {
  if (!socket.connecting) return;
  const late = Object.assign(new Error(`no connection within ${CONNECT_MS / 1000} s`), { code: "ETIMEDOUT" });
  const timer = setTimeout(() => socket.destroy(late), CONNECT_MS);
  socket.once(secure ? "secureConnect" : "connect", () => clearTimeout(timer));
  socket.once("close", () => clearTimeout(timer));
}

function answerOf(incoming: IncomingMessage): HttpAnswer {
  const body = decodeBody(incoming);
  const chunks: AsyncIterator<Uint8Array> = body[Symbol.asyncIterator]();
  for (const stream of [incoming, body]) stream.on("error", () => undefined); // the reader gets the error
  return {
    status: incoming.statusCode ?? 0,
    header: (name) => [incoming.headers[name] ?? []].flat().join(", ") || undefined,
    async read() {
      const { done, value } = await chunks.next();
      return done ? undefined : value;
    },
    cancel() {
      incoming.destroy();
      body.destroy();
    },
  };
}

/** Returns the body decompressed: some servers and proxies compress without being asked. */
function decodeBody(incoming: IncomingMessage): Readable {
  const decoder = decoders[incoming.headers["content-encoding"]?.trim().toLowerCase() ?? ""]?.();
  if (!decoder) return incoming;
  pipeline(incoming, decoder, () => undefined); // the reader gets the error
  return decoder;
}

const decoders: Readonly<Record<string, () => Transform>> = {
  gzip: () => createGunzip({ flush: constants.Z_SYNC_FLUSH }),
  "x-gzip": () => createGunzip({ flush: constants.Z_SYNC_FLUSH }),
  deflate: () => createInflate({ flush: constants.Z_SYNC_FLUSH }),
  br: () => createBrotliDecompress({ flush: constants.BROTLI_OPERATION_FLUSH }),
};
