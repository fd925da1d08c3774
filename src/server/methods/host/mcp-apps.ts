/**
 * Apps of MCP servers, for clients that show them. An app is a page of a server, and can call the tools of that server
 * only. Apps are unavailable if the client did not declare support, or if the flag `MCP_APPS` is off.
 */
import * as z from "zod";
import type { Json } from "../../../lib/json.ts";
import { TroupeError } from "../../../protocol/errors.ts";
import type { Session } from "../../../session/session.ts";
import { servicesOf } from "../agents/skills.ts";
import { type MethodTable, nothing, sessionMethod } from "../method.ts";
import { notConnected, serversOf } from "./mcp.ts";

const MAX_CONTEXT_CHARACTERS = 64 * 1024;
const MAX_SAMPLES = 5;
const JsonValue: z.ZodType<Json> = z.json();
const fromApp = () => ({ serverName: z.string(), originServerName: z.string() });

export const mcpAppsMethods: MethodTable = {
  "session.mcp.apps.listTools": sessionMethod(fromApp, async (params, { session, signal }) => ({
    tools: await appsOf(session, params).tools(params.serverName, signal),
  })),
  "session.mcp.apps.callTool": sessionMethod(
    () => ({ ...fromApp(), toolName: z.string(), arguments: z.record(z.string(), JsonValue).default({}) }),
    async ({ originServerName, ...call }, { session, signal }) => {
      const result = await appsOf(session, { ...call, originServerName }).call(call, signal);
      return session.record.redactor?.json(result) ?? result;
    },
  ),
  "session.mcp.apps.readResource": sessionMethod(
    () => ({ serverName: z.string(), uri: z.string() }),
    async ({ serverName, uri }, { session, signal }) => ({
      contents: await appsOf(session, { serverName, uri }).read(serverName, uri, signal),
    }),
  ),
  "session.mcp.apps.setHostContext": sessionMethod(
    () => ({ context: z.looseObject({}) }),
    ({ context }, { hosted }) => {
      if (JSON.stringify(context).length > MAX_CONTEXT_CHARACTERS) {
        throw new TroupeError("limit", `A host context can have at most ${MAX_CONTEXT_CHARACTERS} characters.`);
      }
      hosted.appsContext = context;
    },
  ),
  "session.mcp.apps.getHostContext": sessionMethod(nothing, (_, { hosted }) => ({ context: hosted.appsContext })),
  "session.mcp.apps.diagnose": sessionMethod(
    () => ({ serverName: z.string() }),
    async ({ serverName }, { session, signal }) => {
      const server = serversOf(session).find(({ config }) => config.name === serverName);
      const connected = server?.state().status === "connected";
      const tools = connected ? await server.definitions(signal) : [];
      const shown = tools.filter(({ ui }) => ui?.resourceUri !== undefined).map(({ name }) => name);
      const { showsApps, mayShowApps } = servicesOf(session);
      return {
        capability: { sessionHasMcpApps: showsApps, featureFlagEnabled: mayShowApps, advertised: showsApps },
        server: {
          connected,
          toolCount: tools.length,
          toolsWithUiMeta: shown.length,
          sampleToolNames: shown.slice(0, MAX_SAMPLES),
        },
      };
    },
  ),
};

/** Returns the operations that apps may use. */
function appsOf(
  session: Session,
  { serverName, originServerName = serverName, uri }: { serverName: string; originServerName?: string; uri?: string },
) {
  const { showsApps, mcp } = servicesOf(session);
  if (!showsApps) {
    const what = uri === undefined ? "MCP Apps need" : `The resource ${uri} is not read: that needs`;
    throw new TroupeError("usage", `${what} the capability mcp-apps, which this session does not have.`, {
      hint: "A client that shows apps says so when it opens the session (enableMcpApps); the flag MCP_APPS must be on.",
    });
  }
  if (originServerName !== serverName) {
    throw new TroupeError("usage", `An app of '${originServerName}' cannot use '${serverName}', only its own server.`);
  }
  if (!mcp) throw notConnected(serverName);
  return mcp.apps;
}
