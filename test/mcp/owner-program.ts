/** Connects the server given on the command line, prints the answer of its first tool, and stays until it is killed. */
import { McpConnections } from "../../src/tools/mcp/connections.ts";
import { mcpTools } from "../../src/tools/mcp/tools.ts";

async function own(): Promise<void> {
  const { signal } = new AbortController();
  const server = new McpConnections({ version: "0.0.0", cwd: process.cwd() }).use(JSON.parse(process.argv[2] ?? ""));
  const [tool] = mcpTools([{ server, definitions: await server.definitions(signal) }], { reservedNames: [] });
  const context = { cwd: "/", roots: [], toolCallId: "1", signal, progress: () => undefined };
  process.stdout.write(`${(await tool?.bind({}).run(context))?.content}\n`);
  setInterval(() => undefined, 1000);
}

void own();
