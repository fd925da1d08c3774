/**
 * The MCP servers of one session. This folder opens servers for sessions, agents and apps. Tool lists are remembered,
 * so a session offers a server's tools without starting it. An unknown server is connected with the first message,
 * within a time limit. A server that fails costs only its own tools and a notice.
 */
import { isDeepStrictEqual } from "node:util";
import { wrapInTag } from "../../lib/quoting.ts";
import type { Stamp } from "../../lib/stamp.ts";
import type { McpPins } from "../../tools/mcp/config/pins.ts";
import type { McpConnections, McpServerPort } from "../../tools/mcp/connections.ts";
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

interface Known {
  /** Replaced each time the server is enabled again. */
  server: McpServerPort;
  /** The capabilities that `server` was prepared with. */
  announced: string;
  isOff: boolean;
  definitions: readonly McpToolDefinition[];
}

/** The MCP servers of a session, opened on first use. */
export class SessionMcp {
  readonly #options: SessionMcpOptions;
  readonly #known = new Map<string, Known>();
  #opening: Promise<void> | undefined;
  #tools: readonly Tool[] = [];
  #resourceTools: readonly Tool[] = [];
  #isLoaded = false;

  constructor(options: SessionMcpOptions) {
    this.#options = options;
  }

  get tools(): readonly Tool[] {
    return this.#tools;
  }

  /** The tools that read resources, once a connected server has some. They stay, so that the prompt changes once. */
  get resourceTools(): readonly Tool[] {
    return this.#resourceTools;
  }

