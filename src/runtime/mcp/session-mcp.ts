/**
 * The MCP servers of one session. This folder opens servers for sessions, agents and apps. Tool lists are remembered,
 * so a session offers a server's tools without starting it. An unknown server is connected with the first message,
 * within a time limit. A server that fails costs only its own tools and a notice.
 */
import { isDeepStrictEqual } from "node:util";
import { wrapped } from "../../lib/quoting.ts";
import type { Stamp } from "../../lib/stamp.ts";
import type { McpPins } from "../../tools/mcp/config/pins.ts";
import type { McpConnections, McpServer } from "../../tools/mcp/connections.ts";
import type { McpAnswerers } from "../../tools/mcp/requests.ts";
import type { McpServerConfig, McpStatus, McpToolDefinition } from "../../tools/mcp/server.ts";
import type { Tool } from "../../tools/tool.ts";
import notOurs from "./server-instructions.md";
import type { SessionTokens } from "./session-token-port.ts";

/** Limit for waiting for servers. Tools of slower ones are available with the next message. */
const PATIENCE_MS = 15_000;

export interface SessionMcpOptions {
  readonly configs: readonly McpServerConfig[];
  readonly owner: string;
  /** Folders reported to servers; read when a connection is prepared. */
  roots(): readonly string[];
  /** The server's requests that can be answered now; announced when it connects. */
  answerers(serverName: string): McpAnswerers;
  readonly stamp: Stamp;
  readonly reservedNames: Iterable<string>;
  readonly connections: () => Promise<McpConnections>;
  readonly pins: () => Promise<McpPins>;
  readonly tokens: SessionTokens;
  /** Waits for new servers as long as they may take to connect, not only for `PATIENCE_MS`. */
  readonly waitsForAll: boolean;
  /** The session's program shows apps of servers. */
  readonly apps: boolean;
  onStatus(serverName: string, status: McpStatus, error?: string): void;
  onNotice(message: string): void;
  /** Called when the tools change. */
  onChange(): void;
  /** Called when a list of one server changes. */
  onListChanged(serverName: string, what: "tools" | "resources" | "prompts"): void;
  /** Called once, when the servers are known and waiting for them has ended. */
  onLoaded?(): void;
}

export interface SessionMcp {
  readonly tools: readonly Tool[];
  readonly servers: readonly McpServer[];
  /**
   * Returns the tools that the server listed last, in this session or an earlier one; undefined if it was never
   * connected.
   */
  definitions(serverName: string): readonly McpToolDefinition[] | undefined;
  /** Usage instructions of connected servers. */
  readonly instructions: string;
  /** Resolves when `servers` is complete. Connects to none of them. */
  opened(): Promise<void>;
  /** Allows asking the host again for a token that it did not provide before (default: for all servers). */
  askAgain(serverName?: string): void;
  /** Connects servers whose tools are unknown. Resolves when all are connected or the time limit is reached. */
  ready(signal: AbortSignal): Promise<void>;
  /** Disables or enables a server in the session. Returns false if there is no server of this name. */
  setEnabled(name: string, enabled: boolean): Promise<boolean>;
  close(): Promise<void>;
}

interface Known {
  /** Replaced each time the server is enabled again. */
  server: McpServer;
  /** The capabilities that `server` was prepared with. */
  announced: string;
  isOff: boolean;
  definitions: readonly McpToolDefinition[];
}

