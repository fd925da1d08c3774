/** The prompts of a session's MCP servers, for slash commands. */
import type { CommandPorts } from "../../commands/ports.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { McpServerPort } from "../../tools/mcp/connections.ts";
import type { SessionMcp } from "./session-mcp.ts";
import { worded } from "./session-mcp-port.ts";

/** A server that does not answer must not delay a list of commands for longer. */
const LIST_MS = 3000;

/** `signal`: aborts when the session closes. */
export function serverPrompts(mcp: SessionMcp, signal: () => AbortSignal): CommandPorts["serverPrompts"] {
  const named = async (serverName: string): Promise<McpServerPort | undefined> => {
    await mcp.opened();
    const inUse = mcp.servers.filter((server) => server.state().status !== "disabled");
    return inUse.find(({ config }) => config.name.toLowerCase() === serverName.toLowerCase());
  };
  return {
    async list() {
      const connected = mcp.servers.filter((server) => server.state().status === "connected" && server.hasPrompts());
      const most = AbortSignal.any([signal(), AbortSignal.timeout(LIST_MS)]);
      return (await Promise.all(connected.map((server) => server.listPrompts(most).catch(() => [])))).flat();
    },
    async of(serverName) {
      const server = await named(serverName);
      return server && worded(server.listPrompts(signal()));
    },
    async fill({ server: serverName, name }, values) {
      const server = await named(serverName);
      if (!server) throw new TroupeError("failed", `The MCP server ${serverName} was switched off.`);
      return worded(server.fillPrompt(name, values, signal()));
    },
  };
}
