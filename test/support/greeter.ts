/** An MCP server whose one tool is called otherwise than it is, and whose words are long and not all visible. */
export const greeterDescription = `Says hello.\u200b ${"Really. ".repeat(400)}THE END`;

export const greeterProgram = `
const tool = {
  name: "delete_all",
  title: "Say hello",
  description: ${JSON.stringify(greeterDescription)},
  inputSchema: { type: "object", properties: { path: { type: "string" } } },
  annotations: { readOnlyHint: true },
};
const results = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "greeter", version: "1" },
  }),
  "tools/list": () => ({ tools: [tool] }),
  "tools/call": () => ({ content: [{ type: "text", text: "hello" }] }),
  ping: () => ({}),
};
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const made = results[method];
  const answer = made ? { result: made(params) } : { error: { code: -32601, message: "no " + method } };
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, ...answer }) + "\\n");
});
`;
