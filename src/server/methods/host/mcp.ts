/** The MCP servers of a session. Servers start when they are needed; listing them counts as a need. */

import * as z from "zod";
import { defined } from "../../../lib/defined.ts";
import { TroupeError } from "../../../protocol/errors.ts";
import { executeSampling } from "../../../session/requests/mcp-answers.ts";
import type { Session } from "../../../session/session.ts";
import { servicesOf } from "../agents/skills.ts";
import { type MethodTable, nothing, sessionMethod } from "../method.ts";

const byServer = () => ({ serverName: z.string() });

const withConfig = () => ({ ...byServer(), config: z.unknown().optional() });

/** Servers are configured when a session is opened. A new one must pass the same checks there. */
function requireKnownConfig(config: unknown): void {
  if (config === undefined || config === null) return;
  throw new TroupeError("usage", "The configuration of a server cannot change while its session is open.", {
    hint: "Give mcpServers again: session.options.update.",
  });
}

export const mcpMethods: MethodTable = {
  "session.mcp.list": sessionMethod(nothing, async (_, { session }) => {
    const mcp = portOf(session);
    await mcp?.opened();
    // A later list shows the progress, also for a server whose tools are cached.
    mcp
      ?.ready(session.queue.closed)
      .then(() => Promise.allSettled(mcp.servers.filter(isPending).map((one) => one.definitions(session.queue.closed))))
      .catch(() => undefined);
    return { servers: servicesOf(session).serverSummaries().map(serverEntry) };
  }),
  "session.mcp.listTools": sessionMethod(byServer, async ({ serverName }, { session, signal }) => {
    const server = serverOf(session, serverName);
    if (server.state().status !== "connected") throw notConnected(serverName);
    const tools = await server.definitions(signal);
    return { tools: tools.map(({ name, description, ui }) => ({ name, description, ...defined({ ui }) })) };
  }),
  "session.mcp.isServerRunning": sessionMethod(byServer, ({ serverName }, { session }) => ({
    running: serversOf(session).some(
      (server) => server.config.name === serverName && server.state().status === "connected",
    ),
  })),
  "session.mcp.enable": sessionMethod(byServer, async ({ serverName }, { session }) => {
    await change(session, serverName, true);
  }),
  "session.mcp.disable": sessionMethod(byServer, async ({ serverName }, { session }) => {
    await change(session, serverName, false);
  }),
  "session.mcp.stopServer": sessionMethod(byServer, async ({ serverName }, { session }) => {
    await change(session, serverName, false);
  }),
  "session.mcp.startServer": sessionMethod(withConfig, async ({ serverName, config }, { session, signal }) => {
    requireKnownConfig(config);
    await change(session, serverName, true);
    await portOf(session)?.opened();
    await serverOf(session, serverName).definitions(signal);
  }),
  "session.mcp.restartServer": sessionMethod(withConfig, async ({ serverName, config }, { session, signal }) => {
    requireKnownConfig(config);
    await portOf(session)?.opened();
    const server = serverOf(session, serverName);
    await server.reconnect();
    await server.definitions(signal);
  }),
  // Servers are loaded when they are needed, and no turn waits for all of them.
  "session.mcp.moveLoadingToBackground": sessionMethod(nothing, () => ({ movedToBackground: false })),
  "session.mcp.oauth.authenticationStateChanged": sessionMethod(
    () => ({ serverName: z.string().optional() }),
    ({ serverName }, { session }) => portOf(session)?.askAgain(serverName),
  ),
  // Tokens are sent with session.mcp.oauth.handlePendingRequest. No request is pending under other ids.
  "session.mcp.oauth.respond": sessionMethod(
    () => ({ requestId: z.string() }),
    () => ({ success: false }),
  ),
  "session.mcp.oauth.probe": sessionMethod(byServer, async ({ serverName }, { session, signal }) => {
    await portOf(session)?.opened();
    const server = remoteServerOf(session, serverName);
    try {
      return probeResult(await server.probe(signal));
    } catch (error) {
      return { status: "failed", error: messageOf(error) };
    }
  }),
  "session.mcp.resources.list": sessionMethod(
    () => ({ ...byServer(), cursor: z.string().optional() }),
    async ({ serverName }, { session, signal }) => {
      const resources = await serverOf(session, serverName).listResources(signal);
      return { resources: resources.map(({ server: _, ...resource }) => resource) };
    },
  ),
  "session.mcp.resources.read": sessionMethod(
    () => ({ ...byServer(), uri: z.string().min(1) }),
    async ({ serverName, uri }, { session, signal }) => {
      const { text, leftOut } = await serverOf(session, serverName).readResource(uri, signal);
      for (const part of leftOut) session.record.warn("mcp_resource", `${uri}: left out ${part}.`);
      return { contents: [{ uri, text }] };
    },
  ),
  "session.mcp.resources.listTemplates": sessionMethod(
    () => ({ ...byServer(), cursor: z.string().optional() }),
    async ({ serverName }, { session, signal }) => ({
      resourceTemplates: await serverOf(session, serverName).listTemplates(signal),
    }),
  ),
  "session.mcp.reload": sessionMethod(nothing, () => {
    throw new TroupeError("usage", "MCP config reload not available: open the session again.");
  }),
  "session.mcp.setEnvValueMode": sessionMethod(
    () => ({ mode: z.enum(["direct", "indirect"]) }),
    ({ mode }) => ({ mode }),
  ),
  "session.mcp.removeGitHub": sessionMethod(nothing, async (_, { session }) => {
    const port = portOf(session);
    await port?.opened();
    const builtin = port?.servers.find((server) => server.config.scope === "builtin" && !isOff(server));
    return { removed: builtin !== undefined && (await port?.setEnabled(builtin.config.name, false)) === true };
  }),
  "session.mcp.executeSampling": sessionMethod(
    () => ({ requestId: z.string().min(1).max(200), serverName: z.string(), request: z.looseObject({}) }),
    async ({ requestId, serverName, request }, { hosted, session, signal }) => {
      serverOf(session, serverName);
      if (hosted.samplings.has(requestId))
        throw new TroupeError("usage", `Sampling ${requestId} is already in progress.`);
      const stop = new AbortController();
      hosted.samplings.set(requestId, stop);
      try {
        const within = AbortSignal.any([signal, stop.signal, session.queue.closed]);
        const result = await executeSampling(session, { serverName, params: request }, within);
        return { action: "success", result };
      } catch (error) {
        return stop.signal.aborted ? { action: "cancelled" } : { action: "failure", error: messageOf(error) };
      } finally {
        hosted.samplings.delete(requestId);
      }
    },
  ),
  "session.mcp.cancelSamplingExecution": sessionMethod(
    () => ({ requestId: z.string() }),
    ({ requestId }, { hosted }) => {
      const running = hosted.samplings.get(requestId);
      running?.abort();
      return { cancelled: running !== undefined };
    },
  ),
  "session.mcp.oauth.login": sessionMethod(
    () => ({ serverName: z.string(), forceReauth: z.boolean().optional() }),
    async ({ serverName, forceReauth }, { session, signal }) => {
      const port = portOf(session);
      if (!port) throw new TroupeError("usage", "MCP host is not available: the session has no MCP servers.");
      await port.opened();
      const server = remoteServerOf(session, serverName);
      port.askAgain(serverName);
      if (forceReauth) await server.reconnect();
      await server.definitions(signal); // requests a token from the client if the server needs one
      return {};
    },
  ),
  "session.mcp.headers.handlePendingHeadersRefreshRequest": sessionMethod(
    () => ({ requestId: z.string() }),
    () => ({ success: false }),
  ),
};

