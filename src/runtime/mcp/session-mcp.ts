/**
 * The MCP servers of one session. What a server listed before is remembered, so a session offers its tools without
 * starting it; a server nobody has met yet is connected with the first message, for a bounded time. A server that is
 * not there costs its own tools and a notice.
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

/** A session that waits for its servers waits no longer than this; what comes later is there with the next message. */
const PATIENCE_MS = 15_000;

export interface SessionMcpOptions {
  readonly configs: readonly McpServerConfig[];
  readonly owner: string;
  /** Folders that servers are told about; read when a connection is prepared. */
  roots(): readonly string[];
  /** The questions of a server that can be answered now; announced to the server when it is connected. */
  answerers(serverName: string): McpAnswerers;
  readonly stamp: Stamp;
  readonly reservedNames: Iterable<string>;
  readonly connections: () => Promise<McpConnections>;
  readonly pins: () => Promise<McpPins>;
  readonly tokens: SessionTokens;
  /** Waits for new servers as long as they may take to connect, not only for `PATIENCE_MS`. */
  readonly waitsForAll: boolean;
  /** The program of the session shows apps of servers. */
  readonly apps: boolean;
  onStatus(serverName: string, status: McpStatus, error?: string): void;
  onNotice(message: string): void;
  /** The tools are not what they were. */
  onChange(): void;
  /** What one server lists is not what it was. */
  onListChanged(serverName: string, what: "tools" | "resources" | "prompts"): void;
  /** Once: it is known which servers there are, and how far each has come in the time they were waited for. */
  onLoaded?(): void;
}

export interface SessionMcp {
  readonly tools: readonly Tool[];
  readonly servers: readonly McpServer[];
  /** The tools that the server listed last, in this session or an earlier one; undefined when it was never connected. */
  definitions(serverName: string): readonly McpToolDefinition[] | undefined;
  /** What connected servers say about their use. */
  readonly instructions: string;
  /** Nothing is connected by this; resolves when `servers` has them all. */
  opened(): Promise<void>;
  /** Whoever was asked for a token of the server and brought none may be asked again. All servers unless named. */
  askAgain(serverName?: string): void;
  /** Connects what must be connected to know its tools; resolves when all are there or their time is up. */
  ready(signal: AbortSignal): Promise<void>;
  /** Takes a server out of the session, or back in. False when the session has none of this name. */
  setEnabled(name: string, enabled: boolean): Promise<boolean>;
  close(): Promise<void>;
}

interface Known {
  /** Another one each time it is taken back in. */
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

  /** A server that is not connected yet is told the capabilities of now: a client may have joined or left since. */
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

/** A call is judged before it gets here: what was permitted once is agreed to, as it was then. */
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

/** One frame per server. The texts were quoted and bounded by the connection; together they have a limit too. */
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
