import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { McpServer as FirstServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { SSEServerTransport } from "@modelcontextprotocol/sdk/server/sse.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import {
  acceptedContent,
  createMcpHandler,
  inputRequired,
  McpServer as SecondServer,
} from "@modelcontextprotocol/server";
import { afterAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { deferred } from "../../src/lib/deferred.ts";
import { guardedFetch } from "../../src/tools/mcp/guarded-fetch.ts";
import { dialAddresses, httpEndpoint } from "../../src/tools/mcp/http-endpoint.ts";
import type { TokenAnswer, TokenSource } from "../../src/tools/mcp/oauth/oauth-host.ts";
import type { McpServerConfig } from "../../src/tools/mcp/server.ts";
import { callFirst, never, remoteConfig, run, stage, toolsOf } from "./stage.ts";

const mcp = stage({ limits: { backoffMs: 1 } });
const listeners: { close(): void; closeAllConnections(): void }[] = [];
afterAll(async () => {
  await mcp.close();
  for (const listener of listeners) {
    listener.closeAllConnections();
    listener.close();
  }
});

async function listen(handler: RequestListener): Promise<string> {
  const listener = createServer(handler);
  listeners.push(listener);
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(listener.address() as AddressInfo).port}`;
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
}

const text = (words: string) => ({ content: [{ type: "text" as const, text: words }] });

function firstServer(): FirstServer {
  const server = new FirstServer({ name: "first", version: "1" });
  server.registerTool("echo", { description: "Echo", inputSchema: { words: z.string() } }, async ({ words }) =>
    text(words),
  );
  return server;
}

/** The URL of a server of the new era. */
async function listenModern(register: (server: SecondServer) => void): Promise<string> {
  const handler = toNodeHandler(
    createMcpHandler(() => {
      const server = new SecondServer({ name: "second", version: "2" });
      register(server);
      return server;
    }),
  );
  const url = await listen((request, response) => {
    void handler(request as Parameters<typeof handler>[0], response);
  });
  return `${url}/mcp`;
}

/** Answers like a server of the first era, with a body of the test's choice for a call. */
function scriptedHttp(
  onCall: (id: number) => { status?: number; headers?: Record<string, string>; body: string },
): RequestListener {
  return async (request, response) => {
    if (request.method !== "POST") return void response.writeHead(405).end();
    const { id, method } = JSON.parse(await bodyOf(request));
    const json = (result: unknown): void =>
      void response
        .writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify({ jsonrpc: "2.0", id, result }));
    if (id === undefined) return void response.writeHead(202).end();
    if (method === "initialize")
      return json({
        protocolVersion: "2025-11-25",
        capabilities: { tools: {} },
        serverInfo: { name: "s", version: "1" },
      });
    if (method === "tools/list") return json({ tools: [{ name: "echo", inputSchema: { type: "object" } }] });
    if (method !== "tools/call") return void response.writeHead(400).end();
    const { status = 200, headers = { "content-type": "application/json" }, body } = onCall(id);
    response.writeHead(status, headers).end(body);
  };
}

describe("remote MCP servers", () => {
  it("remote MCP servers of the second SDK work with the new protocol", async () => {
    const seen: (string | undefined)[] = [];
    const handler = toNodeHandler(
      createMcpHandler(() => {
        const server = new SecondServer({ name: "second", version: "2" });
        server.registerTool(
          "echo",
          { description: "Echo", inputSchema: z.object({ words: z.string() }) },
          async ({ words }) => text(words),
        );
        return server;
      }),
    );
    const url = await listen((request, response) => {
      seen.push(request.headers["x-key"]?.toString());
      void handler(request as Parameters<typeof handler>[0], response);
    });
    const config = remoteConfig(`${url}/mcp`);
    const server = mcp.use({ ...config, transport: { type: "http", url: `${url}/mcp`, headers: { "X-Key": "k" } } });
    expect(await callFirst(server)).toMatch(/hello$/);
    expect(new Set(seen)).toEqual(new Set(["k"]));
  });

  it("a remote MCP tool with an invalid x-mcp-header is not listed, and is named", async () => {
    const plain = (header?: string) => z.object({ where: z.string().meta(header ? { "x-mcp-header": header } : {}) });
    const url = await listenModern((server) => {
      server.registerTool("good", { inputSchema: plain("Region") }, async () => text("good"));
      server.registerTool("bad", { inputSchema: plain("My Region") }, async () => text("bad"));
    });
    const notices: string[] = [];
    const server = mcp.use(remoteConfig(url), { onNotice: (_name, notice) => void notices.push(notice) });
    expect((await server.definitions(never())).map(({ name }) => name)).toEqual(["good"]);
    expect(notices).toEqual([
      expect.stringMatching(/the tool bad is left out: x-mcp-header is not a valid header name/),
    ]);
  });

  it("a remote MCP server gets the answer to its question with the state it gave (SEP-2322)", async () => {
    const states: unknown[] = [];
    const url = await listenModern((server) => {
      server.registerTool("book", { inputSchema: z.object({}) }, async (_given, { mcpReq }) => {
        states.push(mcpReq.requestState());
        const answer = acceptedContent(mcpReq.inputResponses, "seat");
        if (answer) return text(`seat ${answer.row}`);
        const requestedSchema = {
          type: "object" as const,
          properties: { row: { type: "integer" as const, default: 7 } },
        };
        const seat = inputRequired.elicit({ message: "Which row?", requestedSchema });
        return inputRequired({ inputRequests: { seat }, requestState: "opaque-1" });
      });
    });
    const server = mcp.use(remoteConfig(url), { elicit: async () => ({ action: "accept", content: {} }) });
    expect(await callFirst(server, {})).toMatch(/seat 7$/);
    expect(states).toEqual([undefined, "opaque-1"]);
  });

  it("remote MCP servers of the first SDK work over streamable HTTP, and are notified of a disconnect", async () => {
    const methods: string[] = [];
    const sessions = new Map<string, StreamableHTTPServerTransport>();
    const url = await listen(async (request, response) => {
      methods.push(request.method ?? "");
      const known = sessions.get(request.headers["mcp-session-id"]?.toString() ?? "");
      if (known) return known.handleRequest(request, response);
      const transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: () => crypto.randomUUID(),
        onsessioninitialized: (id) => void sessions.set(id, transport),
      });
      await firstServer().connect(transport as Parameters<FirstServer["connect"]>[0]);
      await transport.handleRequest(request, response);
    });
    const server = mcp.use(remoteConfig(url));
    expect(await callFirst(server)).toMatch(/hello$/);
    await server.release();
    expect(methods).toContain("DELETE");
  });

  it("remote MCP servers work over SSE", async () => {
    const transports = new Map<string, SSEServerTransport>();
    const url = await listen(async (request, response) => {
      const { pathname, searchParams } = new URL(request.url ?? "", "http://x");
      if (pathname === "/messages")
        return transports.get(searchParams.get("sessionId") ?? "")?.handlePostMessage(request, response);
      const transport = new SSEServerTransport("/messages", response);
      transports.set(transport.sessionId, transport);
      await firstServer().connect(transport);
    });
    expect(await callFirst(mcp.use(remoteConfig(`${url}/sse`, { type: "sse" })))).toMatch(/hello$/);
  });

  it("a remote MCP server that requires a sign-in is reported so, without restarts", async () => {
    const url = await listen(
      (_request, response) => void response.writeHead(401, { "www-authenticate": "Bearer" }).end(),
    );
    const server = mcp.use(remoteConfig(url));
    for (let attempt = 0; attempt < 6; attempt++)
      await expect(server.definitions(never())).rejects.toThrow(
        /asks for a sign-in.*: \/mcp login remote in the session, or troupe mcp login remote/,
      );
    expect(server.state()).toEqual({ status: "needs-auth", error: "asks for a sign-in" });
  });

  it("a remote MCP server that requires a new sign-in during a call is reported so afterwards", async () => {
    let isExpired = false;
    const inner = scriptedHttp((id) => ({ body: JSON.stringify({ jsonrpc: "2.0", id, result: text("fine") }) }));
    const url = await listen((request, response) =>
      isExpired ? void response.writeHead(401).end() : inner(request, response),
    );
    const server = mcp.use(remoteConfig(url, { name: "expiring" }));
    expect(await callFirst(server)).toMatch(/fine$/);
    isExpired = true;
    await expect(callFirst(server)).rejects.toThrow(/expiring asks for a sign-in/);
    expect(server.state().status).toBe("needs-auth");
  });

  it("a remote MCP server does not time out while a host program signs a user in", async () => {
    const inner = scriptedHttp((id) => ({ body: JSON.stringify({ jsonrpc: "2.0", id, result: text("fine") }) }));
    const url = await listen((request, response) =>
      request.headers.authorization === "Bearer t" ? inner(request, response) : void response.writeHead(401).end(),
    );
    await using own = stage({});
    const tokens: TokenSource = {
      owner: "session",
      canAsk: () => true,
      async request() {
        await new Promise((resolve) => setTimeout(resolve, 4_000));
        return { kind: "token", accessToken: "t" };
      },
    };
    expect(await callFirst(own.use(remoteConfig(url, { timeoutMs: 3_000 }), { tokens }))).toMatch(/fine$/);
  });

  it("a remote MCP server that waits for a token does not keep others from connecting", async () => {
    const inner = scriptedHttp((id) => ({ body: JSON.stringify({ jsonrpc: "2.0", id, result: text("fine") }) }));
    const url = await listen((request, response) =>
      request.headers.authorization === "Bearer t" ? inner(request, response) : void response.writeHead(401).end(),
    );
    const open = await listen(inner);
    await using own = stage({ limits: { connectAtOnce: 1 } });
    const asked = deferred<void>();
    const answer = deferred<TokenAnswer>();
    const request = (): Promise<TokenAnswer> => {
      asked.resolve();
      return answer.promise;
    };
    const tokens: TokenSource = { owner: "session", canAsk: () => true, request };
    const waiting = callFirst(own.use(remoteConfig(url), { tokens }));
    await asked.promise;
    expect(await callFirst(own.use(remoteConfig(open, { name: "open" })))).toMatch(/fine$/);
    answer.resolve({ kind: "token", accessToken: "t" });
    expect(await waiting).toMatch(/fine$/);
  });

  it("a remote MCP server that cannot be reached fails with the reason", async () => {
    const url = await listen((_request, response) => void response.destroy());
    await expect(mcp.use(remoteConfig(url)).definitions(never())).rejects.toThrow(
      /remote could not be reached: .*(hang up|ECONNRESET)/,
    );
  });
});

describe("a hostile remote server", () => {
  it("a hostile remote MCP server cannot redirect to another origin, not even to another port", async () => {
    let reached = 0;
    const other = await listen((_request, response) => {
      reached++;
      response.end();
    });
    const url = await listen((_request, response) => void response.writeHead(307, { location: `${other}/mcp` }).end());
    await expect(mcp.use(remoteConfig(url)).definitions(never())).rejects.toThrow(/Redirect to .* not followed/);
    expect(reached).toBe(0);
  });

  it("a remote MCP server may redirect within its origin", async () => {
    const inner = scriptedHttp((id) => ({ body: JSON.stringify({ jsonrpc: "2.0", id, result: text("inner") }) }));
    const url = await listen((request, response) => {
      if (request.url === "/new") return inner(request, response);
      response.writeHead(307, { location: "/new" }).end();
    });
    expect(await callFirst(mcp.use(remoteConfig(`${url}/old`)))).toMatch(/inner$/);
  });

  it.each([
    [
      "a body of 5 MB",
      (id: number) => ({ body: JSON.stringify({ jsonrpc: "2.0", id, result: text("z".repeat(5_000_000)) }) }),
    ],
    [
      "an event of 5 MB",
      () => ({ headers: { "content-type": "text/event-stream" }, body: `data: ${"z".repeat(5_000_000)}` }),
    ],
    ["what is no JSON", () => ({ body: "<html>" })],
    ["the wrong kind", () => ({ headers: { "content-type": "text/html" }, body: "x".repeat(1_000_000) })],
    [
      "an unasked coding",
      () => ({ headers: { "content-type": "application/json", "content-encoding": "gzip" }, body: "{}" }),
    ],
    ["a failure", () => ({ status: 500, body: `no \u001b[31m${"x".repeat(100_000)}` })],
  ])("a hostile remote MCP server fails its own call when it answers with %s", async (_what, answer) => {
    const url = await listen(scriptedHttp(answer));
    const [tool] = await toolsOf(mcp.use(remoteConfig(url, { timeoutMs: 1500 })));
    const failure = await run(tool).then(
      () => undefined,
      (error: Error) => error,
    );
    expect(failure?.name).toBe("ToolError");
    expect(failure?.message.length).toBeLessThan(2000);
    expect(failure?.message).not.toContain("\u001b");
    expect(failure?.message).not.toContain("was silent");
  });
});

describe("the allowed address of a remote server", () => {
  const place = (url: string, overrides: Partial<McpServerConfig> = {}, headers: Record<string, string> = {}) =>
    httpEndpoint({ ...remoteConfig(url, overrides), transport: { type: "http", url, headers } });
  const dial = async (url: string, overrides: Partial<McpServerConfig> = {}) => {
    const where = place(url, overrides);
    return (await dialAddresses(where.url, where)).map(({ address }) => address);
  };

  it("a remote MCP server of the user may have any address, but a project's must be public", async () => {
    expect(await dial("http://127.0.0.1:1/")).toEqual(["127.0.0.1"]);
    expect(await dial("http://10.0.0.1/", { scope: "flag" })).toEqual(["10.0.0.1"]);
    expect((await dial("http://localhost:1/")).length).toBeGreaterThan(0);
    for (const scope of ["project", "plugin"] as const)
      for (const url of [
        "http://127.0.0.1/",
        "http://localhost/",
        "http://[::1]/",
        "http://10.0.0.1/",
        "http://0x7f.1/",
      ])
        await expect(dial(url, { scope })).rejects.toThrow(/allowed only if the user's own settings name them/);
    for (const url of ["http://169.254.169.254/", "http://0.0.0.0/", "http://[::ffff:127.0.0.1]/"])
      await expect(dial(url)).rejects.toThrow(/allowed only if/);
  });

  it("the address of a remote MCP server must be a plain http or https URL", () => {
    expect(() => place("file:///etc/passwd")).toThrow(/only http and https/);
    expect(() => place("ws://example.com")).toThrow(/only http and https/);
    expect(() => place("https://me:secret@example.com")).toThrow(/user name or password/);
    expect(() => place("nonsense")).toThrow(/not complete/);
  });

  it("the address of a remote MCP server gets no headers that would change the request", () => {
    const headers = (given: Record<string, string>) => () => place("https://example.com", {}, given);
    expect(headers({ "X-A": "b\r\nHost: evil" })).toThrow(/characters that a header cannot have/);
    expect(headers({ "X-A\r\nHost": "evil" })).toThrow(/no valid name/);
    expect(headers({ Host: "evil" })).toThrow(/cannot be set/);
    expect(headers({ "Mcp-Session-Id": "stolen" })).toThrow(/cannot be set/);
    expect(headers({ Authorization: "Bearer x" })().headers).toEqual({ Authorization: "Bearer x" });
  });

  it("only the configured address gets the configured headers, and nothing without encryption", async () => {
    const seen: unknown[] = [];
    const answer: RequestListener = (request, response) => {
      seen.push(request.headers.authorization);
      response.end();
    };
    const [own, other] = [await listen(answer), await listen(answer)];
    const { fetch, close } = await guardedFetch(place(own, {}, { Authorization: "Bearer secret" }), () => undefined);
    await (await fetch(own)).text();
    await (await fetch(other)).text();
    expect(seen).toEqual(["Bearer secret", undefined]);
    await expect(fetch("http://example.com/token")).rejects.toThrow(/would not be encrypted/);
    close();
  });
});
