/** A session that is open in this server, and how its clients hear of it. */
import { deferred } from "../../lib/deferred.ts";
import type { TraceContext } from "../../lib/trace-context.ts";
import type { GithubStatus } from "../../model/github/github.ts";
import type { EventData, EventType, SessionEvent } from "../../protocol/event.ts";
import { encodeFrame } from "../../protocol/rpc/frame.ts";
import { isSidekickId } from "../../session/agents/sidekick-id.ts";
import { eventsOf } from "../../session/event-log.ts";
import type { RequestKind } from "../../session/requests/requests.ts";
import type { CloseReason, Session } from "../../session/session.ts";
import type { GivenSubagents } from "../../session/session-options.ts";
import { ClientCommands } from "../clients/client-commands.ts";
import { ClientShell } from "../clients/client-shell.ts";
import { ClientTasks } from "../clients/client-tasks.ts";
import type { Clients } from "../clients/clients.ts";
import { Interests } from "../clients/interests.ts";
import type { Connection } from "../connection.ts";
import { DerivedEvents } from "../derived-events.ts";
import { ExtensionHost, type ExtensionHostPorts } from "../extensions/extension-host.ts";
import { GithubTelemetry } from "../github-telemetry.ts";
import { noManagedSettings } from "../managed-settings.ts";
import { EventWindow } from "./event-window.ts";
import type { OptionsOfSession } from "./session-options.ts";

export interface LiveSessionOptions {
  /** Called before the session is closed for good. Must not reject. */
  readonly beforeClose?: ((live: LiveSession) => Promise<void>) | undefined;
  /** Told after every event that is kept. */
  onKept(live: LiveSession): void;
  /** Told of every event that its clients are told of. */
  onTold(event: SessionEvent): void;
  /** How its extensions get in. */
  readonly extensions: Pick<ExtensionHostPorts, "accept" | "profile">;
}

/** Parts of what comes whole later. */
const repeatedLater: ReadonlySet<EventType> = new Set<EventType>([
  "assistant.message_delta",
  "assistant.reasoning_delta",
  "assistant.tool_call_delta",
  "assistant.streaming_delta",
  "tool.execution_partial_result",
]);

const gatedRequests = [
  ["mcp.oauth_required", "mcp_oauth"],
  ["session_limits_exhausted.requested", "session_limits_exhausted"],
] as const;

export class LiveSession {
  #session: Session;
  /** What was told, for clients that ask. */
  readonly window = new EventWindow((from, to) => this.#session.past.read(from, to));
  readonly interests = new Interests(() => this.#attend());
  readonly telemetry = new GithubTelemetry();
  readonly #derived = new DerivedEvents(
    () => this.#session,
    ({ type, data, agentId }) => this.announce(type, data, agentId),
  );
  /** Tasks that clients run themselves. */
  readonly tasks: ClientTasks;
  /** Sampling requests of MCP servers that clients have run, by the ids the clients chose. */
  readonly samplings = new Map<string, AbortController>();
  /** Commands that people run beside the agent. */
  readonly shell = new ClientShell(() => this.#session);
  /** Of this opening: places in `window` mean nothing in another. */
  readonly openedAs = crypto.randomUUID();
  readonly clients: Clients;
  /** Programs that join it by themselves. */
  readonly extensions: ExtensionHost;
  #commands: ClientCommands;
  /** What a client that shows apps of MCP servers says of itself. */
  appsContext: Readonly<Record<string, unknown>> = {};
  /** What its clients have said of it so far. */
  options: OptionsOfSession = {};
  /** The trace in which it was last opened, for messages that come with none. */
  trace: TraceContext | undefined;
  /** What a client says of agents; it holds for the session however often it is made anew. */
  #subagents: GivenSubagents | undefined;
  /** Who a client says the session is on GitHub, where it does not leave that to us. */
  identity: GithubStatus | undefined;
  /** Set while it is made anew with other options: nothing is asked of it meanwhile. */
  reopening: Promise<void> | undefined;
  readonly #options: LiveSessionOptions;
  #touchedAt = performance.now();
  #stopListening: (() => void) | undefined;
  /** What is asked because a client wants to hear of it, and how to say that none does any longer. */
  readonly #attended = new Map<RequestKind, () => void>();
  #isReopening = false;
  #isParked = false;
  /** How many stored events clients have heard, or could have; undefined before anyone listens. */
  #known: number | undefined;

  constructor(session: Session, clients: Clients, options: LiveSessionOptions) {
    this.#session = session;
    this.clients = clients;
    this.#commands = this.#newCommands(session, clients);
    this.#options = options;
    this.extensions = this.#newExtensions(options.extensions);
    this.tasks = new ClientTasks(session.id, () => void this.session.say("session.background_tasks_changed", {}));
    clients.ready = (signal) => this.extensions.ready(signal);
    clients.serve(session);
  }

  #newExtensions(ports: LiveSessionOptions["extensions"]): ExtensionHost {
    const isThere = (): boolean => !this.session.end.signal.aborted;
    return new ExtensionHost({
      ...ports,
      port: () => this.session.settings.surroundings?.extensions,
      onChange: (all) => {
        const extensions = all.map(({ pid: _, ...extension }) => extension);
        if (isThere()) void this.session.say("session.extensions_loaded", { extensions });
      },
      warn: (message) => {
        if (isThere()) this.session.warn("extension", message);
      },
    });
  }

  #newCommands(session: Session, clients: Clients): ClientCommands {
    return new ClientCommands(session, clients, () => this.interests.has("command.queued"));
  }

