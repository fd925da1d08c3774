/**
 * The connection to one server, shared by all users with the same settings. It opens on first use, reopens after a
 * loss, and closes when the last user leaves.
 */
import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { CallToolResult } from "@modelcontextprotocol/client";
import { plural } from "../../lib/text.ts";
import { ToolError } from "../tool-error.ts";
import { cleanLine, cleanText } from "./bounds.ts";
import { callTool, type McpCall } from "./call.ts";
import { listTools, type ToolListing } from "./definitions.ts";
import { isUnauthorized } from "./oauth/oauth-challenge.ts";
import type { HeldToken, TokenSource } from "./oauth/oauth-host.ts";
import { type McpList, type OpenBase, type OpenClient, OpenError, openConnection, type PauseClock } from "./open.ts";
import { connectMs, isPackageRunner } from "./package-runner.ts";
import type { McpAnswerers, ServerCall } from "./requests.ts";
import type { McpServerConfig, McpStatus, McpToolDefinition } from "./server.ts";
import { type CallClock, CallTimeout, callClock } from "./tasks/call-clock.ts";

export interface McpServerState {
  readonly status: McpStatus;
  /** Why it failed, or why a sign-in is needed. */
  readonly error?: string;
}

/** A user of servers: a session. */
export interface McpUser extends McpAnswerers {
  /** The session's id. A connection over which the server may ask questions is used by this owner alone. */
  readonly owner?: string;
  /** Folders announced to the server, absolute. */
  readonly roots?: readonly string[];
  /** True when it shows apps of servers. */
  readonly apps?: boolean;
  /** The source of tokens for remote servers, when the host program provides them. */
  readonly tokens?: TokenSource;
  onStatus?(serverName: string, state: McpServerState): void;
  onToolsChanged?(serverName: string, definitions: readonly McpToolDefinition[]): void;
  onListChanged?(serverName: string, what: McpList): void;
  /** A message for the user: a slow start, dropped tools. */
  onNotice?(serverName: string, message: string): void;
  /** Log messages of the server, for debugging. */
  onLog?(serverName: string, level: string, text: string): void;
}

export interface ConnectionLimits {
  readonly slowMs: number;
  /** Maximum time to connect for a command that installs its package. */
  readonly installMs?: number;
  readonly backoffMs: number;
  readonly restarts: number;
  readonly restartWindowMs: number;
}

export interface McpConnectionOptions {
  readonly config: McpServerConfig;
  readonly base: OpenBase;
  readonly limits: ConnectionLimits;
  readonly withSlot: WithSlot;
}

/** Runs the work when a connection slot is free; the work can give up the slot for a while. */
export type WithSlot = <T>(work: (stepAside: PauseClock) => Promise<T>, signal: AbortSignal) => Promise<T>;

interface ListedClient extends OpenClient {
  listing: ToolListing;
  /** The number of change notifications before this listing. */
  listedAt: number;
}

const MAX_INSTRUCTIONS_CHARACTERS = 2000;
const MAX_BACKOFF_MS = 5000;
/** Limits automatic listings of a server that changes its tools endlessly; a call lists again in any case. */
const MAX_RELISTS = 100;
const RELIST_AFTER_MS = 300;
/** Listings that one call waits for. */
const MAX_LOOKS = 3;

export class McpConnection {
  readonly members = new Set<{ readonly user: McpUser }>();
  readonly #options: McpConnectionOptions;
  readonly #calls = new Set<ServerCall>();
  readonly #stop = new AbortController();
  #connecting: { readonly clock: CallClock; readonly stepAside: PauseClock } | undefined;
  token: HeldToken = {};
  #state: McpServerState = { status: "pending" };
  #connected: ListedClient | undefined;
  #opening: Promise<ListedClient> | undefined;
  #starts: number[] = [];
  #isLegacy = false;
  #changes = 0;
  #relists = 0;
  #relisting: Promise<void> | undefined;
  #relistSoon: NodeJS.Timeout | undefined;

