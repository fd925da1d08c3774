import type { Price } from "../prices.ts";

export type WireApi = "completions" | "responses" | "anthropic";

/** How the key travels: `Authorization: Bearer`, a header of that name, or not at all. */
export type Auth = "bearer" | "x-api-key" | "api-key" | "x-goog-api-key" | "none";

/** All there is to know about a provider before anyone has configured anything. Data only. */
export interface ProviderDefinition {
  /** As in `id/model`; no slash. */
  readonly id: string;
  readonly name: string;
  readonly wire: WireApi;
  /** Without a trailing slash. Empty when only the user can know it: see `baseUrlVariable`. */
  readonly baseUrl: string;
  /** An environment variable that holds the address. */
  readonly baseUrlVariable?: string;
  /** Environment variables that may hold the key, the usual one first. */
  readonly keyVariables: readonly string[];
  readonly auth: Auth;
  readonly headers?: Readonly<Record<string, string>>;
  /** False for a server that sends the usage of streams unasked and may refuse `stream_options`. */
  readonly streamUsage?: boolean;
  /** Routes of Azure OpenAI: by deployment when an API version is given, versionless otherwise. */
  readonly azure?: { readonly versionVariables: readonly string[] };
  /** A server on this machine. */
  readonly local?: LocalServer;
  /** `GET {baseUrl}/models` lists what can be used. */
  readonly listsModels: boolean;
  readonly defaultModel?: string;
  /** Short on purpose: a name that is not here can still be used. */
  readonly models: readonly KnownModel[];
}

export interface LocalServer {
  readonly port: number;
  /** Looked for when nothing is configured. Off for ports that other programs use as often. */
  readonly discover: boolean;
  /** Tells, for models in memory, how much context the server really gives them. */
  readonly windowPath?: string;
}

export interface KnownModel {
  readonly name: string;
  /** What a session calls it, when that is neither its name nor its wire name. */
  readonly id?: string;
  /** Shown in its place. */
  readonly displayName?: string;
  /** What the provider calls it, when that differs. */
  readonly wireName?: string;
  readonly contextWindow?: number;
  readonly maxOutputTokens?: number;
  /** False: it takes no pictures. */
  readonly vision?: boolean;
  /** How it is spoken to, when not like the others of its provider. */
  readonly wire?: WireApi;
  /** It takes WebSockets on the responses wire. */
  readonly sockets?: boolean;
  readonly price: Price | null;
}
