/** Apps of MCP servers. This server shows none; what a client says of itself for them is kept, and why not is told. */
import * as z from "zod";
import { TroupeError } from "../../protocol/errors.ts";
import { serversOf } from "./mcp.ts";
import { type MethodTable, nothing, sessionMethod } from "./method.ts";

const MAX_CONTEXT_CHARACTERS = 64 * 1024;
const loose = () => ({});

const noApps = () => {
  throw new TroupeError("usage", "MCP Apps need the capability mcp-apps, which this server does not offer.");
};

export const mcpAppsMethods: MethodTable = {
  "session.mcp.apps.listTools": sessionMethod(loose, noApps),
  "session.mcp.apps.callTool": sessionMethod(loose, noApps),
  "session.mcp.apps.readResource": sessionMethod(
    () => ({ serverName: z.string(), uri: z.string() }),
    ({ serverName, uri }) => {
      throw new TroupeError(
        "usage",
        `The resource ${uri} of ${serverName} is not read: that needs the capability mcp-apps, which this server does not offer.`,
      );
    },
  ),
  "session.mcp.apps.setHostContext": sessionMethod(
    () => ({ context: z.looseObject({}) }),
    ({ context }, { live }) => {
      if (JSON.stringify(context).length > MAX_CONTEXT_CHARACTERS) {
        throw new TroupeError("limit", `A host context has at most ${MAX_CONTEXT_CHARACTERS} characters.`);
      }
      live.appsContext = context;
    },
  ),
  "session.mcp.apps.getHostContext": sessionMethod(nothing, (_, { live }) => ({ context: live.appsContext })),
  "session.mcp.apps.diagnose": sessionMethod(
    () => ({ serverName: z.string() }),
    async ({ serverName }, { session, signal }) => {
      const server = serversOf(session).find(({ config }) => config.name === serverName);
      const connected = server?.state().status === "connected";
      const tools = connected ? await server.definitions(signal) : [];
      return {
        capability: { sessionHasMcpApps: false, featureFlagEnabled: false, advertised: false },
        // Servers show the interface of a tool to those alone who say that they can show it.
        server: { connected, toolCount: tools.length, toolsWithUiMeta: 0, sampleToolNames: [] },
      };
    },
  ),
};
