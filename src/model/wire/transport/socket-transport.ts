/**
 * The responses wire over a WebSocket: a request is one message, each event of the reply another. To its reader the
 * reply looks like an HTTP stream. A socket is reused for the next call of the same agent.
 */
import { isObject } from "../../../lib/json.ts";
import { parseBounded } from "../bounded-json.ts";
import type { ModelSocket, OpenSocket } from "./socket.ts";
import type { HttpAnswer, HttpRequest, Send } from "./transport.ts";

interface Kept {
  readonly socket: ModelSocket;
  /** Awaited from the moment the socket is idle: an unexpected message or its end makes it unusable. */
  readonly next: Promise<string | undefined>;
  readonly timer: NodeJS.Timeout;
}

const KEPT_MS = 30_000;
const MAX_KEPT = 8;

/** Sends over WebSockets. If no socket can be opened, this and later requests use `other`. */
export function sendBySocket(open: OpenSocket, other: Send): Send {
  const kept = new Map<string, Kept>();
  let isOffered = true;

  function drop(key: string, one: Kept): void {
    if (kept.get(key) !== one) return;
    kept.delete(key);
    clearTimeout(one.timer);
    one.socket.close("done");
  }

  function keep(key: string, socket: ModelSocket): void {
    const timer = setTimeout(() => drop(key, one), KEPT_MS);
    timer.unref();
    const one: Kept = { socket, next: socket.receive(), timer };
    const isUseless = (): void => drop(key, one);
    one.next.then(isUseless, isUseless);
    const before = kept.get(key);
    if (before) drop(key, before);
    const [oldest] = kept;
    if (oldest && kept.size >= MAX_KEPT) drop(...oldest);
    kept.set(key, one);
  }

  function take(key: string): Kept | undefined {
    const one = kept.get(key);
    kept.delete(key);
    clearTimeout(one?.timer);
    return one;
  }

  return async (sending) => {
    if (!isOffered) return other(sending);
    const { headers, signal, origin } = sending;
    // Identity is sent when a socket is opened, so a socket is only reused for the same URL, headers and origin.
    const key = JSON.stringify([sending.url, headers, origin]);
    const free = (socket: ModelSocket): void => keep(key, socket);
    const used = take(key);
    // A reused socket may have been closed. If nothing was received, a new one can be used safely.
    const again = used && (await converse(used.socket, sending, { free, next: used.next }).catch(() => undefined));
    if (again) return again;
    signal.throwIfAborted();
    let socket: ModelSocket;
    try {
      socket = await open(socketUrl(sending.url), { headers, signal, origin });
    } catch {
      signal.throwIfAborted();
      isOffered = false;
      return other(sending);
    }
    const answer = await converse(socket, sending, { free });
    if (!answer) throw new TypeError("The WebSocket was closed before it answered.");
    return answer;
  };
}

/** Returns `undefined` if the socket was closed before anything was received. Rejects if it broke. */
async function converse(
  socket: ModelSocket,
  { body, signal }: HttpRequest,
  { free, next }: { free(socket: ModelSocket): void; next?: Promise<string | undefined> },
): Promise<HttpAnswer | undefined> {
  const stop = (): void => socket.close("cancelled");
  signal.addEventListener("abort", stop, { once: true });
  try {
    await socket.send(`{"type":"response.create",${body.slice(1)}`);
    const first = await (next ?? socket.receive());
    if (first === undefined) return undefined;
    return refusalOf(first, socket) ?? replyFrom(first, socket, free);
  } catch (error) {
    socket.close("cancelled");
    throw error;
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** Returns an error message in place of a reply, with the status that HTTP would have. */
function refusalOf(message: string, socket: ModelSocket): HttpAnswer | undefined {
  const parsed = parseBounded(message);
  if (!parsed.ok || !isObject(parsed.value) || parsed.value.type !== "error") return undefined;
  const { status, headers } = parsed.value;
  if (typeof status !== "number" || status < 400 || status > 599) return undefined;
  socket.close("done");
  let rest: Uint8Array | undefined = Buffer.from(message);
  return {
    status,
    header: (name) => (isObject(headers) ? textOf(headers[name]) : undefined),
    async read() {
      const bytes = rest;
      rest = undefined;
      return bytes;
    },
    cancel: () => undefined,
  };
}

function replyFrom(first: string, socket: ModelSocket, free: (socket: ModelSocket) => void): HttpAnswer {
  let held: string | undefined = first;
  let state: "open" | "over" = "open";
  return {
    status: 200,
    header: (name) => (name === "content-type" ? "text/event-stream" : undefined),
    async read() {
      if (state === "over") return undefined;
      const message = held ?? (await socket.receive());
      held = undefined;
      if (message === undefined) {
        state = "over";
        return undefined;
      }
      if (isLast(message)) {
        state = "over";
        free(socket);
      }
      return Buffer.from(`data: ${message.replace(/[\r\n]+/g, " ")}\n\n`);
    },
    cancel() {
      if (state === "open") socket.close("cancelled");
      state = "over";
    },
  };
}

const LAST = new Set<unknown>(["response.completed", "response.incomplete", "response.failed"]);

/** Parses only messages that look like the last one, to avoid parsing each message twice. */
function isLast(message: string): boolean {
  if (!/response\.(?:completed|incomplete|failed)/.test(message)) return false;
  const parsed = parseBounded(message);
  return parsed.ok && isObject(parsed.value) && LAST.has(parsed.value.type);
}

const textOf = (value: unknown): string | undefined => (value === undefined ? undefined : String(value));

const socketUrl = (url: string): string => url.replace(/^http/, "ws");
