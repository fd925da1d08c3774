/**
 * OAuth sign-in to remote servers. The library implements the protocol (discovery, PKCE, registration, refresh, wider
 * scopes); this module adds storage and user interaction. A session never opens a browser: it uses and refreshes stored
 * tokens. When they are not sufficient, the server needs a sign-in by `troupe mcp login` or by the host program.
 */

import { randomBytes } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { FetchLike, OAuthClientProvider, OAuthDiscoveryState } from "@modelcontextprotocol/client";
import { defined } from "../../../lib/defined.ts";
import { TroupeError } from "../../../protocol/errors.ts";
import type { McpOAuthSettings, McpServerConfig } from "../server.ts";
import { probeRefusal, type SignInRefusal } from "./oauth-challenge.ts";
import { isPrivateKey, signedRequests } from "./oauth-key.ts";
import { listenForRedirect } from "./oauth-listener.ts";
import { remoteUrl, type SignIn, type SignInStore } from "./oauth-store.ts";

export interface SignInOptions {
  readonly config: McpServerConfig;
  readonly store: SignInStore;
}

/** A provider that is notified of each refusal before the library acts on it. */
export type SessionSignIn = OAuthClientProvider & { onRefused(refusal: SignInRefusal): Promise<void> };

/** For a connection: uses stored tokens. Rejects with an error that says what to do when they are not sufficient. */
export function sessionSignIn(options: SignInOptions): SessionSignIn {
  const { config, store } = options;
  let last: SignInRefusal | undefined;
  const signIn = provider(options, {
    redirectUrl: NO_REDIRECT,
    state: "",
    async onAuthorize(url) {
      const scope = url.searchParams.get("scope");
      if (scope && last?.status === 403 && isWithin(scope, store.read()?.askedScope)) throw stillRefused(config, scope);
      if (scope) await store.change((kept) => ({ ...kept, wantedScope: scope }));
      throw await signInNeeded(config.name);
    },
  });
  return {
    ...signIn,
    async onRefused({ status, ...refusal }) {
      last = { status, ...refusal };
      if (isDeepStrictEqual(store.read()?.refusal, refusal)) return;
      await store.change((kept) => ({ ...kept, refusal }));
    },
  };
}

function isWithin(scope: string, asked: string | undefined): boolean {
  const granted = new Set(asked?.split(" "));
  return scope.split(" ").every((one) => granted.has(one));
}

function stillRefused({ name }: McpServerConfig, scope: string): TroupeError {
  const message = `${name} refuses the scope ${scope.slice(0, 200)}, though the last sign-in asked for it.`;
  return new TroupeError("failed", `${message} Signing in again does not help; ask the operator of the server.`);
}

export interface LoginOptions extends SignInOptions {
  readonly fetch: FetchLike;
  /** Shows the user where to sign in; not called for a client that signs in by itself. */
  readonly onAuthorize: (url: URL) => void | Promise<void>;
  readonly signal: AbortSignal;
  /** For a client with a secret; stored for later. */
  readonly clientSecret?: string;
  readonly timeoutMs?: number;
}

const LOGIN_TIMEOUT_MS = 5 * 60_000;
const REQUEST_TIMEOUT_MS = 30_000;

/** Signs in again. Returns "not-needed" when the server requires no sign-in. */
export async function login(options: LoginOptions): Promise<"signed-in" | "not-needed"> {
  const { config, store, signal, clientSecret, timeoutMs = LOGIN_TIMEOUT_MS } = options;
  const { auth } = await import("@modelcontextprotocol/client");
  const serverUrl = remoteUrl(config);
  const fetchFn: FetchLike = (url, init) =>
    options.fetch(url, { ...init, signal: AbortSignal.any([signal, AbortSignal.timeout(REQUEST_TIMEOUT_MS)]) });
  const refusal = await refusalOf(options, fetchFn);
  if (!refusal) return "not-needed";
  if (clientSecret !== undefined) await store.change((kept) => ({ ...kept, clientSecret }));
  const scope = store.read()?.wantedScope ?? refusal.scope;
  const { resourceMetadataUrl: metadataUrl } = refusal;
  const request = {
    serverUrl,
    fetchFn,
    ...(metadataUrl !== undefined && { resourceMetadataUrl: new URL(metadataUrl) }),
    ...defined({ scope }),
  };

  const state = randomBytes(32).toString("base64url");
  const listener = await listenForRedirect({ state, timeoutMs });
  const stop = deferredAbort(signal);
  try {
    const signIn = provider(options, { redirectUrl: listener.url, state, onAuthorize: options.onAuthorize });
    if ((await auth(signIn, { ...request, forceReauthorization: true })) === "REDIRECT") {
      const { code, iss } = await Promise.race([listener.arrival, stop.promise]);
      await auth(signIn, { ...request, authorizationCode: code, ...defined({ iss }) });
    }
    await store.change(({ wantedScope: _, refusal: __, askedScope: ___, ...kept }) => ({
      ...kept,
      ...(scope && { askedScope: scope }),
    }));
    return "signed-in";
  } catch (error) {
    throw error instanceof TroupeError || signal.aborted ? error : signInError(config, error);
  } finally {
    stop.done();
    listener.close();
  }
}

