/** Asks a remote server once whether it wants a sign-in. Opens no connection and requests no token. */
import { defined } from "../../lib/defined.ts";
import { guardedFetch } from "./guarded-fetch.ts";
import { httpEndpoint } from "./http-endpoint.ts";
import type { OpenBase } from "./open.ts";
import type { McpServerConfig } from "./server.ts";

export interface McpProbe {
  readonly statusCode: number;
  readonly headers: readonly { readonly name: string; readonly value: string }[];
  /** True when the request had a token of a sign-in. */
  readonly hadToken: boolean;
  /** The server's challenge, when it refused the request. */
  readonly challenge?: { readonly error?: string; readonly scope?: string; readonly resourceMetadataUrl?: string };
}

interface ProbeRequest {
  readonly config: McpServerConfig;
  readonly base: Pick<OpenBase, "allowPrivateHosts" | "authProvider" | "version">;
  /** The header value of the host program's token, if it provided one. */
  readonly token: string | undefined;
  readonly signal: AbortSignal;
}

const PROTOCOL_VERSION = "2025-06-18";
const MAX_PROBE_MS = 10_000;

/** Throws when the server cannot be reached. */
export async function probeServer({ config, base, token, signal }: ProbeRequest): Promise<McpProbe> {
  const endpoint = httpEndpoint(config, base.allowPrivateHosts);
  const { extractWWWAuthenticateParams } = await import("@modelcontextprotocol/client");
  const authorization = token ?? (await storedToken(config, base));
  const guarded = await guardedFetch(endpoint);
  try {
    const headers = authorization === undefined ? {} : { authorization };
    const within = AbortSignal.any([signal, AbortSignal.timeout(MAX_PROBE_MS)]);
    const response = await guarded.fetch(endpoint.url, { ...requestTo(config, base.version, headers), signal: within });
    await response.body?.cancel().catch(() => undefined);
    const isRefused = response.status === 401 || response.status === 403;
    const { error, scope, resourceMetadataUrl } = isRefused ? extractWWWAuthenticateParams(response) : {};
    return {
      statusCode: response.status,
      headers: [...response.headers].map(([name, value]) => ({ name, value })),
      hadToken: authorization !== undefined,
      ...(isRefused && {
        challenge: defined({ error, scope, resourceMetadataUrl: resourceMetadataUrl?.href }),
      }),
    };
  } finally {
    guarded.close();
  }
}

/** Builds the first request of a connection, `initialize`. */
function requestTo({ transport }: McpServerConfig, version: string, headers: Record<string, string>): RequestInit {
  if (transport.type === "sse") return { headers: { ...headers, accept: "text/event-stream" } };
  const clientInfo = { name: "troupe", version };
  const params = { protocolVersion: PROTOCOL_VERSION, capabilities: {}, clientInfo };
  return {
    method: "POST",
    headers: { ...headers, accept: "application/json, text/event-stream", "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params }),
  };
}

async function storedToken(config: McpServerConfig, base: ProbeRequest["base"]): Promise<string | undefined> {
  const provider = await base.authProvider?.(config);
  const tokens = provider && "tokens" in provider ? await provider.tokens() : undefined;
  return tokens && `Bearer ${tokens.access_token}`;
}