  get servers(): readonly McpServerPort[] {
    return [...this.#known.values()].map(({ server, isOff }) => (isOff ? switchedOff(server) : server));
  }

  /** Usage instructions of connected servers. */
  get instructions(): string {
    return instructionsOf(this.#inUse().map(({ server }) => server));
  }

  /**
   * Returns the tools that the server listed last, in this session or an earlier one; undefined if it was never
   * connected.
   */
  definitions(serverName: string): readonly McpToolDefinition[] | undefined {
    const entry = this.#known.get(serverName);
    return entry?.server.knownDefinitions() ?? (entry?.definitions.length ? entry.definitions : undefined);
  }

  /** Resolves when `servers` is complete. Connects to none of them. */
  opened(): Promise<void> {
    this.#opening ??= this.#open();
    return this.#opening;
  }

  /** Allows asking the host again for a token that it did not provide before (default: for all servers). */
  askAgain(serverName?: string): void {
    this.#options.tokens.askAgain(serverName);
  }

  /** Connects servers whose tools are unknown. Resolves when all are connected or the time limit is reached. */
  async ready(signal: AbortSignal): Promise<void> {
    const { tokens, waitsForAll, stamp } = this.#options;
    await this.opened();
    await this.#renew();
    const strangers = this.#inUse().filter(
      ({ server, definitions }) =>
        definitions.length === 0 && server.state().status !== "failed" && !tokens.hasDeclined(server.config),
    );
    if (strangers.length === 0) return this.#loaded();
    const meetings = Promise.all(strangers.map((entry) => this.#connect(entry, signal)));
    if (waitsForAll) {
      await meetings;
      return this.#loaded();
    }
    const waited = new AbortController();
    const patience = stamp.sleep(PATIENCE_MS, AbortSignal.any([signal, waited.signal])).catch(() => undefined);
    await Promise.race([meetings, patience]);
    waited.abort();
    this.#loaded();
  }

  /** Disables or enables a server in the session. Returns false if there is no server of this name. */
  async setEnabled(name: string, enabled: boolean): Promise<boolean> {
    const { tokens, connections, onStatus } = this.#options;
    await this.opened();
    const entry = this.#known.get(name);
    if (!entry) return false;
    if (entry.isOff === !enabled) return true;
    entry.isOff = !enabled;
    tokens.askAgain(name);
    if (enabled) Object.assign(entry, this.#use(await connections(), entry.server.config));
    else await entry.server.release();
    onStatus(name, enabled ? entry.server.state().status : "disabled");
    await this.#refresh();
    return true;
  }

  async close(): Promise<void> {
    await this.#opening?.catch(() => undefined);
    await Promise.all(this.#inUse().map(({ server }) => server.release()));
  }

  #inUse(): Known[] {
    return [...this.#known.values()].filter(({ isOff }) => !isOff);
  }

  async #refresh(): Promise<void> {
    const { configs, reservedNames, onChange } = this.#options;
    const { mcpTools } = await import("../../tools/mcp/tools.ts");
    const pins = await this.#options.pins();
    this.#tools = mcpTools(this.#inUse(), {
      reservedNames,
      pins: { check: (definition) => checkAndPin(pins, configOf(configs, definition), definition) },
    });
    await this.#offerResources();
    onChange();
  }

  /** Returns whether they are offered since this call. */
  async #offerResources(): Promise<boolean> {
    const hasSome = this.#inUse().some(({ server }) => server.hasResources());
    if (!hasSome || this.#resourceTools.length > 0) return false;
    this.#resourceTools = (await import("../../tools/mcp/resources.ts")).resourceTools;
    return true;
  }

  async #open(): Promise<void> {
    const { configs } = this.#options;
    const [connections, pins] = await Promise.all([this.#options.connections(), this.#options.pins()]);
    for (const config of configs) {
      const definitions = pins.definitions(config) ?? [];
      this.#known.set(config.name, { ...this.#use(connections, config), isOff: false, definitions });
    }
    await this.#refresh();
  }

  #loaded(): void {
    if (!this.#isLoaded) this.#options.onLoaded?.();
    this.#isLoaded = true;
  }

  #use(connections: McpConnections, config: McpServerConfig): Pick<Known, "server" | "announced"> {
    const options = this.#options;
    const [roots, answerers] = [options.roots(), options.answerers(config.name)];
    const server = connections.use(config, {
      ...answerers,
      owner: options.owner,
      roots,
      tokens: options.tokens,
      apps: options.apps,
      onStatus: (name, { status, error }) => {
        options.onStatus(name, status, error);
        void this.#offerResources().then((isNew) => isNew && options.onChange());
      },
      onNotice: (name, message) => options.onNotice(`MCP server ${name}: ${message}`),
      onToolsChanged: (name, definitions) => void this.#learn(name, definitions),
      onListChanged: options.onListChanged,
    });
    return { server, announced: JSON.stringify([Object.keys(answerers), roots]) };
  }

  /** Prepares unconnected servers again if capabilities changed, because a client may have joined or left. */
  async #renew(): Promise<void> {
    const { answerers, roots } = this.#options;
    const connections = await this.#options.connections();
    let isRenewed = false;
    for (const entry of this.#inUse()) {
      const { server, announced } = entry;
      const { status } = server.state();
      if (status === "connected" || server.isConnecting()) continue;
      const now = [Object.keys(answerers(server.config.name)), roots()];
      if (JSON.stringify(now) === announced) continue;
      Object.assign(entry, this.#use(connections, server.config));
      void server.release();
      isRenewed = true;
    }
    if (isRenewed) await this.#refresh();
  }

  async #learn(name: string, definitions: readonly McpToolDefinition[]): Promise<void> {
    const entry = this.#known.get(name);
    if (!entry) return;
    const isOther = !isDeepStrictEqual(entry.definitions, definitions);
    entry.definitions = definitions;
    await this.#refresh();
    if (isOther) this.#options.onListChanged(name, "tools");
    await (await this.#options.pins()).remember(entry.server.config, definitions).catch(() => undefined);
  }

  async #connect({ server }: Known, signal: AbortSignal): Promise<void> {
    try {
      await this.#learn(server.config.name, await server.definitions(signal));
    } catch (error) {
      if (signal.aborted) return;
      const reason = error instanceof Error ? error.message : String(error);
      this.#options.onNotice(`MCP server ${server.config.name} is not there: ${reason}`);
    }
  }
}

const switchedOff = (server: McpServerPort): McpServerPort => ({
  ...server,
  state: () => ({ status: "disabled" }),
  hasResources: () => false,
});

function configOf(configs: readonly McpServerConfig[], definition: McpToolDefinition): McpServerConfig | undefined {
  return configs.find(({ name }) => name === definition.server);
}

/** Approves a new definition as it is. Calls are permitted before they get here. */
async function checkAndPin(
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
function instructionsOf(servers: readonly McpServerPort[]): string {
  const frames: string[] = [];
  let room = MAX_INSTRUCTIONS_CHARACTERS;
  for (const server of servers) {
    const text = server.instructions();
    if (!text) continue;
    const frame = wrapInTag("mcp_server_instructions", { server: server.config.name }, `${notOurs.trim()}\n\n${text}`);
    if (frame.length > room) return [...frames, "[Instructions of further MCP servers are left out.]"].join("\n\n");
    room -= frame.length;
    frames.push(frame);
  }
  return frames.join("\n\n");
}
