/**
 * All MCP servers of a process. A server with the same settings is connected once for all sessions and agents. Nothing
 * is started before its tools are listed or called.
 */
import type { CallToolResult } from "@modelcontextprotocol/client";
import type { PrepareProgram } from "../../lib/node/program.ts";
import { ToolError } from "../tool-error.ts";
import type { McpCall } from "./call.ts";
import {
  type ConnectionLimits,
  McpConnection,
  type McpServerState,
  type McpUser,
  type WithSlot,
} from "./connection.ts";
import type { OpenBase } from "./open.ts";
import { isPackageRunner } from "./package-runner.ts";
import type { McpProbe } from "./probe.ts";
import { fillPrompt, listPrompts, type McpPrompt } from "./prompts/server-prompts.ts";
import {
  listResources,
  listTemplates,
  type McpContent,
  type McpResource,
  type McpResourceTemplate,
  type McpResourceText,
  readContents,
  readResource,
} from "./resource-access.ts";
import type { McpServerConfig, McpToolDefinition } from "./server.ts";

export interface McpConnectionsOptions {
  readonly version: string;
  /** The working directory of servers that name none. */
  readonly cwd: string;
  /** The environment of troupe; servers see only what `childEnvironment` passes on (default: `process.env`). */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Decides on the sandbox of each program; without it programs run unsandboxed. */
  readonly prepare?: PrepareProgram;
  readonly allowPrivateHosts?: readonly string[];
  readonly authProvider?: NonNullable<OpenBase["authProvider"]>;
  readonly probes?: NonNullable<OpenBase["probes"]>;
  readonly limits?: Partial<ConnectionLimits & { readonly connectAtOnce: number }>;
}

/** One server as one user sees it. */
export interface McpServerPort {
  readonly config: McpServerConfig;
  state(): McpServerState;
  isConnecting(): boolean;
  /** Connects when needed. */
  definitions(signal: AbortSignal): Promise<readonly McpToolDefinition[]>;
  /** Returns the last listing, without connecting. */
  knownDefinitions(): readonly McpToolDefinition[] | undefined;
  /** The server's usage instructions, once connected; bounded and safe to show. */
  instructions(): string | undefined;
  hasResources(): boolean;
  /** Returns false while it is not connected. */
  hasPrompts(): boolean;
  call(call: McpCall): Promise<CallToolResult>;
  listResources(signal: AbortSignal): Promise<readonly McpResource[]>;
  listTemplates(signal: AbortSignal): Promise<readonly McpResourceTemplate[]>;
  listPrompts(signal: AbortSignal): Promise<readonly McpPrompt[]>;
  /** Returns the text that the server makes of a prompt and the values of its arguments, quoted. */
  fillPrompt(name: string, values: Readonly<Record<string, string>>, signal: AbortSignal): Promise<string>;
  /** Returns whether a remote server wants a sign-in, without connecting. */
  probe(signal: AbortSignal): Promise<McpProbe>;
  readResource(uri: string, signal: AbortSignal): Promise<McpResourceText>;
  /** Returns the content as the server sends it, for display. */
  readContents(uri: string, signal: AbortSignal): Promise<readonly McpContent[]>;
  /** Ends the connection for all users, and clears its failures and its token. */
  reconnect(): Promise<void>;
  /** Leaves the server. The last user's release ends it; resolves then. */
  release(): Promise<void>;
}

const LIMITS = { connectAtOnce: 5, slowMs: 10_000, backoffMs: 250, restarts: 3, restartWindowMs: 5 * 60_000 };

export class McpConnections {
  readonly #base: OpenBase;
  readonly #limits: ConnectionLimits;
  readonly #connections = new Map<string, McpConnection>();
  readonly #closing = new Set<Promise<void>>();
  readonly #withSlot: WithSlot;
  #watchdog: ReturnType<OpenBase["watchdog"]> | undefined;
  #isClosed = false;

