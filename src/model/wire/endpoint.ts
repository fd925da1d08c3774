import type { Agent } from "node:http";
import type { Stamp } from "../../lib/stamp.ts";
import type { ChatDialect } from "../chat-dialect.ts";
import type { RequestOrigin } from "../provider.ts";
import type { RefusedParameters } from "./optional-parameters.ts";
import type { OpenSocket } from "./transport/socket.ts";

/** Replaces the network for a client program. Like `fetch`, with the origin of the request. */
export type ModelFetch = (url: string, init: ModelFetchInit) => Promise<Response>;

interface ModelFetchInit extends RequestInit {
  readonly origin?: RequestOrigin;
}

/** Connections shared by all providers of a process, created by the first request. */
export interface Connections {
  plain?: Agent;
  secure?: Agent;
  /** Timers that close idle connections. */
  idle?: WeakMap<object, NodeJS.Timeout>;
  /** How long an idle connection stays open. */
  readonly keepMs?: number;
}

/** The endpoint of a wire and its sign-in. A provider file fills this in; the wires do the rest. */
export interface Endpoint {
  /** The provider's id, for messages. */
  readonly id: string;
  /** Without a trailing slash. */
  readonly baseUrl: string;
  /** Called for each attempt, so that a refreshed token is used at once. Includes the sign-in headers. */
  headers(): Promise<Readonly<Record<string, string>>>;
  /** Appended to every URL, such as `api-version=2024-10-21`. */
  readonly query?: string;
  /** Replaces the network (a client program that tunnels model traffic). */
  readonly fetch?: ModelFetch;
  /** Sends requests over WebSockets if one can be opened. Responses wire only. */
  readonly openSocket?: OpenSocket;
  /** If absent, the provider has its own connections. */
  readonly connections?: Connections;
  readonly bounds?: Partial<Bounds>;
  readonly stamp?: Stamp;
  /** Advice for a user whose key was refused, such as "Set OPENAI_API_KEY". */
  readonly keyHint?: string;
  /** False: `stream_options` is not sent on the chat wire. If the server then sends no usage, it is estimated. */
  readonly streamUsage?: boolean;
  /** Differences from the common chat wire. */
  readonly chatDialect?: ChatDialect;
  /** The optional parameters refused so far, shared by all callers of the endpoint. */
  readonly refused?: RefusedParameters;
}

/** The time limits of one call. Users set them as `timeouts` of a provider. */
export interface Bounds {
  /** Until the response headers arrive. */
  readonly connectMs: number;
  /** Between two events of a stream, or two parts of another reply. Comments, pings and blanks do not count. */
  readonly idleMs: number;
  /** For the whole call. */
  readonly totalMs: number;
}

export const defaultBounds: Bounds = { connectMs: 120_000, idleMs: 120_000, totalMs: 900_000 };
