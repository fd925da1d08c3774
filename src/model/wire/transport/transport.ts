/**
 * How bytes reach a place. Node's own HTTP client is the ordinary way: `fetch` costs a start 40 ms, half of the CPU of
 * a turn and 20 MB more. A `fetch` given with the place (a client program that tunnels model traffic) takes its place.
 */
import { Agent, type IncomingMessage, request as requestPlainly } from "node:http";
import { request as requestSecurely, Agent as SecureAgent } from "node:https";
import type { Socket } from "node:net";
import { type Duplex, pipeline, type Readable, type Transform } from "node:stream";
import { constants, createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import type { RequestOrigin } from "../../provider.ts";
import type { Connections, Place } from "../place.ts";
import { sendBySocket } from "./socket-transport.ts";

export interface Sending {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly signal: AbortSignal;
  readonly origin: RequestOrigin | undefined;
}

/** What came back. A redirect is an answer like any other: nothing follows it. */
export interface Answer {
  readonly status: number;
  /** A header by its name in lower case. */
  header(name: string): string | undefined;
  /** The next bytes, or nothing at the end. Rejects when the connection breaks before that. */
  read(): Promise<Uint8Array | undefined>;
  /** Gives up the rest of the body. */
  cancel(): void;
}

export type Send = (sending: Sending) => Promise<Answer>;

/** One for the life of a provider: it keeps connections for the next call. */
export function transport(place: Place): Send {
  const send = place.fetch
    ? sendByFetch(place.fetch)
    : sendByNode(new URL(place.baseUrl).protocol === "https:", place.connections ?? {});
  return place.openSocket ? sendBySocket(place.openSocket, send) : send;
}

function sendByFetch(fetch: NonNullable<Place["fetch"]>): Send {
  return async ({ url, headers, body, signal, origin }) => {
    const init = { method: "POST", headers, body, signal, redirect: "manual", ...(origin && { origin }) } as const;
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
  const send = (sending: Sending, again: boolean): Promise<Answer> =>
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
        // The reader of the response gets this error too. A second request would have no owner.
        if (answered) return;
        // The server closed a kept connection before it answered, so a new connection repeats nothing.
        if (again && outgoing.reusedSocket && error.code === "ECONNRESET") resolve(send(sending, false));
        else reject(error);
      });
      outgoing.end(bytes);
    });
  return (sending) => send(sending, true);
}

/** How long a connection is kept that nobody uses. */
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

/** A machine that does not answer at all is given up on long before one that thinks. */
const CONNECT_MS = 15_000;

function limitConnecting(socket: Socket, secure: boolean): void {
  if (!socket.connecting) return;
  const late = Object.assign(new Error(`no connection within ${CONNECT_MS / 1000} s`), { code: "ETIMEDOUT" });
  const timer = setTimeout(() => socket.destroy(late), CONNECT_MS);
  socket.once(secure ? "secureConnect" : "connect", () => clearTimeout(timer));
  socket.once("close", () => clearTimeout(timer));
}

function answerOf(incoming: IncomingMessage): Answer {
  const body = decoded(incoming);
  const chunks: AsyncIterator<Uint8Array> = body[Symbol.asyncIterator]();
  for (const stream of [incoming, body]) stream.on("error", () => undefined); // whoever reads hears of it
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

/** The body without its compression: some servers and proxies compress though nobody asked for it. */
function decoded(incoming: IncomingMessage): Readable {
  const decoder = decoders[incoming.headers["content-encoding"]?.trim().toLowerCase() ?? ""]?.();
  if (!decoder) return incoming;
  pipeline(incoming, decoder, () => undefined); // whoever reads hears of it
  return decoder;
}

const decoders: Readonly<Record<string, () => Transform>> = {
  gzip: () => createGunzip({ flush: constants.Z_SYNC_FLUSH }),
  "x-gzip": () => createGunzip({ flush: constants.Z_SYNC_FLUSH }),
  deflate: () => createInflate({ flush: constants.Z_SYNC_FLUSH }),
  br: () => createBrotliDecompress({ flush: constants.BROTLI_OPERATION_FLUSH }),
};
