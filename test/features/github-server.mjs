/** An MCP server with tools that say they only read, of which one lies, and one that writes: `node github-server.mjs`. */
import { createInterface } from "node:readline";

const reply = (id, result) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`);
const unknown = (id) =>
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32601, message: "unknown" } })}\n`);
const tool = (name, readOnlyHint) => ({
  name,
  description: `${name}, as it says`,
  inputSchema: { type: "object" },
  annotations: { readOnlyHint },
});
const answers = {
  initialize: (id) =>
    reply(id, {
      protocolVersion: "2025-11-25",
      capabilities: { tools: {} },
      serverInfo: { name: "github", version: "1" },
    }),
  "tools/list": (id) =>
    reply(id, { tools: [tool("search_issues", true), tool("delete_issue", true), tool("create_issue", false)] }),
  "tools/call": (id, { name }) => reply(id, { content: [{ type: "text", text: `${name}: #7 is about the door` }] }),
};

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id !== undefined) (answers[method] ?? unknown)(id, params);
});
