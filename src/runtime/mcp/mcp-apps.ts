/** Apps of MCP servers: the operations of a client that shows them, under the session's rules. */
import { TroupeError } from "../../protocol/errors.ts";
import type { EventData } from "../../protocol/event.ts";
import type { Session } from "../../session/session.ts";
import type { AppCall, SessionMcpPort } from "../../session/session-mcp-port.ts";
import { hookedMcpCalls } from "../../session/turn/hooked-calls.ts";
import { isFor } from "../../tools/mcp/apps.ts";
import type { McpServerPort } from "../../tools/mcp/connections.ts";
import { modelNames } from "../../tools/mcp/names.ts";
import type { McpToolDefinition } from "../../tools/mcp/server.ts";
import type { Tool } from "../../tools/tool.ts";
import { admitAppCall } from "../permissions/app-call-guard.ts";
import type { SessionRules } from "../setup/session-rules.ts";
import type { SessionSetup } from "../setup/session-setup.ts";
import type { SessionMcp } from "./session-mcp.ts";
import { worded } from "./session-mcp-port.ts";

export function mcpApps(
  setup: SessionSetup,
  { mcp, rules }: { mcp: SessionMcp; rules: SessionRules },
): SessionMcpPort["apps"] {
  const { stamp, channel, shared } = setup;
  return {
    async tools(serverName, signal) {
      const definitions = await worded(serverOf(mcp, serverName).definitions(signal));
      return definitions.filter((one) => isFor("app", one)).map(asListed);
    },
    async call(call, given) {
      const { serverName, toolName } = call;
      const { session } = channel;
      if (!session) throw new TroupeError("failed", "The session is not open yet.");
      const signal = AbortSignal.any([given, session.queue.closed]);
      const server = serverOf(mcp, serverName);
      const definition = await toolFor(server, toolName, signal);
      const admitted = await admitAppCall({
        session,
        definition,
        config: server.config,
        arguments: call.arguments,
        signal,
        toolName: nameFor(mcp, definition),
        policy: rules.mode.policy,
      });
      const pins = await shared.pins((message) => channel.notice(message));
      if (pins.check(server.config, definition) === "changed") throw changedToolError(call);
      const begun = stamp.monotonic();
      const tell = (outcome: AppCallResult): void =>
        void channel.emit("mcp_app.tool_call_complete", {
          serverName,
          toolName,
          arguments: { ...admitted.arguments },
          ...outcome,
          durationMs: Math.round(stamp.monotonic() - begun),
          ...(definition.ui && { toolMeta: { ui: definition.ui } }),
        });
      try {
        const result = admitted.answer ?? (await runAppCall({ session, server, definition, admitted, signal }));
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

type AppCallResult = Pick<EventData<"mcp_app.tool_call_complete">, "success" | "result" | "error">;

function serverOf(mcp: SessionMcp, name: string): McpServerPort {
  const server = mcp.servers.find(({ config }) => config.name === name);
  if (server && server.state().status !== "disabled") return server;
  throw new TroupeError("usage", `MCP server '${name}' is not connected.`);
}

async function toolFor(server: McpServerPort, toolName: string, signal: AbortSignal): Promise<McpToolDefinition> {
  const definitions = await worded(server.definitions(signal));
  const definition = definitions.find(({ name }) => name === toolName);
  if (definition && isFor("app", definition)) return definition;
  const why = definition ? "is not for apps" : "is not one of its tools";
  throw new TroupeError("usage", `${JSON.stringify(toolName)} of the MCP server '${server.config.name}' ${why}.`);
}

/** Returns the tool's name for hooks: its name for the model, even if the tool is for apps only. */
function nameFor({ tools }: SessionMcp, definition: McpToolDefinition): string {
  const isIt = ({ origin }: Tool): boolean =>
    origin?.kind === "mcp" && origin.serverName === definition.server && origin.toolName === definition.name;
  return tools.find(isIt)?.name ?? modelNames([definition])[0] ?? definition.name;
}

interface AdmittedCall {
  readonly session: Session;
  readonly server: McpServerPort;
  readonly definition: McpToolDefinition;
  readonly admitted: Awaited<ReturnType<typeof admitAppCall>>;
  readonly signal: AbortSignal;
}

async function runAppCall({ session, server, definition, admitted, signal }: AdmittedCall) {
  const given = { ...admitted.arguments };
  const info = { serverName: definition.server, toolName: definition.name, arguments: given };
  const { beforeMcpCall } = hookedMcpCalls(session.permissions.hooks);
  const work = async () => {
    const meta = await beforeMcpCall?.({ ...info, toolCallId: admitted.toolCallId }, signal);
    signal.throwIfAborted();
    return server.call({ definition, arguments: given, signal, ...(meta && { meta }) });
  };
  const result = await worded(
    work().catch(async (error: unknown) => {
      await admitted.failed(error);
      throw error;
    }),
  );
  return admitted.ended(result);
}

function changedToolError({ serverName, toolName }: AppCall): TroupeError {
  return new TroupeError("failed", `The tool ${toolName} of ${serverName} has changed since it was approved.`, {
    hint: `Look at it: troupe mcp approve ${serverName}`,
  });
}

/** Returns the definition in the form of the server's list, as far as it was parsed. */
function asListed({ server: _, ui, taskSupport: __, ...definition }: McpToolDefinition): object {
  return { ...definition, ...(ui && { _meta: { ui } }) };
}
