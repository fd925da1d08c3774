/**
 * Tokens that the host program brings. Whoever started the session signs people in itself; when a server refuses a
 * request, the host is asked for a token, told why, and the request is sent again. Nothing of it is kept on disk.
 */
import type { FetchLike } from "@modelcontextprotocol/client";
import { needed } from "./oauth.ts";
import { remoteUrl } from "./oauth-store.ts";
import type { McpServerConfig } from "./server.ts";

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
}

export type TokenAnswer =
  | { readonly kind: "token"; readonly accessToken: string; readonly tokenType?: string; readonly expiresIn?: number }
  | { readonly kind: "cancelled" };

export interface HostTokens {
  readonly config: McpServerConfig;
  /** How the server is reached; tokens go to its origin alone. */
  readonly fetch: FetchLike;
  requestToken(request: TokenRequest): Promise<TokenAnswer>;
}

/** `fetch` for one server. Several requests that are refused at once ask the host once. */
export function hostAuthorisedFetch(options: HostTokens): FetchLike {
  const { config, fetch } = options;
  const { origin } = new URL(remoteUrl(config));
  const held: { token?: string; asking?: Promise<string> } = {};

  const tokenAfter = (refused: string | undefined, reason: TokenReason, response: Response): Promise<string> => {
    if (held.token !== undefined && held.token !== refused) return Promise.resolve(held.token);
    held.asking ??= ask(options, reason, response)
      .then((token) => {
        held.token = token;
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
      const { token } = held;
      const response = await fetch(target, token === undefined ? init : withToken(init, token));
      const reason = await reasonFor(response, token, asked);
      if (reason === undefined) return response;
      asked.push(reason);
      await response.body?.cancel();
      await tokenAfter(token, reason, response);
    }
  };
}

/** Undefined when the request succeeded, or when asking again would not help. */
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

async function ask(options: HostTokens, reason: TokenReason, response: Response): Promise<string> {
  const { config } = options;
  const { extractWWWAuthenticateParams } = await import("@modelcontextprotocol/client");
  const { resourceMetadataUrl, scope, error } = extractWWWAuthenticateParams(response);
  const hasChallenge = response.headers.has("www-authenticate");
  const resourceMetadata = resourceMetadataUrl && (await metadataAt(resourceMetadataUrl, options.fetch));
  const answer = await soon(
    options.requestToken({
      serverName: config.name,
      serverUrl: remoteUrl(config),
      reason,
      ...(hasChallenge && {
        wwwAuthenticateParams: {
          ...(resourceMetadataUrl && { resourceMetadataUrl: resourceMetadataUrl.href }),
          ...(scope !== undefined && { scope }),
          ...(error !== undefined && { error }),
        },
      }),
      ...(resourceMetadata !== undefined && { resourceMetadata }),
    }),
  );
  if (answer.kind === "cancelled" || !isToken(answer.accessToken)) throw await needed(config.name);
  return answer.accessToken;
}

/** What a header can carry, and no more. */
const isToken = (token: string): boolean => /^[\u0021-\u007e]{1,16384}$/.test(token);

const MAX_METADATA_CHARACTERS = 64 * 1024;
const METADATA_TIMEOUT_MS = 10_000;

async function metadataAt(url: URL, fetch: FetchLike): Promise<string | undefined> {
  const accept = { headers: { accept: "application/json" }, signal: AbortSignal.timeout(METADATA_TIMEOUT_MS) };
  try {
    const response = await fetch(url, accept);
    const text = await response.text();
    return response.ok && text.length <= MAX_METADATA_CHARACTERS ? text : undefined;
  } catch {
    return undefined; // the host can look for itself
  }
}

function withToken(init: RequestInit | undefined, token: string): RequestInit {
  const headers = new Headers(init?.headers);
  headers.set("authorization", `Bearer ${token}`);
  return { ...init, headers };
}

/** A host that never answers has cancelled. */
function soon(answer: Promise<TokenAnswer>): Promise<TokenAnswer> {
  let limit: NodeJS.Timeout | undefined;
  const late = new Promise<TokenAnswer>((resolve) => {
    limit = setTimeout(() => resolve({ kind: "cancelled" }), MAX_WAIT_MS);
  });
  return Promise.race([answer, late]).finally(() => clearTimeout(limit));
}
