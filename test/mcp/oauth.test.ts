import { generateKeyPairSync } from "node:crypto";
import { readdirSync, statSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { join } from "node:path";
import {
  Client,
  type FetchLike,
  type OAuthClientProvider,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";
import { login, sessionSignIn } from "../../src/tools/mcp/oauth/oauth.ts";
import { watchRefusals } from "../../src/tools/mcp/oauth/oauth-challenge.ts";
import { hostAuthorisedFetch, type TokenAnswer, type TokenRequest } from "../../src/tools/mcp/oauth/oauth-host.ts";
import { listenForRedirect } from "../../src/tools/mcp/oauth/oauth-listener.ts";
import { fileSignIn, type SignIn, type SignInStore } from "../../src/tools/mcp/oauth/oauth-store.ts";
import type { McpOAuthSettings, McpServerConfig } from "../../src/tools/mcp/server.ts";
import { type OAuthServer, oauthServer } from "./oauth-server.ts";
import { callFirst, stage } from "./stage.ts";

const remote = (url: string, oauth?: McpOAuthSettings): McpServerConfig => ({
  name: "work",
  scope: "user",
  source: "test",
  transport: { type: "http", url, headers: {}, ...(oauth && { oauth }) },
  tools: ["*"],
  timeoutMs: 5000,
});

/** A browser that signs in at once: it follows the redirect back to the listener. */
const browser = (url: URL): void => {
  void fetch(url).then((response) => response.text());
};

interface Signing {
  readonly onAuthorize?: (url: URL) => void;
  readonly clientSecret?: string;
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

const signIn = (config: McpServerConfig, store: SignInStore, more: Signing = {}) =>
  login({ config, store, fetch, onAuthorize: browser, signal: new AbortController().signal, ...more });

async function connected(
  server: OAuthServer,
  options: { authProvider?: OAuthClientProvider; fetch?: FetchLike },
): Promise<Client> {
  const client = new Client({ name: "test", version: "1" });
  onTestFinished(() => client.close().catch(() => undefined));
  await client.connect(new StreamableHTTPClientTransport(new URL(server.url), options));
  return client;
}

const whoami = async (client: Client) => (await client.callTool({ name: "whoami", arguments: {} })).content;
const YOU = [{ type: "text", text: "you" }];

const onDisk = (folder: TempFolder, config: McpServerConfig): SignInStore =>
  fileSignIn({ disk: nodeDisk, stateRoot: folder.path, config });

function memorySignIn({ transport }: McpServerConfig): SignInStore {
  const serverUrl = transport.type === "stdio" ? "" : transport.url;
  let kept: SignIn | undefined;
  return {
    read: () => kept,
    async change(edit) {
      kept = { ...edit(kept ?? {}), serverUrl };
    },
    async remove() {
      const wasThere = kept !== undefined;
      kept = undefined;
      return wasThere;
    },
  };
}

describe("signing in", () => {
  it("an MCP sign-in registers, uses PKCE, and stores tokens for the owner only and for later sessions", async () => {
    await using folder = await tempFolder();
    const server = await oauthServer();
    const config = remote(server.url);
    expect(await signIn(config, onDisk(folder, config))).toBe("signed-in");
    expect(server.asked).toEqual(["register", "authorize base", "token authorization_code"]);
    const [file = ""] = readdirSync(folder.at("mcp-oauth"));
    expect(file).toMatch(/^[0-9a-f]{32}\.json$/);
    expect(
      [folder.at("mcp-oauth"), join(folder.at("mcp-oauth"), file)].map((path) => statSync(path).mode & 0o777),
    ).toEqual([0o700, 0o600]);
    const client = await connected(server, { authProvider: sessionSignIn({ config, store: onDisk(folder, config) }) });
    expect(await whoami(client)).toEqual(YOU);
    expect(server.asked.filter((what) => what.startsWith("token"))).toEqual(["token authorization_code"]);
  });

  it("an MCP sign-in is not needed for a public server", async () => {
    const server = await oauthServer();
    server.isProtected = false;
    const config = remote(server.url);
    expect(await signIn(config, memorySignIn(config))).toBe("not-needed");
    expect(server.asked).toContain("mcp tools/list");
    expect(server.asked.filter((what) => !what.startsWith("mcp "))).toEqual([]);
  });

  it("an MCP sign-in works for a server that allows initialize without a token and refuses the listing", async () => {
    const server = await oauthServer();
    server.open = ["server/discover", "initialize", "notifications/initialized"];
    const config = remote(server.url);
    expect(await signIn(config, memorySignIn(config))).toBe("signed-in");
    expect(server.asked).toContain("authorize base");
  });

  it("an MCP sign-in works for a server that refuses only calls, once a session was refused", async () => {
    const server = await oauthServer();
    server.open = ["server/discover", "initialize", "notifications/initialized", "tools/list"];
    await using mcp = stage({ limits: { backoffMs: 1 }, authProvider: (config) => sessionSignIn({ config, store }) });
    const config = remote(server.url);
    const store = memorySignIn(config);
    expect(await signIn(config, store)).toBe("not-needed");
    const session = mcp.use(config);
    await expect(callFirst(session, {})).rejects.toThrow("troupe mcp login work");
    expect(store.read()?.refusal).toMatchObject({ scope: "base" });
    expect(await signIn(config, store)).toBe("signed-in");
    expect(store.read()?.refusal).toBeUndefined();
    expect(await callFirst(session, {})).toContain("you");
  });

  it("an MCP sign-in is not lost when a refusal contains text that cannot be stored", async () => {
    const config = remote("http://127.0.0.1:1/mcp");
    await using folder = await tempFolder();
    const store = onDisk(folder, config);
    await store.change((kept) => ({ ...kept, tokens: { access_token: "a", token_type: "Bearer" } }));
    for (const scope of ["", "x".repeat(100_000)]) {
      const response = new Response(null, { status: 401, headers: { "www-authenticate": `Bearer scope="${scope}"` } });
      const { onRefused } = sessionSignIn({ config, store });
      await watchRefusals(async () => response, "http://127.0.0.1:1/mcp", onRefused)("http://127.0.0.1:1/mcp");
    }
    expect(store.read()).toMatchObject({ tokens: { access_token: "a" }, refusal: {} });
  });

  it.each([
    { refreshes: false, reason: /refuses the scope base write.*does not help/ },
    { refreshes: true, reason: /403 insufficient_scope/ },
  ])(
    "an MCP sign-in is not requested again for a scope that is still refused (refresh token: $refreshes)",
    async (is) => {
      const server = await oauthServer();
      Object.assign(server, { requiredScope: "write", refusesScope: true, refreshes: is.refreshes });
      await using mcp = stage({ limits: { backoffMs: 1 }, authProvider: (config) => sessionSignIn({ config, store }) });
      const config = remote(server.url);
      const store = memorySignIn(config);
      await signIn(config, store);
      const session = mcp.use(config);
      await expect(callFirst(session, {})).rejects.toThrow("troupe mcp login work");
      await signIn(config, store);
      await expect(callFirst(session, {})).rejects.toThrow(is.reason);
      expect(server.asked.filter((what) => what.startsWith("authorize"))).toEqual([
        "authorize base",
        "authorize base write",
      ]);
    },
  );

  it("an MCP sign-in works with a given client id, without registration", async () => {
    const server = await oauthServer();
    server.clients.set("mine", {});
    const config = remote(server.url, { clientId: "mine", publicClient: true });
    const store = memorySignIn(config);
    expect(await signIn(config, store)).toBe("signed-in");
    expect(server.asked).toEqual(["authorize base", "token authorization_code"]);
    expect(store.read()?.client).toEqual({ client_id: "mine", issuer: server.origin });
  });

  it("an MCP sign-in uses the address of the client's metadata as its id where one is configured", async () => {
    const server = await oauthServer();
    const clientMetadataUrl = "https://tools.example.com/client.json";
    server.clients.set(clientMetadataUrl, {});
    const config = remote(server.url, { clientMetadataUrl });
    const store = memorySignIn(config);
    expect(await signIn(config, store)).toBe("signed-in");
    expect(server.asked).not.toContain("register");
    const client = await connected(server, { authProvider: sessionSignIn({ config, store }) });
    expect(await whoami(client)).toEqual(YOU);
  });

  it("an MCP sign-in is required, without a token request, while the client secret is unknown", async () => {
    const server = await oauthServer();
    server.clients.set("robot", { secret: "s3cret" });
    const config = remote(server.url, { clientId: "robot", grantType: "client_credentials" });
    const store = memorySignIn(config);
    const session = connected(server, { authProvider: sessionSignIn({ config, store }) });
    await expect(session).rejects.toThrow("troupe mcp login work");
    await expect(signIn(config, store)).rejects.toThrow(/signs in with a secret, and none is stored/);
    expect(server.asked).toEqual([]);
  });

  it("an MCP client with a secret signs in without a user, also when its token has expired", async () => {
    await using folder = await tempFolder();
    const server = await oauthServer();
    server.clients.set("robot", { secret: "s3cret" });
    const config = remote(server.url, { clientId: "robot", grantType: "client_credentials" });
    const store = onDisk(folder, config);
    const onAuthorize = vi.fn();
    expect(await signIn(config, store, { onAuthorize, clientSecret: "s3cret" })).toBe("signed-in");
    const client = await connected(server, { authProvider: sessionSignIn({ config, store }) });
    server.expire();
    expect(await whoami(client)).toEqual(YOU);
    expect(server.asked.filter((what) => what.startsWith("token"))).toEqual(Array(2).fill("token client_credentials"));
    expect(onAuthorize).not.toHaveBeenCalled();
    const [file = ""] = Object.values(await folder.tree());
    expect(file.split("s3cret")).toHaveLength(2);
  });

  it("an MCP client with a private key signs its requests and sends no secret", async () => {
    const server = await oauthServer();
    const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    server.clients.set("robot", { key: publicKey });
    const config = remote(server.url, { clientId: "robot", grantType: "client_credentials" });
    const store = memorySignIn(config);
    const clientSecret = privateKey.export({ type: "sec1", format: "pem" }).toString();
    expect(await signIn(config, store, { clientSecret })).toBe("signed-in");
    const client = await connected(server, { authProvider: sessionSignIn({ config, store }) });
    server.expire();
    expect(await whoami(client)).toEqual(YOU);
    const broken = "-----BEGIN PRIVATE KEY-----\nnonsense\n-----END PRIVATE KEY-----";
    await expect(signIn(config, memorySignIn(config), { clientSecret: broken })).rejects.toThrow(/key.*cannot be used/);
  });

  it("an MCP client sends its secret to the issuer it was first used with, and to no other", async () => {
    const server = await oauthServer();
    const other = await oauthServer();
    server.clients.set("robot", { secret: "s3cret" });
    const config = remote(server.url, { clientId: "robot", grantType: "client_credentials" });
    const store = memorySignIn(config);
    await signIn(config, store, { clientSecret: "s3cret" });
    server.issuer = other.origin;
    await expect(signIn(config, store)).rejects.toThrow(/now wants a sign-in at .*, and its client belongs to/);
    expect(other.asked).toEqual([]);
  });

  it("an MCP sign-in registers again when the redirect address changes", async () => {
    const server = await oauthServer();
    const config = remote(server.url);
    const store = memorySignIn(config);
    await signIn(config, store);
    await signIn(config, store);
    expect(server.asked.filter((what) => what === "register")).toHaveLength(2);
  });

  it("an MCP sign-in ends with a reason when it is refused, comes too late or is given up", async () => {
    const server = await oauthServer();
    const config = remote(server.url);
    const refusing = (url: URL): void => {
      const back = new URL(url.searchParams.get("redirect_uri") ?? "");
      back.searchParams.set("state", url.searchParams.get("state") ?? "");
      back.searchParams.set("error", "access_denied");
      back.searchParams.set("error_description", "not\u001b[2J you\n");
      browser(back);
    };
    const attempt = (more: Signing) => signIn(config, memorySignIn(config), more);
    await expect(attempt({ onAuthorize: refusing })).rejects.toThrow("the server answered: access_denied: not you");
    await expect(attempt({ onAuthorize: () => undefined, timeoutMs: 30 })).rejects.toThrow(
      "the sign-in was not completed within",
    );
    const controller = new AbortController();
    const given = attempt({ onAuthorize: () => controller.abort(new Error("enough")), signal: controller.signal });
    await expect(given).rejects.toThrow("enough");
  });

  it("an MCP sign-in reports a server that cannot be reached", async () => {
    const config = remote("http://127.0.0.1:1/mcp");
    await expect(signIn(config, memorySignIn(config))).rejects.toThrow("http://127.0.0.1:1/mcp cannot be reached");
  });
});

describe("a session", () => {
  it("a session refreshes an expired MCP token automatically and stores the new one", async () => {
    await using folder = await tempFolder();
    const server = await oauthServer();
    const config = remote(server.url);
    const store = onDisk(folder, config);
    await signIn(config, store);
    const client = await connected(server, { authProvider: sessionSignIn({ config, store }) });
    server.expire();
    const before = store.read()?.tokens;
    expect(await whoami(client)).toEqual(YOU);
    expect(server.asked).toContain("token refresh_token");
    expect(onDisk(folder, config).read()?.tokens?.access_token).not.toBe(before?.access_token);
  });

  it("a session without an MCP sign-in names the command to run, and registers nothing", async () => {
    const server = await oauthServer();
    const config = remote(server.url);
    const authProvider = sessionSignIn({ config, store: memorySignIn(config) });
    const attempt = connected(server, { authProvider });
    await expect(attempt).rejects.toMatchObject({
      name: "UnauthorizedError",
      message: "work needs a sign-in: troupe mcp login work",
    });
    expect(server.asked).toEqual([]);
  });

  it("a session whose MCP token refresh is refused needs a sign-in again", async () => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);
    onTestFinished(() => warn.mockRestore());
    const server = await oauthServer();
    const config = remote(server.url);
    const store = memorySignIn(config);
    await signIn(config, store);
    server.expire();
    server.revokeRefreshTokens();
    const attempt = connected(server, { authProvider: sessionSignIn({ config, store }) });
    await expect(attempt).rejects.toThrow("troupe mcp login work");
    expect(store.read()?.tokens).toBeUndefined();
  });

  it("a session keeps MCP tokens that another process has just renewed", async () => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);
    onTestFinished(() => warn.mockRestore());
    const server = await oauthServer();
    const config = remote(server.url);
    const store = memorySignIn(config);
    await signIn(config, store);
    const other = memorySignIn(config);
    await other.change(() => store.read() ?? {});
    server.expire();
    expect(await whoami(await connected(server, { authProvider: sessionSignIn({ config, store: other }) }))).toEqual(
      YOU,
    );
    const stale = store.read();
    let looks = 0;
    const raced: SignInStore = { ...other, read: () => (looks++ < 3 ? stale : other.read()) };
    expect(await whoami(await connected(server, { authProvider: sessionSignIn({ config, store: raced }) }))).toEqual(
      YOU,
    );
    expect(other.read()?.tokens).toBeDefined();
  });

  it("a session that needs a wider MCP scope needs a sign-in, which then requests it", async () => {
    const server = await oauthServer();
    const config = remote(server.url);
    const store = memorySignIn(config);
    await signIn(config, store);
    server.requiredScope = "write";
    const client = await connected(server, { authProvider: sessionSignIn({ config, store }) });
    await expect(whoami(client)).rejects.toThrow("troupe mcp login work");
    await signIn(config, store);
    expect(server.asked.filter((what) => what.startsWith("authorize"))).toEqual([
      "authorize base",
      "authorize base write",
    ]);
    expect(await whoami(client)).toEqual(YOU);
  });

  it("an MCP server of the same name at another address gets no tokens", async () => {
    await using folder = await tempFolder();
    const server = await oauthServer();
    const config = remote(server.url);
    await signIn(config, onDisk(folder, config));
    expect(onDisk(folder, remote("https://evil.example/mcp")).read()).toBeUndefined();
    expect(await onDisk(folder, config).remove()).toBe(true);
    expect([onDisk(folder, config).read(), await onDisk(folder, config).remove()]).toEqual([undefined, false]);
  });
});

