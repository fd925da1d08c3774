import { validateHeaderName, validateHeaderValue } from "node:http";
import { ModelError } from "../../model-error.ts";
import type { RequestOrigin } from "../../provider.ts";
import { type Bounds, defaultBounds, type Place } from "../place.ts";
import { presentable } from "../wire-error.ts";
import type { Send } from "./transport.ts";

export interface Post {
  readonly place: Place;
  readonly send: Send;
  readonly path: string;
  /** Headers of the wire. Those of the place take precedence. */
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
export function boundsFor({ place, stream }: Pick<Post, "place" | "stream">): Bounds {
  const { bounds: given = {} } = place;
  const bounds = { ...defaultBounds, ...given };
  if (stream) return bounds;
  const idleMs = Math.min(given.idleMs ?? UNSTREAMED_IDLE_MS, bounds.totalMs);
  return { connectMs: given.connectMs ?? idleMs, idleMs, totalMs: bounds.totalMs };
}

const UNSTREAMED_IDLE_MS = 300_000;

/** Returns the request's headers by lower-case name. Errors about them never contain a value. */
export async function signInHeaders(what: Post): Promise<Record<string, string>> {
  const { place, headers: own = {}, extra = {}, stream } = what;
  const accept = stream ? "text/event-stream" : "application/json";
  const headers: Record<string, string> = { "content-type": "application/json", accept, ...own };
  const ofPlace = Object.entries(await askForHeaders(place));
  const ofRequest = Object.entries(extra).filter(([name]) => !RESERVED.has(name.toLowerCase()));
  for (const [name, value] of [...ofPlace, ...ofRequest]) {
    try {
      validateHeaderName(name);
      validateHeaderValue(name, value);
    } catch {
      throw new ModelError(`${place.id}: the header "${name}" contains characters that HTTP does not allow`, {
        kind: "authentication",
        provider: place.id,
        hint: place.keyHint ?? "Check the API key for line breaks and stray characters.",
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

async function askForHeaders(place: Place): Promise<Readonly<Record<string, string>>> {
  try {
    return await place.headers();
  } catch (cause) {
    if (cause instanceof ModelError) throw cause;
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new ModelError(`${place.id}: could not sign in: ${presentable(message)}`, {
      kind: "authentication",
      provider: place.id,
      hint: place.keyHint ?? `Check how ${place.id} gets its key.`,
      cause,
    });
  }
}

/** Returns the full URL. Validates it first, so that no client reports an error that repeats a password. */
export function addressOf({ place, path }: Post): string {
  const url = `${place.baseUrl.replace(/\/+$/, "")}${path}${place.query ? `?${place.query}` : ""}`;
  const problem = !URL.canParse(url)
    ? "the base URL is not an address"
    : new URL(url).username || new URL(url).password
      ? "the base URL must not contain a user name or password"
      : undefined;
  if (problem === undefined) return url;
  const hint = "Set a base URL such as https://api.example.com/v1, and the key on its own.";
  throw new ModelError(`${place.id}: ${problem}`, { kind: "request", provider: place.id, hint });
}

/** Returns values that a server might repeat in an error and that must not be shown. */
export function secretsOf(headers: Readonly<Record<string, string>>, place: Place): string[] {
  const named = [...Object.entries(headers), ...new URLSearchParams(place.query ?? "")];
  return named
    .filter(([name]) => /auth|key|token|secret|cookie/i.test(name))
    .map(([, value]) => value.replace(/^(?:bearer|basic|token) +/i, "").trim())
    .filter((value) => value.length >= 6);
}
