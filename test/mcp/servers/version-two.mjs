/** A server of the second SDK, which speaks both eras: on stdio, or with `http` on a port that it prints. */
import { createServer } from "node:http";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import * as z from "zod";

function newServer() {
  const server = new McpServer({ name: "version-two", version: "2.0.0" }, { instructions: "Use it well." });
  server.registerTool(
    "add",
    {
      description: "Adds",
      inputSchema: z.object({ a: z.number(), b: z.number() }),
      outputSchema: z.object({ sum: z.number() }),
    },
    async ({ a, b }) => ({
      content: [{ type: "text", text: JSON.stringify({ sum: a + b }) }],
      structuredContent: { sum: a + b },
    }),
  );
  return server;
}

if (process.argv[2] === "http") {
  const handle = toNodeHandler(createMcpHandler(newServer));
  const listener = createServer((request, response) => void handle(request, response)).listen(0, "127.0.0.1", () => {
    process.stdout.write(`${listener.address().port}\n`);
  });
} else serveStdio(newServer);
