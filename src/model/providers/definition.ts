/** The type of a built-in provider. This folder has one file of data per provider. */

import type { ChatDialect } from "../chat-dialect.ts";
import type { Price } from "../prices.ts";

export type WireApi = "completions" | "responses" | "anthropic";

/** How the key is sent: `Authorization: Bearer`, a header of that name, or not at all. */
export type Auth = "bearer" | "x-api-key" | "api-key" | "x-goog-api-key" | "none";

/** Everything that is known about a provider without configuration. Data only. */
export interface ProviderDefinition {
  /** As in `id/model`; without a slash. */
  readonly id: string;
  readonly name: string;
  readonly wire: WireApi;
  /** Without a trailing slash. Empty if only the user knows it: see `baseUrlVariable`. */
  readonly baseUrl: string;
  /** An environment variable with the base URL. */
  readonly baseUrlVariable?: string;
  /** Environment variables for the key, the usual one first. */
  readonly keyVariables: readonly string[];
  readonly auth: Auth;
  readonly headers?: Readonly<Record<string, string>>;
  /** False for a server that sends stream usage unasked and may refuse `stream_options`. */
  readonly streamUsage?: boolean;
  /** Differences from the common chat wire. They also hold for endpoints that users configure at its hosts. */
  readonly chatDialect?: ChatDialect;
  /** Azure OpenAI routes: by deployment if an API version is given, otherwise without version. */
  readonly azure?: { readonly versionVariables: readonly string[] };
  /** A server on this machine. */
  readonly local?: LocalServer;
  /** True if `GET {baseUrl}/models` lists the usable models. */
  readonly listsModels: boolean;
  readonly defaultModel?: string;
  /** Short on purpose: other model names can be used too. */
  readonly models: readonly KnownModel[];
}

export interface LocalServer {
  readonly port: number;
  /** Searched for when nothing is configured. False for ports that other programs often use. */
  readonly discover: boolean;
  /** Path that returns the actual context size of loaded models. */
  readonly windowPath?: string;
}

export interface KnownModel {
  readonly name: string;
  /** The session's name for the model, if it is neither its name nor its wire name. */
  readonly id?: string;
  /** Shown instead of the name. */
  readonly displayName?: string;
  /** The provider's name for the model, if it differs. */
  readonly wireName?: string;
  readonly contextWindow?: number;
  readonly maxOutputTokens?: number;
  /** False: the model does not accept images. */
  readonly vision?: boolean;
  /** The model's wire, if it differs from its provider's. */
  readonly wire?: WireApi;
  /** True if it supports WebSockets on the responses wire. */
  readonly sockets?: boolean;
  readonly price: Price | null;
}
