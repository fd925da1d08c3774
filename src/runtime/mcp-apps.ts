/** Apps of MCP servers: what a client that shows them does for them, within the rules of the session. */
import { decide } from "../permissions/decide.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { EventData } from "../protocol/event.ts";
import type { Access } from "../protocol/permission.ts";
import type { AppCall, ServerPort } from "../session/server-port.ts";
import { isFor } from "../tools/mcp/apps.ts";
import type { McpServer } from "../tools/mcp/connections.ts";
import type { McpToolDefinition } from "../tools/mcp/server.ts";
import type { Draft } from "./draft.ts";
import { worded } from "./server-port.ts";
import type { SessionMcp } from "./session-mcp.ts";
import type { SessionRules } from "./session-rules.ts";

export function mcpApps(draft: Draft, { mcp, rules }: { mcp: SessionMcp; rules: SessionRules }): ServerPort["apps"] {
  const { stamp, listener, shared } = draft;
  return {
    async tools(serverName, signal) {
      const definitions = await worded(serverOf(mcp, serverName).definitions(signal));
      return definitions.filter((one) => isFor("app", one)).map(asListed);
    },
    async call(call, signal) {
      const { serverName, toolName } = call;
      const server = serverOf(mcp, serverName);
      const definition = await toolFor(server, toolName, signal);
      requireAllowed(draft, rules, { call, definition });
      const pins = await shared.pins((message) => listener.notice(message));
      if (pins.check(server.config, definition) === "changed") throw changed(call);
      const begun = stamp.monotonic();
      const tell = (outcome: Outcome): void =>
        void listener.say("mcp_app.tool_call_complete", {
          ...{ serverName, toolName, arguments: call.arguments },
          ...outcome,
          durationMs: Math.round(stamp.monotonic() - begun),
          ...(definition.ui && { toolMeta: { ui: definition.ui } }),
        });
      try {
        const result = await worded(server.call({ definition, arguments: { ...call.arguments }, signal }));
        tell({ success: result.isError !== true, result: JSON.parse(JSON.stringify(result)) });
        return result;
      } catch (error) {
        tell({ success: false, error: { message: error instanceof Error ? error.message : String(error) } });
        throw error;
      }
    },
    read: (serverName, uri, signal) => worded(serverOf(mcp, serverName).readContents(uri, signal)),
  };
}

type Outcome = Pick<EventData<"mcp_app.tool_call_complete">, "success" | "result" | "error">;

function serverOf(mcp: SessionMcp, name: string): McpServer {
  const server = mcp.servers.find(({ config }) => config.name === name);
  if (server && server.state().status !== "disabled") return server;
  throw new TroupeError("usage", `MCP server '${name}' is not connected.`);
}

async function toolFor(server: McpServer, toolName: string, signal: AbortSignal): Promise<McpToolDefinition> {
  const definitions = await worded(server.definitions(signal));
  const definition = definitions.find(({ name }) => name === toolName);
  if (definition && isFor("app", definition)) return definition;
  const why = definition ? "is not for apps" : "is not one of its tools";
  throw new TroupeError("usage", `${JSON.stringify(toolName)} of the MCP server '${server.config.name}' ${why}.`);
}

/** Whoever uses an app has asked for the call; what is denied is denied all the same. */
function requireAllowed(
  { context }: Draft,
  rules: SessionRules,
  { call, definition }: { call: AppCall; definition: McpToolDefinition },
): void {
  const { serverName, toolName } = call;
  const access: Access = {
    kind: "mcp",
    ...{ serverName, toolName, toolTitle: definition.title ?? toolName, args: { ...call.arguments } },
    readOnly: definition.annotations?.readOnlyHint === true,
  };
  const question = { access, toolName: `${serverName}-${toolName}`, cwd: context.cwd };
  const verdict = decide(rules.mode.policy, question);
  if (verdict.decision === "deny") throw new TroupeError("usage", `The call is denied: ${verdict.reason}.`);
}

function changed({ serverName, toolName }: AppCall): TroupeError {
  return new TroupeError("failed", `The tool ${toolName} of ${serverName} has changed since it was approved.`, {
    hint: `Look at it: troupe mcp approve ${serverName}`,
  });
}

/** As a server lists it, as far as it was understood. */
function asListed({ server: _, ui, taskSupport: __, ...definition }: McpToolDefinition): object {
  return { ...definition, ...(ui && { _meta: { ui } }) };
}