  constructor(options: McpConnectionsOptions) {
    const { limits, environment = process.env, ...rest } = options;
    const { connectAtOnce, ...others } = { ...LIMITS, ...limits };
    this.#limits = others;
    this.#withSlot = turns(connectAtOnce);
    const mark = `mcp-${crypto.randomUUID()}`;
    let marks = 0;
    this.#base = {
      ...rest,
      environment,
      newMark: () => `${mark}.${++marks}`,
      watchdog: () => {
        this.#watchdog ??= startWatchdog(mark);
        return this.#watchdog;
      },
    };
  }

  /** Registers a user; starts nothing. */
  use(config: McpServerConfig, user: McpUser = {}): McpServerPort {
    if (this.#isClosed) throw new ToolError("The MCP servers are stopped.");
    const key = sharingKey(config, user);
    const connection = this.#connections.get(key) ?? this.#add(key, config);
    // A user that uses a server twice must release it twice.
    const member = { user };
    connection.members.add(member);
    return {
      config,
      state: () => connection.state,
      isConnecting: () => connection.isConnecting,
      definitions: async (signal) => (await connection.listed(signal)).listing.definitions,
      knownDefinitions: () => connection.connected?.listing.definitions,
      instructions: () => connection.instructions,
      hasResources: () => connection.connected?.client.getServerCapabilities()?.resources !== undefined,
      hasPrompts: () => connection.connected?.client.getServerCapabilities()?.prompts !== undefined,
      call: (call) => connection.call(call, user),
      listResources: async (signal) => listResources((await connection.ready(signal)).client, { config, signal }),
      listTemplates: async (signal) => listTemplates((await connection.ready(signal)).client, { config, signal }),
      listPrompts: async (signal) => {
        const { client } = await connection.ready(signal);
        return client.getServerCapabilities()?.prompts === undefined ? [] : listPrompts(client, { config, signal });
      },
      fillPrompt: async (name, values, signal) =>
        fillPrompt((await connection.ready(signal)).client, { config, name, values, signal }),
      probe: async (signal) => {
        const { probeServer } = await import("./probe.ts");
        return probeServer({ config, base: this.#base, token: connection.token.value, signal });
      },
      readResource: async (uri, signal) =>
        readResource((await connection.ready(signal)).client, { config, uri, signal }),
      readContents: async (uri, signal) =>
        readContents((await connection.ready(signal)).client, { config, uri, signal }),
      reconnect: () => connection.reconnect(),
      release: async () => {
        const wasUsing = connection.members.delete(member);
        if (!wasUsing || connection.members.size > 0) return;
        const removed = this.#remove(key, connection);
        // A running start may be an installation, which gets time to finish. `close` waits for it.
        if (!(isPackageRunner(config) && connection.isConnecting)) await removed;
      },
    };
  }

  /** Resolves when every server has ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const [key, connection] of this.#connections) void this.#remove(key, connection);
    await Promise.all(this.#closing);
    const watchdog = await this.#watchdog;
    watchdog?.close();
  }

  #add(key: string, config: McpServerConfig): McpConnection {
    const connection = new McpConnection({ config, base: this.#base, limits: this.#limits, withSlot: this.#withSlot });
    this.#connections.set(key, connection);
    return connection;
  }

  async #remove(key: string, connection: McpConnection): Promise<void> {
    if (this.#connections.get(key) === connection) this.#connections.delete(key);
    const closing = connection.close();
    this.#closing.add(closing);
    await closing.finally(() => this.#closing.delete(closing));
  }
}

/**
 * Users with the same key share a connection. The capabilities announced to the server are part of the key. Two kinds
 * of connection belong to one session:
 * - with elicitation or sampling: a request over one pipe does not name its call, and must not reach the user of
 * another session;
 * - with tokens of the session's host, because they are not for the calls of another session.
 */
function sharingKey(config: McpServerConfig, user: McpUser): string {
  const offers = [user.elicit !== undefined, user.sample !== undefined, user.apps ?? false];
  const { transport, tools, timeoutMs, name, scope, sandbox } = config;
  const asks = user.elicit !== undefined || user.sample !== undefined;
  const owners = [asks ? (user.owner ?? "") : "", transport.type === "stdio" ? "" : (user.tokens?.owner ?? "")];
  return JSON.stringify([name, scope, transport, tools, timeoutMs, sandbox ?? "", offers, user.roots ?? [], owners]);
}

async function startWatchdog(mark: string): ReturnType<OpenBase["watchdog"]> {
  const watchdog = await import("../shell/process/watchdog.ts");
  // The processes hold no file of ours, so they are found by mark and group only.
  return watchdog.startWatchdog({ mark, folder: `/dev/null/${mark}` });
}

/** Limits concurrency; the others wait in order. A connection that waits for the user gives up its slot meanwhile. */
function turns(most: number): WithSlot {
  const waiting: (() => void)[] = [];
  let busy = 0;
  const enter = async (): Promise<void> => {
    if (busy >= most) await new Promise<void>((resolve) => waiting.push(resolve));
    else busy++;
  };
  const leave = (): void => {
    const next = waiting.shift();
    if (next === undefined) busy--;
    else next();
  };
  return async (work, signal) => {
    await enter();
    try {
      signal.throwIfAborted();
      return await work(async (aside) => {
        leave();
        return aside().finally(enter);
      });
    } finally {
      leave();
    }
  };
}
