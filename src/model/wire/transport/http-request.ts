import { validateHeaderName, validateHeaderValue } from "node:http";
import { ModelError } from "../../model-error.ts";
import type { RequestOrigin } from "../../provider.ts";
import { type Bounds, defaultBounds, type Endpoint } from "../endpoint.ts";
import { presentable } from "../wire-error.ts";
import type { Send } from "./transport.ts";

export interface Post {
  readonly endpoint: Endpoint;
  readonly send: Send;
  readonly path: string;
  /** Headers of the wire. Those of the endpoint take precedence. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
  /** Headers of this request only. They take precedence over all others, except those for sign-in and framing. */
  readonly extra?: Readonly<Record<string, string>>;
  readonly origin?: RequestOrigin;
  readonly stream: boolean;
  readonly signal: AbortSignal;
}

/**
 * Returns the time limits. A server may be silent for longer if the reply is not streamed, because it is silent until
 * the end.
 */
export function boundsFor({ endpoint, stream }: Pick<Post, "endpoint" | "stream">): Bounds {
  const { bounds: given = {} } = endpoint;
  const bounds = { ...defaultBounds, ...given };
  if (stream) return bounds;
  const idleMs = Math.min(given.idleMs ?? UNSTREAMED_IDLE_MS, bounds.totalMs);
  return { connectMs: given.connectMs ?? idleMs, idleMs, totalMs: bounds.totalMs };
}

const UNSTREAMED_IDLE_MS = 300_000;

/** Returns the request's headers by lower-case name. Errors about them never contain a value. */
export async function signInHeaders(what: Post): Promise<Record<string, string>> {
  const { endpoint, headers: own = {}, extra = {}, stream } = what;
  const accept = stream ? "text/event-stream" : "application/json";
  const headers: Record<string, string> = { "content-type": "application/json", accept, ...own };
  const ofEndpoint = Object.entries(await askForHeaders(endpoint));
  const ofRequest = Object.entries(extra).filter(([name]) => !RESERVED.has(name.toLowerCase()));
  for (const [name, value] of [...ofEndpoint, ...ofRequest]) {
    try {
      validateHeaderName(name);
      validateHeaderValue(name, value);
    } catch {
      throw new ModelError(`${endpoint.id}: the header "${name}" contains characters that HTTP does not allow`, {
        kind: "authentication",
        provider: endpoint.id,
        hint: endpoint.keyHint ?? "Check the API key for line breaks and stray characters.",
      });
    }
    headers[name.toLowerCase()] = value;
  }
  return headers;
}

/** Headers that a single request cannot change: sign-in and framing. */
const RESERVED = new Set([
  ...["authorization", "x-api-key", "api-key", "proxy-authorization", "cookie"],
  ...["host", "content-type", "content-length", "content-encoding", "transfer-encoding", "connection", "upgrade"],
]);

async function askForHeaders(endpoint: Endpoint): Promise<Readonly<Record<string, string>>> {
  try {
    return await endpoint.headers();
  } catch (cause) {
    if (cause instanceof ModelError) throw cause;
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new ModelError(`${endpoint.id}: could not sign in: ${presentable(message)}`, {
      kind: "authentication",
      provider: endpoint.id,
      hint: endpoint.keyHint ?? `Check how ${endpoint.id} gets its key.`,
      cause,
    });
  }
}

/** Returns the full URL. Validates it first, so that no client reports an error that repeats a password. */
export function addressOf({ endpoint, path }: Post): string {
  const url = `${endpoint.baseUrl.replace(/\/+$/, "")}${path}${endpoint.query ? `?${endpoint.query}` : ""}`;
  const problem = !URL.canParse(url)
    ? "the base URL is not an address"
    : new URL(url).username || new URL(url).password
      ? "the base URL must not contain a user name or password"
      : undefined;
  if (problem === undefined) return url;
  const hint = "Set a base URL such as https://api.example.com/v1, and the key on its own.";
  throw new ModelError(`${endpoint.id}: ${problem}`, { kind: "request", provider: endpoint.id, hint });
}

/** Returns values that a server might repeat in an error and that must not be shown. */
export function secretsOf(headers: Readonly<Record<string, string>>, endpoint: Endpoint): string[] {
  const named = [...Object.entries(headers), ...new URLSearchParams(endpoint.query ?? "")];
  return named
    .filter(([name]) => /auth|key|token|secret|cookie/i.test(name))
    .map(([, value]) => value.replace(/^(?:bearer|basic|token) +/i, "").trim())
    .filter((value) => value.length >= 6);
}
