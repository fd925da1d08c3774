/**
 * Tokens from the host program, which signs users in itself. When a server refuses a request, the host is asked for a
 * token with the reason, and the request is sent again. Nothing is stored on disk.
 */

import type { FetchLike } from "@modelcontextprotocol/client";
import { defined } from "../../../lib/defined.ts";
import type { McpServerConfig } from "../server.ts";
import { signInNeeded } from "./oauth.ts";
import { remoteUrl } from "./oauth-store.ts";

type TokenReason = "initial" | "refresh" | "reauth" | "upscope";

export interface TokenRequest {
  readonly serverName: string;
  readonly serverUrl: string;
  readonly reason: TokenReason;
  readonly wwwAuthenticateParams?: {
    readonly resourceMetadataUrl?: string;
    readonly scope?: string;
    readonly error?: string;
  };
  /** The document at `resourceMetadataUrl`, as the server sent it. */
  readonly resourceMetadata?: string;
  /** The client named in the server's entry. */
  readonly staticClientConfig?: {
    readonly clientId: string;
    readonly grantType?: "client_credentials";
    readonly publicClient?: boolean;
  };
}

export type TokenAnswer =
  | { readonly kind: "token"; readonly accessToken: string; readonly tokenType?: string; readonly expiresIn?: number }
  | { readonly kind: "cancelled" };

/** The token source of one session. */
export interface TokenSource {
  /** The owner of the tokens. A connection that uses them serves no other owner. */
  readonly owner: string;
  /** Returns whether the host can be asked. Checked when a connection is made. */
  canAsk(): boolean;
  request(request: TokenRequest, signal: AbortSignal): Promise<TokenAnswer>;
}

/** The last token; outlives the connection it was requested for. */
export interface HeldToken {
  /** The header value, including the scheme. */
  value?: string;
  asking?: Promise<string | undefined>;
}

export interface HostTokens {
  readonly config: McpServerConfig;
  /** Reaches the server; tokens are sent to its origin only. */
  readonly fetch: FetchLike;
  readonly held?: HeldToken;
  requestToken(request: TokenRequest): Promise<TokenAnswer>;
}

/** Returns a `fetch` for one server. Concurrent refusals ask the host once. */
export function hostAuthorisedFetch(options: HostTokens): FetchLike {
  const { config, fetch, held = {} } = options;
  const { origin } = new URL(remoteUrl(config));

  /** Resolves to undefined when the host provides no token. */
  const tokenAfter = (refusal: Refusal): Promise<string | undefined> => {
    if (held.value !== undefined && held.value !== refusal.token) return Promise.resolve(held.value);
    held.asking ??= ask(options, refusal)
      .then((token) => {
        if (token !== undefined) held.value = token;
        return token;
      })
      .finally(() => {
        delete held.asking;
      });
    return held.asking;
  };

  return async (target, init) => {
    if (new URL(target).origin !== origin) return fetch(target, init);
    const asked: TokenReason[] = [];
    for (;;) {
      const token = held.value;
      const response = await fetch(target, token === undefined ? init : withToken(init, token));
      let reason = await reasonFor(response, token, asked);
      if (reason === undefined) return response;
      await response.body?.cancel();
      for (;;) {
        asked.push(reason);
        if ((await tokenAfter({ token, reason, response })) !== undefined) break;
        // After a failed refresh the user may still sign in. After a missing scope, other calls still work.
        if (reason === "upscope") return new Response(null, { status: response.status, headers: response.headers });
        if (reason !== "refresh") throw await signInNeeded(config.name);
        reason = "reauth";
      }
    }
  };
}

interface Refusal {
  /** The refused token. */
  readonly token: string | undefined;
  readonly reason: TokenReason;
  readonly response: Response;
}

/** Returns undefined when the request succeeded, or when asking again would not help. */
async function reasonFor(
  response: Response,
  token: string | undefined,
  asked: readonly TokenReason[],
): Promise<TokenReason | undefined> {
  if (response.status === 403) {
    const { extractWWWAuthenticateParams } = await import("@modelcontextprotocol/client");
    const isNarrow = extractWWWAuthenticateParams(response).error === "insufficient_scope";
    return isNarrow && !asked.includes("upscope") ? "upscope" : undefined;
  }
  if (response.status !== 401 || asked.includes("reauth")) return undefined;
  if (token === undefined) return "initial";
  return asked.length === 0 ? "refresh" : "reauth";
}

const MAX_WAIT_MS = 10 * 60_000;

async function ask(options: HostTokens, { reason, response }: Refusal): Promise<string | undefined> {
  const { config } = options;
  const { extractWWWAuthenticateParams } = await import("@modelcontextprotocol/client");
  const { resourceMetadataUrl, scope, error } = extractWWWAuthenticateParams(response);
  const hasChallenge = response.headers.has("www-authenticate");
  const resourceMetadata = resourceMetadataUrl && (await metadataAt(resourceMetadataUrl, options.fetch));
  const staticClientConfig = clientOf(config);
  const answer = await soon(
    options.requestToken({
      serverName: config.name,
      serverUrl: remoteUrl(config),
      reason,
      ...(hasChallenge && {
        wwwAuthenticateParams: defined({ resourceMetadataUrl: resourceMetadataUrl?.href, scope, error }),
      }),
      ...defined({ resourceMetadata, staticClientConfig }),
    }),
  );
  return answer.kind === "token" ? headerValue(answer) : undefined;
}

function clientOf({ transport }: McpServerConfig): TokenRequest["staticClientConfig"] {
  const { clientId, publicClient, grantType } = (transport.type === "stdio" ? undefined : transport.oauth) ?? {};
  if (clientId === undefined) return undefined;
  return {
    clientId,
    ...defined({ publicClient }),
    ...(grantType === "client_credentials" && { grantType }),
  };
}

/** Returns the header value, or undefined for a token that a header cannot carry. */
function headerValue({ accessToken, tokenType = "Bearer" }: TokenAnswer & { kind: "token" }): string | undefined {
  const scheme = /^bearer$/i.test(tokenType) ? "Bearer" : tokenType;
  const isUsable = /^[\u0021-\u007e]{1,16384}$/.test(accessToken) && /^[A-Za-z][A-Za-z0-9-]{0,31}$/.test(scheme);
  return isUsable ? `${scheme} ${accessToken}` : undefined;
}

const MAX_METADATA_CHARACTERS = 64 * 1024;
const METADATA_TIMEOUT_MS = 10_000;

async function metadataAt(url: URL, fetch: FetchLike): Promise<string | undefined> {
  const accept = { headers: { accept: "application/json" }, signal: AbortSignal.timeout(METADATA_TIMEOUT_MS) };
  try {
    const response = await fetch(url, accept);
    const text = await response.text();
    return response.ok && text.length <= MAX_METADATA_CHARACTERS ? text : undefined;
  } catch {
    return undefined; // the host can fetch it itself
  }
}

function withToken(init: RequestInit | undefined, token: string): RequestInit {
  const headers = new Headers(init?.headers);
  headers.set("authorization", token);
  return { ...init, headers };
}

/** Treats a host that does not answer in time as cancelled. */
function soon(answer: Promise<TokenAnswer>): Promise<TokenAnswer> {
  let limit: NodeJS.Timeout | undefined;
  const late = new Promise<TokenAnswer>((resolve) => {
    limit = setTimeout(() => resolve({ kind: "cancelled" }), MAX_WAIT_MS);
  });
  return Promise.race([answer, late]).finally(() => clearTimeout(limit));
}