type Port = NonNullable<ReturnType<typeof servicesOf>["mcp"]>;
type Server = Port["servers"][number];
type Summary = ReturnType<ReturnType<typeof servicesOf>["serverSummaries"]>[number];

const isOff = (server: Server): boolean => server.state().status === "disabled";
const isPending = (server: Server): boolean => server.state().status === "pending";
const portOf = (session: Session): Port | undefined => servicesOf(session).mcp;
export const serversOf = (session: Session): readonly Server[] => portOf(session)?.servers ?? [];

async function change(session: Session, name: string, enabled: boolean): Promise<void> {
  const port = portOf(session);
  if (!port) throw new TroupeError("usage", "No MCP host initialized: the session has no MCP servers.");
  if (!(await port.setEnabled(name, enabled)))
    throw new TroupeError("usage", `MCP server '${name}' is not configured.`);
}

function serverOf(session: Session, name: string): Server {
  const server = serversOf(session).find(({ config }) => config.name === name);
  if (!server) throw notConnected(name);
  return server;
}

function remoteServerOf(session: Session, name: string): Server {
  const server = serversOf(session).find(({ config }) => config.name === name);
  if (!server) throw new TroupeError("usage", `MCP server '${name}' is not configured.`);
  if (server.config.transport.type !== "stdio") return server;
  throw new TroupeError("usage", `MCP server '${name}' is not a remote server: there is nowhere to sign in.`);
}

/** The server's own response decides: a request accepted with a token does not prove that the server needs one. */
function probeResult({ statusCode, headers, hadToken, challenge }: Awaited<ReturnType<Server["probe"]>>): object {
  const httpResponse = { statusCode, headers };
  if (statusCode < 400) return { status: hadToken ? "authenticated" : "no-auth-required", httpResponse };
  if (!challenge) return { status: "failed", error: `The server answered with HTTP ${statusCode}.`, httpResponse };
  const isNarrow = statusCode === 403;
  if (isNarrow && challenge.error !== "insufficient_scope") {
    return { status: "failed", error: "The server refused the request (HTTP 403).", httpResponse };
  }
  const reason = isNarrow ? "upscope" : hadToken ? "refresh" : "initial";
  return { status: "needs-auth", reason, httpResponse, wwwAuthenticateParams: challenge };
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

export const notConnected = (name: string): TroupeError =>
  new TroupeError("usage", `MCP server '${name}' is not connected.`);

function serverEntry({ transport: _, pluginName, pluginVersion, ...summary }: Summary): object {
  return {
    ...summary,
    ...defined({ sourcePlugin: pluginName, sourcePluginVersion: pluginVersion }),
  };
}