  constructor(options: McpConnectionOptions) {
    this.#options = options;
  }

  get state(): McpServerState {
    return this.#state;
  }

  get isConnecting(): boolean {
    return this.#opening !== undefined;
  }

  get connected(): ListedClient | undefined {
    return this.#connected;
  }

  get instructions(): string | undefined {
    const text = cleanText(this.#connected?.client.getInstructions(), MAX_INSTRUCTIONS_CHARACTERS).trim();
    return text === "" ? undefined : text;
  }

  /** Connects when needed. An abort ends the wait, not the connecting: others may wait for it too. */
  async ready(signal: AbortSignal): Promise<ListedClient> {
    signal.throwIfAborted();
    if (this.#stop.signal.aborted) throw this.#error("is stopped");
    if (this.#connected !== undefined) return this.#connected;
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined;
    });
    return rejectWhenAborted(this.#opening, signal);
  }

  /** Like `ready`, with a listing made after the server's last change notification. */
  async listed(signal: AbortSignal): Promise<ListedClient> {
    for (let look = 0; look <= MAX_LOOKS; look++) {
      const connected = await this.ready(signal);
      if (connected.listedAt === this.#changes) return connected;
      this.#relisting ??= this.#relist(connected).finally(() => {
        this.#relisting = undefined;
      });
      await rejectWhenAborted(this.#relisting, signal);
    }
    throw this.#error("changes its tools faster than they can be listed, so the tool was not called.");
  }

  async call(call: McpCall, user: McpUser): Promise<CallToolResult> {
    const connected = await this.listed(call.signal);
    const { definition } = call;
    const current = connected.listing.definitions.find(({ name }) => name === definition.name);
    if (current !== undefined && !isDeepStrictEqual(current, definition))
      throw this.#error(`has just changed its tool ${cleanLine(definition.name, 100)}, so it was not called.`);
    const begin = (asking: ServerCall): (() => void) => {
      this.#calls.add(asking);
      return () => this.#calls.delete(asking);
    };
    const { client, tasks, diagnosis } = connected;
    try {
      return await callTool({ client, tasks, diagnosis, config: this.#options.config, answerers: user, begin }, call);
    } catch (error) {
      if (!(error instanceof ToolError) || !(await isUnauthorized(error.cause))) throw error;
      await this.#drop(connected);
      throw this.#needsSignIn();
    }
  }

  /** Ends the connection and clears its failures and its token; the next use connects again. */
  async reconnect(): Promise<void> {
    const { reason } = this.#stop.signal;
    if (reason !== undefined) return;
    this.#starts = [];
    this.token = {};
    await this.#opening?.catch(() => undefined);
    await this.#drop(this.#connected);
    this.#setState({ status: "pending" });
  }

  async close(): Promise<void> {
    this.#stop.abort(this.#error("is stopped"));
    await this.#opening?.catch(() => undefined);
    await this.#drop(this.#connected);
    this.#setState({ status: "stopped" });
  }

  async #open(): Promise<ListedClient> {
    const { withSlot, limits, config } = this.#options;
    await this.#waitForRestart();
    const { signal } = this.#stop;
    return withSlot(async (stepAside) => {
      this.#starts.push(performance.now());
      this.#setState({ status: "pending" });
      const slow = setTimeout(() => this.#notice(slowText(config, limits)), limits.slowMs);
      const limitMs = connectMs(config, limits.installMs);
      const clock = callClock({ silenceMs: limitMs, totalMs: limitMs });
      this.#connecting = { clock, stepAside };
      try {
        return await this.#connect(AbortSignal.any([signal, clock.signal]));
      } catch (error) {
        throw await this.#failed(error);
      } finally {
        clearTimeout(slow);
        clock.stop();
        this.#connecting = undefined;
      }
    }, signal);
  }

  async #connect(signal: AbortSignal): Promise<ListedClient> {
    const { config, base } = this.#options;
    const source = this.#tokenSource();
    const opened = await openConnection({
      config,
      base,
      requests: {
        serverName: config.name,
        offers: { elicit: this.#offers("elicit"), sample: this.#offers("sample"), apps: this.#offers("apps") },
        roots: this.#users().find(({ roots }) => roots !== undefined)?.roots ?? [],
        findCall: () => this.#asking(),
      },
      isLegacy: this.#isLegacy,
      signal,
      whileAsking: (work) => this.#whileAsking(work),
      ...(source && {
        tokens: { held: this.token, requestToken: (wanted) => source.request(wanted, this.#stop.signal) },
      }),
      onToolsChanged: () => this.#changed(),
      onListChanged: (what) => this.#tell((user) => user.onListChanged?.(config.name, what)),
      onLog: (level, text) => this.#tell((user) => user.onLog?.(config.name, level, text)),
      onWarning: (message) => this.#notice(message),
    });
    const connected: ListedClient = { ...opened, listing: { definitions: [], notices: [] }, listedAt: this.#changes };
    try {
      connected.listing = await this.#list(opened, signal);
    } catch (error) {
      await opened.close();
      throw new OpenError(error, opened.diagnosis());
    }
    this.#isLegacy = opened.isLegacy;
    this.#connected = connected;
    void opened.closed.then(() => this.#lost(connected));
    for (const notice of connected.listing.notices) this.#notice(notice);
    this.#setState({ status: "connected" });
    return connected;
  }

  async #list({ client }: OpenClient, signal: AbortSignal): Promise<ToolListing> {
    const { config } = this.#options;
    const { tools } = config;
    if (client.getServerCapabilities()?.tools === undefined) return { definitions: [], notices: [] };
    const { definitions, notices } = await listTools(client, config, signal);
    return { notices, definitions: definitions.filter((tool) => tools.includes("*") || tools.includes(tool.name)) };
  }

  /** Invalidates the listing immediately. Users that only observe are notified of the new tools a little later. */
  #changed(): void {
    this.#changes++;
    clearTimeout(this.#relistSoon);
    this.#relistSoon = setTimeout(() => {
      if (this.#connected === undefined || ++this.#relists > MAX_RELISTS) return;
      void this.listed(this.#stop.signal).catch(() => undefined);
    }, RELIST_AFTER_MS).unref();
  }

  async #relist(connected: ListedClient): Promise<void> {
    const { name, timeoutMs } = this.#options.config;
    const listedAt = this.#changes;
    const signal = AbortSignal.any([this.#stop.signal, AbortSignal.timeout(timeoutMs)]);
    const listing = await this.#list(connected, signal).catch((error: unknown) => {
      const what = `changed its tools but did not list them: ${cleanLine(String(error))}`;
      this.#notice(what);
      throw this.#error(what);
    });
    if (this.#connected !== connected) return;
    connected.listing = listing;
    connected.listedAt = listedAt;
    for (const notice of listing.notices) this.#notice(notice);
    this.#tell((user) => user.onToolsChanged?.(name, listing.definitions));
  }

  /** The first start and some restarts are immediate; after that a server that keeps ending must wait. */
  async #waitForRestart(): Promise<void> {
    const { limits } = this.#options;
    const now = performance.now();
    this.#starts = this.#starts.filter((start) => now - start < limits.restartWindowMs);
    const count = this.#starts.length;
    if (count === 0) return;
    if (count > limits.restarts) {
      const rest = Math.ceil(((this.#starts[0] ?? now) + limits.restartWindowMs - now) / 1000);
      const why = this.#state.error === undefined ? "" : ` Last failure: ${this.#state.error}`;
      throw this.#error(`stopped ${plural(count, "time")} shortly after its start; try again in ${rest} s.${why}`);
    }
    await delay(Math.min(MAX_BACKOFF_MS, limits.backoffMs * 2 ** (count - 1)), undefined, {
      signal: this.#stop.signal,
    });
  }

  async #failed(error: unknown): Promise<unknown> {
    if (this.#stop.signal.aborted) return this.#stop.signal.reason;
    const limitMs = connectMs(this.#options.config, this.#options.limits.installMs);
    const cause = error instanceof OpenError ? error.cause : error;
    if (await isUnauthorized(cause)) {
      this.#starts.pop();
      return this.#needsSignIn();
    }
    const what = cause instanceof CallTimeout ? `no answer within ${limitMs / 1000} s` : messageOf(cause);
    const diagnosis = error instanceof OpenError ? error.diagnosis : "";
    const reason = [cleanLine(what, 500), diagnosis].filter((part) => part !== "").join("; ");
    this.#setState({ status: "failed", error: reason });
    return this.#error(`could not be reached: ${reason}`);
  }

  #needsSignIn(): ToolError {
    const { name } = this.#options.config;
    const message = "asks for a sign-in";
    this.#setState({ status: "needs-auth", error: message });
    const advice = this.#tokenSource()
      ? "The program that runs this session provided no valid token."
      : `Only the user can do that: /mcp login ${name} in the session, or troupe mcp login ${name}`;
    return this.#error(`${message}. ${advice}`);
  }

  #tokenSource(): TokenSource | undefined {
    return this.#users().find(({ tokens }) => tokens?.canAsk())?.tokens;
  }

  #lost(connected: ListedClient): void {
    if (this.#connected !== connected) return;
    this.#connected = undefined;
    void connected.close();
    const why = connected.diagnosis();
    this.#setState({ status: "failed", error: why === "" ? "the connection was closed" : why });
  }

  async #drop(connected: ListedClient | undefined): Promise<void> {
    if (connected === undefined) return;
    this.#connected = undefined;
    await connected.close();
    await connected.client.close().catch(() => undefined);
  }

  /** A request over one pipe does not name its call; with calls of several users it is ambiguous. */
  #asking(): ServerCall | string {
    const [first, ...others] = this.#calls;
    if (first === undefined) return "Requests are accepted only during a call.";
    if (others.some(({ answerers }) => answerers !== first.answerers))
      return "Calls of several sessions are in progress, so the request cannot be assigned to one.";
    return others.length === 0 ? first : { ...first, toolCallId: undefined };
  }

  /** Pauses all calls: a remote server may make any of them wait for a sign-in. */
  #whileAsking<T>(work: () => Promise<T>): Promise<T> {
    const pauses = [...this.#calls].map(({ whileAsking }) => whileAsking);
    const { clock, stepAside } = this.#connecting ?? {};
    return [...pauses, ...(clock && stepAside ? [clock.pauseFor, stepAside] : [])].reduce(
      (inner, pause) => () => pause(inner),
      work,
    )();
  }

  #offers(what: "elicit" | "sample" | "apps"): boolean {
    return this.#users().some((user) => (user[what] ?? false) !== false);
  }

  #setState(state: McpServerState): void {
    this.#state = state;
    this.#tell((user) => user.onStatus?.(this.#options.config.name, state));
  }

  #notice(message: string): void {
    this.#tell((user) => user.onNotice?.(this.#options.config.name, message));
  }

  #tell(say: (user: McpUser) => void): void {
    for (const user of this.#users()) say(user);
  }

  #users(): McpUser[] {
    return [...new Set([...this.members].map(({ user }) => user))];
  }

  #error(what: string): ToolError {
    return new ToolError(`The MCP server ${this.#options.config.name} ${what}`);
  }
}

function slowText(config: McpServerConfig, { slowMs }: ConnectionLimits): string {
  const why = isPackageRunner(config) ? " Its package may still be downloading." : "";
  return `needs more than ${slowMs / 1000} s to start.${why}`;
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message} (${error.cause.message})` : error.message;
}

function rejectWhenAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}
