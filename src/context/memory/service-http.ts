/** Sends one request to a memory service: one attempt, bounded in time and size, without redirects. */
import type { IncomingMessage, RequestOptions } from "node:http";
import { isDeeperThan, parseJson } from "../../lib/json.ts";
import { TroupeError } from "../../protocol/errors.ts";

export interface ServiceRequest {
  readonly method: "GET" | "POST";
  readonly url: URL;
  readonly token?: string;
  readonly body?: object;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

export interface ServiceReply {
  readonly status: number;
  /** `undefined` if the body is not JSON. */
  readonly json: unknown;
}

const MAX_REPLY_BYTES = 256 * 1024;
const MAX_DEPTH = 10;

/** Throws an `Error` whose message contains neither the token nor any text of the server. */
export async function requestService(request: ServiceRequest): Promise<ServiceReply> {
  const limit = AbortSignal.timeout(request.timeoutMs);
  const signal = request.signal ? AbortSignal.any([request.signal, limit]) : limit;
  try {
    const response = await send(request, signal);
    const text = await readBody(response, signal);
    const isJson = !isDeeperThan(text, MAX_DEPTH);
    const parsed = isJson ? parseJson(text) : { ok: false as const };
    return { status: response.statusCode ?? 0, json: parsed.ok ? parsed.value : undefined };
  } catch (error) {
    request.signal?.throwIfAborted();
    throw new Error(limit.aborted ? `it did not answer within ${request.timeoutMs} ms` : describe(error), {
      cause: error,
    });
  }
}

/** Validates the configured URL. Plain HTTP is allowed only to this machine, because it exposes the token. */
export function serviceAddress(address: string): URL {
  const refuse = (why: string): TroupeError =>
    new TroupeError("configuration", `The address of the memory service is not usable: ${why}.`, {
      hint: 'Set memory.url in your settings, like "https://memory.example.com".',
    });
  if (!URL.canParse(address)) throw refuse("it is not a URL");
  const url = new URL(address);
  const isLoopback = ["127.0.0.1", "[::1]", "localhost"].includes(url.hostname);
  if (url.protocol !== "https:" && !(url.protocol === "http:" && isLoopback))
    throw refuse("it must begin with https://");
  if (url.username || url.password) throw refuse("it must not hold a password");
  if (url.search || url.hash) throw refuse("it must not have a query or a fragment");
  return url;
}

async function send({ method, url, token, body }: ServiceRequest, signal: AbortSignal): Promise<IncomingMessage> {
  const { request } = url.protocol === "https:" ? await import("node:https") : await import("node:http");
  const payload = body === undefined ? undefined : JSON.stringify(body);
  const options: RequestOptions = {
    method,
    agent: false,
    signal,
    headers: {
      accept: "application/json",
      ...(token && { authorization: `Bearer ${token}` }),
      ...(payload !== undefined && {
        "content-type": "application/json",
        "content-length": Buffer.byteLength(payload),
      }),
    },
  };
  return new Promise((resolve, reject) => {
    request(url, options, resolve).on("error", reject).end(payload);
  });
}

async function readBody(response: IncomingMessage, signal: AbortSignal): Promise<string> {
  const pieces: Buffer[] = [];
  let size = 0;
  try {
    for await (const piece of response) {
      signal.throwIfAborted();
      const bytes: Buffer = Buffer.isBuffer(piece) ? piece : Buffer.from(piece);
      size += bytes.length;
      if (size > MAX_REPLY_BYTES) throw new Error(`it sent more than ${MAX_REPLY_BYTES} bytes`);
      pieces.push(bytes);
    }
  } finally {
    response.destroy();
  }
  return Buffer.concat(pieces).toString("utf8");
}

function describe(error: unknown): string {
  const code: unknown = error instanceof Error && "code" in error ? error.code : undefined;
  if (typeof code === "string") return `the request failed (${code})`;
  return error instanceof Error ? error.message : "the request failed";
}