describe("the address to come back to", () => {
  it("the redirect address accepts only the browser with the right state, once", async () => {
    const listener = await listenForRedirect({ state: "right", timeoutMs: 5000 });
    const visit = async (path: string, init?: RequestInit) => (await fetch(new URL(path, listener.url), init)).status;
    expect(listener.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/callback$/);
    expect([
      await visit("/callback?code=evil&state=wrong"),
      await visit("/callback?code=evil"),
      await visit("/callback?error=stop&state=wrong"),
      await visit("/other?code=evil&state=right"),
      await visit("/callback?code=evil&state=right", { method: "POST" }),
      await rebound(listener.url),
      await visit("/callback?code=good&state=right&iss=me"),
    ]).toEqual([400, 400, 400, 404, 405, 421, 200]);
    expect(await listener.arrival).toEqual({ code: "good", iss: "me" });
    await expect(visit("/callback?code=later&state=right")).rejects.toThrow();
  });
});

/** As a page of another site would reach it whose name points here. */
function rebound(url: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(`${url}?code=evil&state=right`, { headers: { host: "evil.example" } }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    sent.on("error", reject).end();
  });
}

describe("tokens of the host program", () => {
  function host(server: OAuthServer, answer: (request: TokenRequest) => TokenAnswer) {
    const requests: TokenRequest[] = [];
    const config = remote(server.url);
    const requestToken = async (request: TokenRequest): Promise<TokenAnswer> => {
      requests.push(request);
      return answer(request);
    };
    return { requests, fetch: hostAuthorisedFetch({ config, fetch, requestToken }) };
  }

  /** A token as the authorization server gives it, by a sign-in of its own. */
  async function tokenWith(server: OAuthServer, scope = "base"): Promise<string> {
    const config = remote(server.url);
    const store = memorySignIn(config);
    await store.change(() => ({ wantedScope: scope }));
    await signIn(config, store);
    return store.read()?.tokens?.access_token ?? "";
  }

  it("MCP tokens are requested from the host with a reason: initial, refresh, upscope, refresh, reauth", async () => {
    const server = await oauthServer();
    const good = await tokenWith(server);
    const fresh: Record<string, string> = { initial: good, upscope: "", refresh: "", reauth: "" };
    const { requests, fetch } = host(server, ({ reason }) => ({ kind: "token", accessToken: fresh[reason] ?? "" }));
    const client = await connected(server, { fetch });
    expect(await whoami(client)).toEqual(YOU);
    server.expire();
    fresh.refresh = await tokenWith(server);
    expect(await whoami(client)).toEqual(YOU);
    server.requiredScope = "write";
    fresh.upscope = await tokenWith(server, "base write");
    expect(await whoami(client)).toEqual(YOU);
    server.expire();
    fresh.refresh = "still-not-good";
    fresh.reauth = await tokenWith(server, "base write");
    expect(await whoami(client)).toEqual(YOU);
    expect(requests.map(({ reason }) => reason)).toEqual(["initial", "refresh", "upscope", "refresh", "reauth"]);
    const metadata = `${server.origin}/.well-known/oauth-protected-resource/mcp`;
    expect(requests[0]).toEqual({
      serverName: "work",
      serverUrl: server.url,
      reason: "initial",
      wwwAuthenticateParams: { resourceMetadataUrl: metadata, scope: "base" },
      resourceMetadata: JSON.stringify({ resource: server.url, authorization_servers: [server.origin] }),
    });
    expect(requests[2]?.wwwAuthenticateParams).toEqual({
      resourceMetadataUrl: metadata,
      scope: "write",
      error: "insufficient_scope",
    });
  });

  it.each<[string, TokenAnswer]>([
    ["cancels", { kind: "cancelled" }],
    ["brings what no header can carry", { kind: "token", accessToken: "a\r\nx: y" }],
  ])("an MCP server needs a sign-in when the host %s", async (_, answer) => {
    const server = await oauthServer();
    const { requests, fetch } = host(server, () => answer);
    await expect(connected(server, { fetch })).rejects.toThrow("work needs a sign-in");
    expect(requests).toHaveLength(1);
  });

  it("a missing MCP token with a wider scope fails the call, not the server", async () => {
    const server = await oauthServer();
    const accessToken = await tokenWith(server);
    const { requests, fetch } = host(server, ({ reason }) =>
      reason === "upscope" ? { kind: "cancelled" } : { kind: "token", accessToken },
    );
    const client = await connected(server, { fetch });
    server.requiredScope = "write";
    await expect(whoami(client)).rejects.toThrow(/Insufficient scope/);
    server.requiredScope = undefined;
    expect(await whoami(client)).toEqual(YOU);
    expect(requests.map(({ reason }) => reason)).toEqual(["initial", "upscope"]);
  });

  it("MCP tokens that are not valid are requested from the host only twice", async () => {
    const server = await oauthServer();
    const { requests, fetch } = host(server, () => ({ kind: "token", accessToken: "bad" }));
    await expect(connected(server, { fetch })).rejects.toThrow();
    expect(requests.map(({ reason }) => reason)).toEqual(["initial", "reauth"]);
  });

  it("MCP tokens are requested once for several refused requests, and are sent only to the server", async () => {
    const server = await oauthServer();
    const other = await oauthServer();
    other.isProtected = true;
    const accessToken = await tokenWith(server);
    const { requests, fetch } = host(server, () => ({ kind: "token", accessToken }));
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
    const post = async (url: string) => (await fetch(url, { method: "POST", body })).status;
    expect(await Promise.all([post(server.url), post(server.url), post(server.url)])).toEqual([200, 200, 200]);
    expect(requests).toHaveLength(1);
    const elsewhere = await fetch(other.url, { method: "POST", body });
    expect(elsewhere.headers.get("www-authenticate")).not.toContain("invalid_token");
  });
});