  get session(): Session {
    return this.#session;
  }

  get commands(): ClientCommands {
    return this.#commands;
  }

  /** True while another process has it; the next request takes it back. */
  get isParked(): boolean {
    return this.#isParked;
  }

  /** Lets another process have it. Its clients stay. */
  async park(): Promise<void> {
    this.#isParked = true;
    await this.#closeQuietly();
  }

  async #closeQuietly(): Promise<void> {
    this.#commands.close();
    this.#isReopening = true;
    await this.session.close().finally(() => {
      this.#isReopening = false;
    });
    this.#stopListening?.();
    this.#known = this.session.past.count;
  }

  /** The same session, closed and made anew. Its clients stay, and hear how it goes on. */
  async reopen(make: () => Promise<Session>): Promise<void> {
    await this.#closeQuietly();
    this.#session = await make();
    this.#isParked = false;
    if (this.#subagents) this.giveSubagents(this.#subagents);
    this.#commands = this.#newCommands(this.session, this.clients);
    this.clients.serve(this.session);
    this.#attended.clear();
    this.#attend();
    await this.listen();
    this.#derived.reopened();
    this.extensions.sync();
  }

  /** Some things are asked only where a client wants to hear of it: tokens for MCP servers, more credits. */
  #attend(): void {
    for (const [eventType, kind] of gatedRequests) {
      const isWanted = this.interests.has(eventType);
      const detach = this.#attended.get(kind);
      if (isWanted && !detach) this.#attended.set(kind, this.#session.attach({ kinds: [kind] }));
      if (isWanted || !detach) continue;
      detach();
      this.#attended.delete(kind);
    }
  }

  giveSubagents(given: GivenSubagents): void {
    this.#subagents = given;
    this.session.settings.surroundings?.giveSubagents?.(given);
  }

  #last: Promise<unknown> = Promise.resolve();

  /** Runs changes that read and write the same file one after another. */
  inOrder<T>(change: () => Promise<T>): Promise<T> {
    const next = this.#last.then(change, change);
    this.#last = next.catch(() => undefined);
    return next;
  }

  get id(): string {
    return this.session.id;
  }

  /** Since when nobody has asked anything of it, and nothing has happened in it. */
  get touchedAt(): number {
    return this.#touchedAt;
  }

  touch(): void {
    this.#touchedAt = performance.now();
  }

  /** Whether closing it now would cut something off. */
  get isBusy(): boolean {
    const { session } = this;
    if (session.settings.surroundings?.factories?.isBusy) return true;
    return session.isWorking || session.isPending || session.requests.pending().length > 0;
  }

  /** From its first event in this process on, whoever is attached is told everything. Resolves after that first one. */
  async listen(): Promise<void> {
    const { past } = this.session;
    const begun = deferred<void>();
    if (this.#known === undefined) this.window.begin(past.inherited);
    // Another process may have written to it while it was closed here.
    const known = this.#known ?? past.inherited;
    const missed = known < past.inherited ? await past.read(known, past.inherited) : [];
    for (const [index, event] of missed.entries()) this.#tellNew(event, known + index, begun.resolve);
    const hear = (event: SessionEvent): void => this.#tellNew(event, this.session.past.toldCount, begun.resolve);
    let position = past.inherited;
    let isReplayed = false;
    // Events that were told before anyone listened are replayed; their positions follow from their order.
    this.#stopListening = this.session.follow((event) => {
      if (isReplayed || event.ephemeral) hear(event);
      else this.#tellNew(event, position++, begun.resolve);
    }, "own");
    isReplayed = true;
    if (this.session.settings.resumed !== "silent") await begun.promise;
    this.announce("session.managed_settings_resolved", noManagedSettings);
  }

  #tellNew(event: SessionEvent, position: number, onBegun: () => void): void {
    this.window.add(event, position);
    if (event.type === "session.session_limits_changed") {
      this.options = { ...this.options, sessionLimits: event.data.sessionLimits };
    }
    // A client that hears of an end would leave a session that goes on.
    if (this.#isReopening && event.type === "session.shutdown") return;
    onBegun();
    this.touch();
    this.broadcast(event);
    this.#derived.follow(event);
    this.#options.onTold(event);
    if (!event.ephemeral) this.#options.onKept(this);
  }

  /** This client hears no more of it. */
  leave(connection: Connection): void {
    this.touch();
    this.interests.forget(connection);
    this.tasks.left(connection);
    this.clients.leave(connection);
  }

  /** Events that clients have been told of, or could have been: what comes later comes by notification, once. */
  async toldEvents(): Promise<SessionEvent[]> {
    const events: SessionEvent[] = [];
    for await (const event of eventsOf(this.session)) events.push(event);
    return events;
  }

  /** A line of a client's for all who watch. Resolves with the id of its event once they have been told. */
  async log(given: string, options: { level: "info" | "warning" | "error"; ephemeral: boolean }): Promise<string> {
    const { session } = this;
    const message = session.settings.redactor?.text(given) ?? given;
    const type = `session.${options.level}` as const;
    if (options.ephemeral) {
      const event = this.#passing(type, { [`${options.level}Type`]: "notification", message });
      this.broadcast(event);
      return event.id;
    }
    const said =
      type === "session.info"
        ? session.say(type, { infoType: "notification", message })
        : type === "session.warning"
          ? session.say(type, { warningType: "notification", message })
          : session.say(type, { errorType: "notification", message });
    const id = session.events.at(-1)?.id ?? "";
    await said;
    return id;
  }

  broadcast(event: SessionEvent): void {
    // Clients take the last answer they hear for the answer to their message; a sidekick answers nobody.
    if (event.type === "assistant.message" && isSidekickId(event.agentId)) return;
    const isPart = repeatedLater.has(event.type);
    const connections = this.clients.listeners(isPart && event.agentId !== undefined);
    if (connections.length === 0) return;
    const frame = encodeFrame({ jsonrpc: "2.0", method: "session.event", params: { sessionId: this.id, event } });
    const about = { sessionId: this.id, isRepeatedLater: isPart };
    for (const connection of connections) connection.tell(frame, about);
  }

  /** Sends all clients an event that is not stored. */
  announce<T extends EventType>(type: T, data: EventData<T>, agentId?: string): void {
    this.broadcast({ ...this.#passing(type, data), ...(agentId !== undefined && { agentId }) });
  }

  /** An event for one client alone: what the others have been told before. */
  tell(connection: Connection, type: EventType, data: object): void {
    const params = { sessionId: this.id, event: this.#passing(type, data) };
    connection.tell(encodeFrame({ jsonrpc: "2.0", method: "session.event", params }), {
      sessionId: this.id,
      isRepeatedLater: false,
    });
  }

  /** An event that is not the session's own, and is kept nowhere. */
  #passing(type: EventType, data: object): SessionEvent {
    const event = { id: crypto.randomUUID(), timestamp: new Date().toISOString(), ephemeral: true, type, data };
    return { ...event, parentId: this.session.events.at(-1)?.id ?? null } as SessionEvent;
  }

  /** Closes it in memory; what it kept stays. Clients hear its last words. */
  async close(reason?: CloseReason): Promise<void> {
    this.commands.close();
    await this.tasks.close();
    if (!reason?.isDeleted) await this.#options.beforeClose?.(this);
    try {
      await this.session.close(reason);
    } finally {
      this.#stopListening?.();
      await this.extensions.close();
    }
  }
}
