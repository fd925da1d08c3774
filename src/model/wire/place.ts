import type { Agent } from "node:http";
import type { Stamp } from "../../lib/stamp.ts";
import type { RequestOrigin } from "../provider.ts";
import type { RefusedParameters } from "./optional-parameters.ts";
import type { OpenSocket } from "./transport/socket.ts";

/** The network as a client program may stand in for it: what `fetch` does, and told whose request it is. */
export type ModelFetch = (url: string, init: ModelFetchInit) => Promise<Response>;

interface ModelFetchInit extends RequestInit {
  readonly origin?: RequestOrigin;
}

/** The connections that all providers of a process share; made when the first request needs them. */
export interface Connections {
  plain?: Agent;
  secure?: Agent;
  /** Functions that close the connections that are not in use. */
  idle?: WeakMap<object, NodeJS.Timeout>;
  /** How long one is kept that nobody uses. */
  readonly keepMs?: number;
}

/** Where a wire speaks to, and how it signs in. A provider file fills this in; the wires do the rest. */
export interface Place {
  /** Id of the provider, for messages. */
  readonly id: string;
  /** Without a trailing slash. */
  readonly baseUrl: string;
  /** Asked for each attempt, so that a refreshed token is used at once. Sign-in headers are among them. */
  headers(): Promise<Readonly<Record<string, string>>>;
  /** Appended to every URL, such as `api-version=2024-10-21`. */
  readonly query?: string;
  /** Another way to reach the network (a client program that tunnels model traffic). */
  readonly fetch?: ModelFetch;
  /** Requests go over WebSockets where one can be opened; for the responses wire alone. */
  readonly openSocket?: OpenSocket;
  /** Left out, the provider has connections of its own. */
  readonly connections?: Connections;
  readonly bounds?: Partial<Bounds>;
  readonly stamp?: Stamp;
  /** What to tell a user whose key was refused, such as "Set OPENAI_API_KEY". */
  readonly keyHint?: string;
  /** False: `stream_options` is not sent on the chat wire. A server that then sends no usage is counted by estimate. */
  readonly streamUsage?: boolean;
  /** Optional parameters that were refused so far; shared by all who speak to the place. */
  readonly refused?: RefusedParameters;
}

/** The time limits of one call. Users set them as `timeouts` of a provider. */
export interface Bounds {
  /** Until the response headers arrive. */
  readonly connectMs: number;
  /** Between two events of a stream, or two parts of another reply; comments, pings and blanks do not count. */
  readonly idleMs: number;
  /** For the whole call. */
  readonly totalMs: number;
}

export const defaultBounds: Bounds = { connectMs: 120_000, idleMs: 120_000, totalMs: 900_000 };