/** Returns the server's current refusal, or the one a session received: some servers refuse only tool calls. */
async function refusalOf({ config, store }: SignInOptions, fetchFn: FetchLike): Promise<SignIn["refusal"]> {
  const met = store.read()?.refusal;
  const found = await probeRefusal(config, fetchFn, CLIENT_INFO).catch((error: unknown) => {
    if (met) return undefined;
    throw error;
  });
  return found ?? met;
}

interface Way {
  readonly redirectUrl: string;
  readonly state: string;
  onAuthorize(url: URL): void | Promise<void>;
}

const CLIENT_NAME = "troupe";
const CLIENT_INFO = { name: CLIENT_NAME, version: "0" };
/** Never visited: a session does not open a browser. */
const NO_REDIRECT = "http://127.0.0.1/callback";

function provider(options: SignInOptions, way: Way): OAuthClientProvider {
  const { config, store } = options;
  const settings: McpOAuthSettings = config.transport.type === "stdio" ? {} : (config.transport.oauth ?? {});
  const isByItself = settings.grantType === "client_credentials";
  const flow: { verifier?: string; discovery?: OAuthDiscoveryState; lastUsed?: string } = {};
  return {
    redirectUrl: isByItself ? undefined : way.redirectUrl,
    clientMetadata: {
      client_name: CLIENT_NAME,
      redirect_uris: isByItself ? [] : [way.redirectUrl],
      grant_types: isByItself ? ["client_credentials"] : ["authorization_code", "refresh_token"],
      response_types: isByItself ? [] : ["code"],
      token_endpoint_auth_method: isByItself ? "client_secret_basic" : "none",
    },
    ...defined({ clientMetadataUrl: settings.clientMetadataUrl }),
    state: () => way.state,
    async clientInformation(context) {
      const client = clientOf(settings, store.read(), way);
      // Registering again makes sense only when the user can then sign in.
      if (client === undefined && way.redirectUrl === NO_REDIRECT) throw await signInNeeded(config.name);
      // Without its secret such a client is refused in any case.
      if (isByItself && client?.client_secret === undefined) throw await secretMissing(config, way);
      if (settings.clientId === undefined || client === undefined || context === undefined) return client;
      return boundClient(client, context.issuer, options);
    },
    saveClientInformation: (client) => store.change((kept) => ({ ...kept, client: withoutSecret(client, settings) })),
    tokens() {
      const tokens = store.read()?.tokens;
      if (tokens?.refresh_token !== undefined) flow.lastUsed = tokens.refresh_token;
      return tokens;
    },
    saveTokens: (tokens) => store.change((kept) => ({ ...kept, tokens })),
    async redirectToAuthorization(url) {
      if (url.protocol !== "https:" && url.protocol !== "http:")
        throw new TroupeError(
          "failed",
          `The server asks for a sign-in at ${url.protocol}, which is not a web address.`,
        );
      await way.onAuthorize(url);
    },
    saveCodeVerifier(verifier) {
      flow.verifier = verifier;
    },
    codeVerifier: () => flow.verifier ?? "",
    saveDiscoveryState(discovery) {
      flow.discovery = discovery;
    },
    discoveryState: () => flow.discovery,
    async invalidateCredentials(what) {
      if (what === "all" || what === "discovery") delete flow.discovery;
      if (what === "verifier" || what === "discovery") return;
      await store.change((kept) => withoutCredentials(kept, what, flow.lastUsed));
    },
    ...(isByItself && { prepareTokenRequest: clientCredentials, ...signing(settings, store) }),
  };
}

