/** A small MCP server behind a small authorization server, both on one loopback address, strict about what they are told. */
import { createHash, type KeyObject, verify } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

export interface OAuthServer {
  readonly url: string;
  readonly origin: string;
  /** What was asked of it, in order: "register", "authorize a b", "token authorization_code", "mcp initialize". */
  readonly asked: string[];
  /** Registered clients and those known from the start, with their secrets. */
  readonly clients: Map<string, { redirectUris?: readonly string[]; secret?: string; key?: KeyObject }>;
  /** From now on these access tokens are refused. */
  expire(): void;
  revokeRefreshTokens(): void;
  /** Scope a call needs beyond being signed in. */
  requiredScope: string | undefined;
  /** Whom it names as its authorization server; itself unless set. */
  issuer: string | undefined;
  /** False: everyone is served. */
  isProtected: boolean;
  /** Methods that everyone may call although it is protected. */
  open: readonly string[];
  /** A scope that is refused even to clients that have it. */
  refusesScope: boolean;
  /** Whether tokens come with a refresh token. */
  refreshes: boolean;
}

interface Grant {
  readonly clientId: string;
  readonly scope: string;
}

export async function oauthServer(): Promise<OAuthServer> {
  const codes = new Map<string, Grant & { challenge: string; redirectUri: string }>();
  const access = new Map<string, Grant>();
  const refresh = new Map<string, Grant>();
  let count = 0;
  const state: OAuthServer = {
    url: "",
    origin: "",
    asked: [],
    clients: new Map(),
    expire: () => access.clear(),
    revokeRefreshTokens: () => refresh.clear(),
    requiredScope: undefined,
    issuer: undefined,
    isProtected: true,
    open: [],
    refusesScope: false,
    refreshes: true,
  };

  const routes: Record<string, (call: Call) => void> = {
    "/.well-known/oauth-protected-resource/mcp": ({ json }) =>
      json(200, { resource: state.url, authorization_servers: [state.issuer ?? state.origin] }),
    "/.well-known/oauth-authorization-server": ({ json }) =>
      json(200, {
        issuer: state.origin,
        authorization_endpoint: `${state.origin}/authorize`,
        token_endpoint: `${state.origin}/token`,
        registration_endpoint: `${state.origin}/register`,
        response_types_supported: ["code"],
        code_challenge_methods_supported: ["S256"],
        authorization_response_iss_parameter_supported: true,
        token_endpoint_auth_methods_supported: ["none", "client_secret_basic"],
        client_id_metadata_document_supported: true,
      }),
    "/register"({ body, json }) {
      const { redirect_uris } = JSON.parse(body);
      const client_id = `client-${++count}`;
      state.asked.push("register");
      state.clients.set(client_id, { redirectUris: redirect_uris });
      json(201, { client_id, redirect_uris });
    },
    "/authorize"({ query, response, json }) {
      const client = state.clients.get(query.get("client_id") ?? "");
      const redirectUri = query.get("redirect_uri") ?? "";
      const isKnown = client && (client.redirectUris === undefined || client.redirectUris.includes(redirectUri));
      if (!isKnown || query.get("code_challenge_method") !== "S256" || query.get("resource") !== state.url)
        return json(400, { error: "invalid_request" });
      state.asked.push(`authorize ${query.get("scope") ?? "-"}`);
      const code = `code-${++count}`;
      const grant = { clientId: query.get("client_id") ?? "", scope: query.get("scope") ?? "" };
      codes.set(code, { ...grant, challenge: query.get("code_challenge") ?? "", redirectUri });
      const back = new URL(redirectUri);
      for (const [name, value] of Object.entries({ code, state: query.get("state") ?? "", iss: state.origin }))
        back.searchParams.set(name, value);
      response.writeHead(302, { location: back.href }).end();
    },
    "/token"({ body, request, json }) {
      const form = new URLSearchParams(body);
      const type = form.get("grant_type");
      state.asked.push(`token ${type}`);
      const grant = type === "client_credentials" ? byItself(request, form) : granted(form);
      if (grant === undefined) return json(400, { error: "invalid_grant" });
      const [token, next] = [`access-${++count}`, `refresh-${++count}`];
      access.set(token, grant);
      if (type !== "client_credentials") refresh.set(next, grant);
      const more = type === "client_credentials" || !state.refreshes ? {} : { refresh_token: next };
      json(200, { access_token: token, token_type: "Bearer", expires_in: 3600, scope: grant.scope, ...more });
    },
    "/mcp"({ body, request, response, json }) {
      if (request.method !== "POST") return void response.writeHead(405).end();
      const call = JSON.parse(body);
      const grant = access.get((request.headers.authorization ?? "").replace("Bearer ", ""));
      const metadata = `resource_metadata="${state.origin}/.well-known/oauth-protected-resource/mcp"`;
      const refuse = (status: number, error: string): void =>
        void response.writeHead(status, { "www-authenticate": `Bearer ${error}${metadata}` }).end();
      if (state.isProtected && !grant && !state.open.includes(call.method)) {
        const isStale = request.headers.authorization !== undefined;
        return refuse(401, isStale ? 'error="invalid_token", ' : 'scope="base", ');
      }
      const hasScope = grant?.scope.split(" ").includes(state.requiredScope ?? "") && !state.refusesScope;
      const needsMore = state.requiredScope && !hasScope;
      if (call.method === "tools/call" && needsMore)
        return refuse(403, `error="insufficient_scope", scope="${state.requiredScope}", `);
      state.asked.push(`mcp ${call.method}`);
      if (call.id === undefined) return void response.writeHead(202).end();
      json(200, { jsonrpc: "2.0", id: call.id, ...answerTo(call) });
    },
  };

  function granted(form: URLSearchParams): Grant | undefined {
    if (form.get("grant_type") === "refresh_token") {
      const token = form.get("refresh_token") ?? "";
      const grant = refresh.get(token);
      refresh.delete(token); // each is good once
      return grant?.clientId === form.get("client_id") ? grant : undefined;
    }
    const code = codes.get(form.get("code") ?? "");
    codes.delete(form.get("code") ?? "");
    const challenge = createHash("sha256")
      .update(form.get("code_verifier") ?? "")
      .digest("base64url");
    const fits = code?.challenge === challenge && code.redirectUri === form.get("redirect_uri");
    return fits && code.clientId === form.get("client_id") ? code : undefined;
  }

  function byItself(request: IncomingMessage, form: URLSearchParams): Grant | undefined {
    if (form.get("client_assertion") !== null) return signed(form);
    const [clientId = "", secret] = Buffer.from((request.headers.authorization ?? "").replace("Basic ", ""), "base64")
      .toString()
      .split(":");
    const isKnown = secret !== undefined && state.clients.get(clientId)?.secret === secret;
    return isKnown ? { clientId, scope: form.get("scope") ?? "" } : undefined;
  }

  /** By a token that the client signed with its key. */
  function signed(form: URLSearchParams): Grant | undefined {
    const [head = "", body = "", signature = ""] = (form.get("client_assertion") ?? "").split(".");
    const { iss: clientId, aud } = JSON.parse(Buffer.from(body, "base64url").toString());
    const key = state.clients.get(clientId)?.key;
    const bytes = Buffer.from(`${head}.${body}`);
    const isGood =
      key && verify("sha256", bytes, { key, dsaEncoding: "ieee-p1363" }, Buffer.from(signature, "base64url"));
    return isGood && aud === state.origin ? { clientId, scope: form.get("scope") ?? "" } : undefined;
  }

  const origin = await serve(routes);
  return Object.assign(state, { origin, url: `${origin}/mcp` });
}

function answerTo({ method, params }: { method: string; params?: { protocolVersion?: string } }): object {
  switch (method) {
    case "initialize": {
      const { protocolVersion } = params ?? {};
      return { result: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "t", version: "1" } } };
    }
    case "tools/list":
      return { result: { tools: [{ name: "whoami", description: "Who?", inputSchema: { type: "object" } }] } };
    case "tools/call":
      return { result: { content: [{ type: "text", text: "you" }] } };
    default:
      return { error: { code: -32601, message: "no" } };
  }
}

interface Call {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly query: URLSearchParams;
  readonly body: string;
  json(status: number, value: object): void;
}

async function serve(routes: Record<string, (call: Call) => void>): Promise<string> {
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const { pathname, searchParams: query } = new URL(request.url ?? "", "http://localhost");
    const json = (status: number, value: object): void =>
      void response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    const route = routes[pathname];
    if (route) route({ request, response, query, body, json });
    else json(404, {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
