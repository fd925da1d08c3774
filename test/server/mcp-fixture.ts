/** A small MCP server over stdio: a picture, a program that ends itself, templates of resources. */
export const mcpFixture = `
const lines = require("node:readline").createInterface({ input: process.stdin });
const tool = (name) => ({ name, description: "Does " + name + ".", inputSchema: { type: "object" } });
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const answers = {
  initialize: () => ({
    protocolVersion: "2025-06-18",
    capabilities: { tools: {}, resources: {} },
    serverInfo: { name: "fixture", version: "1" },
  }),
  "tools/list": () => ({ tools: [tool("picture"), tool("leave")] }),
  "tools/call": ({ name }) => {
    if (name === "leave") process.exit(3);
    return { content: [{ type: "image", data: png, mimeType: "image/png" }] };
  },
  "resources/list": () => ({ resources: [{ uri: "note://1", name: "first", mimeType: "text/plain" }] }),
  "resources/read": ({ uri }) => ({ contents: [{ uri, mimeType: "text/plain", text: "A note." }] }),
  "resources/templates/list": ({ cursor } = {}) =>
    cursor === undefined
      ? { resourceTemplates: [{ uriTemplate: "note://{id}", name: "note", description: "One note." }], nextCursor: "2" }
      : { resourceTemplates: [{ uriTemplate: "log://{day}", name: "log", mimeType: "text/plain" }] },
};
lines.on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const known = answers[method];
  const answer = known ? { result: known(params) } : { error: { code: -32601, message: "unknown" } };
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, ...answer }) + "\\n");
});`;
