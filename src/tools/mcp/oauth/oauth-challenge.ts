/** Challenges of servers that refuse a request: the sign-in they want. */
import type { FetchLike } from "@modelcontextprotocol/client";
import { TroupeError } from "../../../protocol/errors.ts";
import type { McpServerConfig } from "../server.ts";
import { LIBRARY_MS } from "../tasks/call-clock.ts";
import { remoteUrl } from "./oauth-store.ts";

export interface SignInRefusal {
  readonly status: 401 | 403;
  readonly resourceMetadataUrl?: string;
  readonly scope?: string;
}

/** Calls `onRefused` for each 401, and each 403 for a missing scope, from the origin of the server. */
export function watchRefusals(
  fetch: FetchLike,
  serverUrl: string,
  onRefused: (refusal: SignInRefusal) => void | Promise<void>,
): FetchLike {
  const { origin } = new URL(serverUrl);
  return async (target, init) => {
    const response = await fetch(target, init);
    const refusal = new URL(target).origin === origin ? await refusalIn(response) : undefined;
    if (refusal) await onRefused(refusal);
    return response;
  };
}

async function refusalIn(response: Response): Promise<SignInRefusal | undefined> {
  const { status } = response;
  if (status !== 401 && status !== 403) return undefined;
  const { extractWWWAuthenticateParams } = await import("@modelcontextprotocol/client");
  const { resourceMetadataUrl, scope, error } = extractWWWAuthenticateParams(response);
  if (status === 403 && error !== "insufficient_scope") return undefined;
  return {
    status,
    ...(resourceMetadataUrl &&
      isKeepable(resourceMetadataUrl.href) && { resourceMetadataUrl: resourceMetadataUrl.href }),
    ...(scope !== undefined && isKeepable(scope) && { scope }),
  };
}

/** Text of a server is stored beside its tokens, so it must be non-empty and bounded. */
const isKeepable = (text: string): boolean => text !== "" && text.length <= 4096;

/**
 * Connects and lists the tools without a sign-in. Returns the first refusal, or undefined when the server requires no
 * sign-in. Some servers accept "initialize" and refuse the requests after it.
 *
 * Throws a `TroupeError` when the server cannot be reached.
 */
export async function probeRefusal(
  config: McpServerConfig,
  fetch: FetchLike,
  clientInfo: { readonly name: string; readonly version: string },
): Promise<SignInRefusal | undefined> {
  let refusal: SignInRefusal | undefined;
  const serverUrl = remoteUrl(config);
  const { Client, SSEClientTransport, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const watched = watchRefusals(fetch, serverUrl, (seen) => {
    refusal ??= seen;
  });
  const isOld = config.transport.type === "sse";
  const Transport = isOld ? SSEClientTransport : StreamableHTTPClientTransport;
  const client = new Client(clientInfo, { versionNegotiation: { mode: isOld ? "legacy" : "auto" } });
  const waiting = { timeout: LIBRARY_MS };
  try {
    await client.connect(new Transport(new URL(serverUrl), { fetch: watched }), waiting);
    if (client.getServerCapabilities()?.tools) await client.listTools({}, waiting);
  } catch (cause) {
    if (refusal) return refusal;
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new TroupeError("failed", `${serverUrl} cannot be reached: ${why.slice(0, 500)}.`, { cause });
  } finally {
    await client.close().catch(() => undefined);
  }
  return refusal;
}

/** Returns whether the server wants a sign-in. */
export async function isUnauthorized(error: unknown): Promise<boolean> {
  const { SdkErrorCode, SdkHttpError, UnauthorizedError } = await import("@modelcontextprotocol/client");
  if (error instanceof UnauthorizedError) return true;
  if (error instanceof SdkHttpError)
    return error.code === SdkErrorCode.ClientHttpAuthentication || error.data.status === 401;
  return false;
}
