/** `fetch` for one remote server: checked addresses only, no automatic redirects, bounded responses. */
import type { Agent, IncomingMessage, RequestOptions } from "node:http";
import { Readable, Transform } from "node:stream";
import type { FetchLike } from "@modelcontextprotocol/client";
import { lookupOnly } from "../../lib/node/checked-dial.ts";
import { dialAddresses, EndpointError, type HttpEndpoint, hostOf } from "./http-endpoint.ts";

export interface GuardedFetch {
  readonly fetch: FetchLike;
  close(): void;
}

const MAX_JSON_BYTES = 4 * 1024 * 1024;
const MAX_OTHER_BYTES = 256 * 1024;
const NO_BODY = new Set([101, 204, 205, 304]);

/**
 * Sends the configured headers to the configured origin only; requests to others, such as an authorization server, have
 * none. Redirects are returned; the library follows them within the origin. A response that is too large is cut off and
 * reported, because the library would wait for the rest of it.
 */
export async function guardedFetch(
  endpoint: HttpEndpoint,
  onExcess: (reason: string) => void = () => undefined,
): Promise<GuardedFetch> {
  const [http, https] = await Promise.all([import("node:http"), import("node:https")]);
  const agents = { "http:": new http.Agent({ keepAlive: true }), "https:": new https.Agent({ keepAlive: true }) };
  return {
    async fetch(target, init = {}) {
      const url = new URL(target);
      if (url.protocol !== "http:" && url.protocol !== "https:")
        throw new EndpointError("only http and https are supported");
      const isOwn = url.origin === endpoint.url.origin;
      if (!isOwn && url.protocol === "http:" && !endpoint.privateHosts.has(hostOf(url)))
        throw new EndpointError(`the connection to ${url.host} would not be encrypted`);
      const headers = new Headers(init.headers);
      if (isOwn)
        for (const [name, value] of Object.entries(endpoint.headers)) if (!headers.has(name)) headers.set(name, value);
      const { request } = url.protocol === "https:" ? https : http;
      const options: RequestOptions = {
        method: init.method ?? "GET",
        headers: Object.fromEntries(headers),
        agent: agents[url.protocol],
        lookup: lookupOnly(await dialAddresses(url, endpoint)),
        ...(init.signal && { signal: init.signal }),
      };
      return toResponse(await exchange(request, { url, options, body: bodyOf(init.body) }), onExcess);
    },
    close() {
      for (const agent of Object.values<Agent>(agents)) agent.destroy();
    },
  };
}

interface Exchange {
  readonly url: URL;
  readonly options: RequestOptions;
  readonly body: string | Uint8Array | undefined;
}

function exchange(
  request: typeof import("node:http").request,
  { url, options, body }: Exchange,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = request(url, options, resolve);
    sent.on("error", (error) => reject(options.signal?.aborted ? options.signal.reason : error));
    sent.end(body);
  });
}

function bodyOf(body: RequestInit["body"]): string | Uint8Array | undefined {
  if (body === undefined || body === null) return undefined;
  if (typeof body === "string" || body instanceof Uint8Array) return body;
  if (body instanceof URLSearchParams) return body.toString();
  throw new TypeError("this kind of body is not supported");
}

function toResponse(incoming: IncomingMessage, onExcess: (reason: string) => void): Response {
  const status = incoming.statusCode ?? 502;
  const headers = new Headers();
  for (const [name, values] of Object.entries(incoming.headersDistinct))
    for (const value of values ?? []) headers.append(name, value);
  if (NO_BODY.has(status)) {
    incoming.resume();
    return new Response(null, { status, headers });
  }
  if (headers.has("content-encoding") && headers.get("content-encoding") !== "identity") {
    incoming.destroy();
    throw new EndpointError("its answer has a content encoding that was not requested");
  }
  const limited = incoming.pipe(limit(headers.get("content-type") ?? "", onExcess));
  incoming.on("error", (error) => limited.destroy(error));
  limited.on("error", () => incoming.destroy());
  limited.on("close", () => incoming.destroy());
  return new Response(Readable.toWeb(limited) as ReadableStream, { status, headers });
}

/** Limits each event of an event stream, which may last for hours, and every other response as a whole. */
function limit(contentType: string, onExcess: (reason: string) => void): Transform {
  const isStream = /^text\/event-stream\b/i.test(contentType);
  const most = isStream || /json/i.test(contentType) ? MAX_JSON_BYTES : MAX_OTHER_BYTES;
  let size = 0;
  return new Transform({
    transform(bytes: Buffer, _encoding, done) {
      const end = isStream ? Math.max(bytes.lastIndexOf("\n\n"), bytes.lastIndexOf("\r\n\r\n")) : -1;
      size = end < 0 ? size + bytes.length : bytes.length - end;
      if (size <= most) return done(null, bytes);
      const reason = `it sent more than ${most / 1024} KiB at once`;
      done(new EndpointError(reason));
      onExcess(reason);
    },
  });
}
