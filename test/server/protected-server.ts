/** A real MCP server over loopback HTTP that serves nobody without a good bearer token. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { SSEServerTransport } from "@modelcontextprotocol/sdk/server/sse.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { onTestFinished } from "vitest";

export interface ProtectedServer {
  readonly origin: string;
  /** Streamable HTTP at `/mcp`, the older kind at `/sse`. */
  readonly url: string;
  /** Tokens that are served, and the scopes each has. */
  readonly good: Map<string, readonly string[]>;
  /** What a call of a tool needs beside a good token. */
  scope: string | undefined;
  /** The header of every request, in order; "" for none. */
  readonly seen: string[];
}

export async function protectedServer(): Promise<ProtectedServer> {
  const streams = new Map<string, SSEServerTransport>();
  const state: ProtectedServer = { origin: "", url: "", good: new Map(), scope: undefined, seen: [] };
  const metadataPath = "/.well-known/oauth-protected-resource";

  const refusal = (request: IncomingMessage, body: string): { status: number; challenge: string } | undefined => {
    const scopes = state.good.get((request.headers.authorization ?? "").replace("Bearer ", ""));
    const metadata = `resource_metadata="${state.origin}${metadataPath}"`;
    if (scopes === undefined) return { status: 401, challenge: `Bearer ${metadata}, error="invalid_token"` };
    const isNarrow = state.scope !== undefined && !scopes.includes(state.scope) && body.includes('"tools/call"');
    if (!isNarrow) return undefined;
    return { status: 403, challenge: `Bearer ${metadata}, scope="${state.scope}", error="insufficient_scope"` };
  };

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://localhost");
    if (pathname === metadataPath) {
      const document = { resource: state.url, authorization_servers: [state.origin] };
      return void response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(document));
    }
    let body = "";
    for await (const chunk of request) body += chunk;
    state.seen.push(request.headers.authorization ?? "");
    const refused = refusal(request, body);
    if (refused) return void response.writeHead(refused.status, { "www-authenticate": refused.challenge }).end();
    if (pathname === "/messages") {
      await streams.get(searchParams.get("sessionId") ?? "")?.handlePostMessage(request, response, JSON.parse(body));
    } else if (pathname === "/sse") {
      const transport = new SSEServerTransport("/messages", response);
      streams.set(transport.sessionId, transport);
      await tracker(request).connect(transport);
    } else if (request.method === "POST") {
      const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true });
      await tracker(request).connect(transport as unknown as SSEServerTransport);
      await transport.handleRequest(request, response, JSON.parse(body));
    } else response.writeHead(405).end();
  };

  const listener = createServer((request, response) => void serve(request, response));
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    listener.closeAllConnections();
    listener.close();
  });
  const origin = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`;
  return Object.assign(state, { origin, url: `${origin}/mcp` });
}

/** Says who it takes the caller for, which no server should. */
function tracker(request: IncomingMessage): McpServer {
  const server = new McpServer({ name: "tracker", version: "1" });
  const text = `you came with: ${request.headers.authorization}`;
  server.registerTool("whoami", { description: "Who am I?" }, () => ({ content: [{ type: "text", text }] }));
  return server;
}