export function sessionMcp(options: SessionMcpOptions): SessionMcp {
  const { configs, stamp } = options;
  const known = new Map<string, Known>();
  let opening: Promise<void> | undefined;
  let tools: readonly Tool[] = [];
  let isLoaded = false;

  const inUse = (): Known[] => [...known.values()].filter(({ isOff }) => !isOff);

  const refresh = async (): Promise<void> => {
    const { mcpTools } = await import("../../tools/mcp/tools.ts");
    const pins = await options.pins();
    tools = mcpTools(inUse(), {
      reservedNames: options.reservedNames,
      pins: { check: (definition) => checked(pins, configOf(configs, definition), definition) },
    });
    options.onChange();
  };

  const open = async (): Promise<void> => {
    const [connections, pins] = await Promise.all([options.connections(), options.pins()]);
    for (const config of configs) {
      known.set(config.name, {
        ...use(connections, config),
        isOff: false,
        definitions: pins.definitions(config) ?? [],
      });
    }
    await refresh();
  };

  const opened = (): Promise<void> => {
    opening ??= open();
    return opening;
  };

  const loaded = (): void => {
    if (!isLoaded) options.onLoaded?.();
    isLoaded = true;
  };

  const use = (connections: McpConnections, config: McpServerConfig): Pick<Known, "server" | "announced"> => {
    const [roots, answerers] = [options.roots(), options.answerers(config.name)];
    const server = connections.use(config, {
      ...answerers,
      owner: options.owner,
      roots,
      tokens: options.tokens,
      apps: options.apps,
      onStatus: (name, { status, error }) => options.onStatus(name, status, error),
      onNotice: (name, message) => options.onNotice(`MCP server ${name}: ${message}`),
      onToolsChanged: (name, definitions) => void learn(name, definitions),
      onListChanged: options.onListChanged,
    });
    return { server, announced: JSON.stringify([Object.keys(answerers), roots]) };
  };

  /** Prepares unconnected servers again if capabilities changed, because a client may have joined or left. */
  const renew = async (): Promise<void> => {
    const connections = await options.connections();
    let isRenewed = false;
    for (const entry of inUse()) {
      const { server, announced } = entry;
      const { status } = server.state();
      if (status === "connected" || server.isConnecting()) continue;
      const now = [Object.keys(options.answerers(server.config.name)), options.roots()];
      if (JSON.stringify(now) === announced) continue;
      Object.assign(entry, use(connections, server.config));
      void server.release();
      isRenewed = true;
    }
    if (isRenewed) await refresh();
  };

  const learn = async (name: string, definitions: readonly McpToolDefinition[]): Promise<void> => {
    const entry = known.get(name);
    if (!entry) return;
    const isOther = !isDeepStrictEqual(entry.definitions, definitions);
    entry.definitions = definitions;
    await refresh();
    if (isOther) options.onListChanged(name, "tools");
    await (await options.pins()).remember(entry.server.config, definitions).catch(() => undefined);
  };

  const meet = async ({ server }: Known, signal: AbortSignal): Promise<void> => {
    try {
      await learn(server.config.name, await server.definitions(signal));
    } catch (error) {
      if (signal.aborted) return;
      const reason = error instanceof Error ? error.message : String(error);
      options.onNotice(`MCP server ${server.config.name} is not there: ${reason}`);
    }
  };

  return {
    get tools() {
      return tools;
    },
    get servers() {
      return [...known.values()].map(({ server, isOff }) => (isOff ? switchedOff(server) : server));
    },
    get instructions() {
      return instructionsOf(inUse().map(({ server }) => server));
    },
    definitions(serverName) {
      const entry = known.get(serverName);
      return entry?.server.knownDefinitions() ?? (entry?.definitions.length ? entry.definitions : undefined);
    },
    opened,
    askAgain: (serverName) => options.tokens.askAgain(serverName),
    async ready(signal) {
      await opened();
      await renew();
      const strangers = inUse().filter(
        ({ server, definitions }) =>
          definitions.length === 0 && server.state().status !== "failed" && !options.tokens.hasDeclined(server.config),
      );
      if (strangers.length === 0) return loaded();
      const meetings = Promise.all(strangers.map((entry) => meet(entry, signal)));
      if (options.waitsForAll) {
        await meetings;
        return loaded();
      }
      const waited = new AbortController();
      const patience = stamp.sleep(PATIENCE_MS, AbortSignal.any([signal, waited.signal])).catch(() => undefined);
      await Promise.race([meetings, patience]);
      waited.abort();
      loaded();
    },
    async setEnabled(name, enabled) {
      await opened();
      const entry = known.get(name);
      if (!entry) return false;
      if (entry.isOff === !enabled) return true;
      entry.isOff = !enabled;
      options.tokens.askAgain(name);
      if (enabled) Object.assign(entry, use(await options.connections(), entry.server.config));
      else await entry.server.release();
      options.onStatus(name, enabled ? entry.server.state().status : "disabled");
      await refresh();
      return true;
    },
    async close() {
      await opening?.catch(() => undefined);
      await Promise.all(inUse().map(({ server }) => server.release()));
    },
  };
}

const switchedOff = (server: McpServer): McpServer => ({ ...server, state: () => ({ status: "disabled" }) });

function configOf(configs: readonly McpServerConfig[], definition: McpToolDefinition): McpServerConfig | undefined {
  return configs.find(({ name }) => name === definition.server);
}

/** Approves a new definition as it is. Calls are permitted before they get here. */
async function checked(
  pins: McpPins,
  config: McpServerConfig | undefined,
  definition: McpToolDefinition,
): Promise<"ok" | "changed" | "new"> {
  if (!config) return "changed";
  const verdict = pins.check(config, definition);
  if (verdict === "new") await pins.approve(config, [definition]).catch(() => undefined);
  return verdict;
}

const MAX_INSTRUCTIONS_CHARACTERS = 16_000;

/** Returns one frame per server. The connection quotes and limits each text; this limits their sum. */
function instructionsOf(servers: readonly McpServer[]): string {
  const frames: string[] = [];
  let room = MAX_INSTRUCTIONS_CHARACTERS;
  for (const server of servers) {
    const text = server.instructions();
    if (!text) continue;
    const frame = wrapped("mcp_server_instructions", { server: server.config.name }, `${notOurs.trim()}\n\n${text}`);
    if (frame.length > room) return [...frames, "[Instructions of further MCP servers are left out.]"].join("\n\n");
    room -= frame.length;
    frames.push(frame);
  }
  return frames.join("\n\n");
}