async function secretMissing({ name }: McpServerConfig, way: Way): Promise<Error> {
  if (way.redirectUrl === NO_REDIRECT) return signInNeeded(name);
  return new TroupeError("usage", `The client of ${name} signs in with a secret, and none is stored.`, {
    hint: `Set TROUPE_MCP_CLIENT_SECRET and run: troupe mcp login ${name}`,
  });
}

function signing({ clientId }: McpOAuthSettings, store: SignInStore) {
  const secret = store.read()?.clientSecret;
  return (
    clientId !== undefined && isPrivateKey(secret) && { addClientAuthentication: signedRequests(clientId, secret) }
  );
}

const clientCredentials = (scope?: string): URLSearchParams =>
  new URLSearchParams({ grant_type: "client_credentials", ...(scope && { scope }) });

/** Returns the configured client; otherwise the registered one, if it may use this redirect address. */
function clientOf(settings: McpOAuthSettings, kept: SignIn | undefined, way: Way): SignIn["client"] {
  const { client, clientSecret } = kept ?? {};
  if (settings.clientId === undefined) {
    const redirectUrls = client?.redirect_uris;
    const isStale =
      way.redirectUrl !== NO_REDIRECT && Array.isArray(redirectUrls) && !redirectUrls.includes(way.redirectUrl);
    return isStale ? undefined : client;
  }
  const isKept = client?.client_id === settings.clientId;
  return {
    client_id: settings.clientId,
    ...(isKept && client.issuer !== undefined && { issuer: client.issuer }),
    ...(clientSecret !== undefined && settings.publicClient !== true && { client_secret: clientSecret }),
  };
}

/**
 * Binds a configured client to the first issuer it is used with. Throws for another issuer, so that its secret is never
 * sent there.
 */
async function boundClient(client: NonNullable<SignIn["client"]>, issuer: string, { config, store }: SignInOptions) {
  if (client.issuer === issuer) return client;
  if (client.issuer !== undefined) {
    const message = `${config.name} now wants a sign-in at ${issuer}, and its client belongs to ${client.issuer}.`;
    throw new TroupeError("failed", message, {
      hint: `If that is right: troupe mcp logout ${config.name}, then login.`,
    });
  }
  await store.change((kept) => ({ ...kept, client: { client_id: client.client_id, issuer } }));
  return { ...client, issuer };
}

/** Drops the secret of a configured client, which is stored separately. */
function withoutSecret(
  client: NonNullable<SignIn["client"]>,
  { clientId }: McpOAuthSettings,
): SignIn["client"] & object {
  if (clientId === undefined) return client;
  return { client_id: client.client_id, ...defined({ issuer: client.issuer }) };
}

/** Removes credentials. Keeps tokens that another process renewed after the ones that failed here. */
function withoutCredentials(kept: Partial<SignIn>, what: "all" | "client" | "tokens", lastUsed: string | undefined) {
  const { client, tokens, ...rest } = kept;
  const isRenewed = tokens?.refresh_token !== undefined && tokens.refresh_token !== lastUsed;
  return {
    ...rest,
    ...(what === "tokens" && client !== undefined && { client }),
    ...((what === "client" || (what === "tokens" && isRenewed)) && tokens !== undefined && { tokens }),
  };
}

/** Returns the error that the connection reports as "needs-auth". */
export async function signInNeeded(serverName: string): Promise<Error> {
  const { UnauthorizedError } = await import("@modelcontextprotocol/client");
  return new UnauthorizedError(`${serverName} needs a sign-in: troupe mcp login ${serverName}`);
}

function signInError({ name }: McpServerConfig, cause: unknown): TroupeError {
  return new TroupeError("failed", `Could not sign in to ${name}: ${messageOf(cause)}`, { cause });
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error)).slice(0, 500);

function deferredAbort(signal: AbortSignal): { promise: Promise<never>; done(): void } {
  let stop = (): void => undefined;
  const promise = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
  });
  promise.catch(() => undefined);
  return { promise, done: () => signal.removeEventListener("abort", stop) };
}
