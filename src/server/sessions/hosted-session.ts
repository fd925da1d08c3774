/**
 * This folder holds the server's side of sessions: their events, options, files and diffs. A live session is one that
 * is open in this server. It sends the session's events to its clients.
 */

import { deferred } from "../../lib/deferred.ts";
import { defined } from "../../lib/defined.ts";
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
import type { ClientConnection } from "../connection.ts";
import { DerivedEvents } from "../derived-events.ts";
import { ExtensionHost, type ExtensionHostPorts } from "../extensions/extension-host.ts";
import { GithubTelemetry } from "../github-telemetry.ts";
import { noManagedSettings } from "../managed-settings.ts";
import { EventWindow } from "./event-window.ts";
import { OpenRequestEvents } from "./open-requests.ts";
import type { OptionsOfSession } from "./session-options.ts";

export interface HostedSessionOptions {
  /** Called before the session is closed for good. Must not reject. */
  readonly beforeClose?: ((hosted: HostedSession) => Promise<void>) | undefined;
  /** Called after every stored event. */
  onStoredEvent(hosted: HostedSession): void;
  /** Called for every event that is sent to clients. */
  onSessionEvent(event: SessionEvent): void;
  /** Callbacks that start extensions and accept them as clients. */
  readonly extensions: Pick<ExtensionHostPorts, "accept" | "profile">;
}

/** Deltas of messages that are sent whole later. */
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

export class HostedSession {
  #session: Session;
  /** The sent events, for clients that poll. */
  readonly window = new EventWindow((from, to) => this.#session.record.past.read(from, to));
  readonly interests = new Interests(() => this.#attend());
  readonly telemetry = new GithubTelemetry();
  readonly openRequests = new OpenRequestEvents();
  readonly #derived = new DerivedEvents(
    () => this.#session,
    ({ type, data, agentId }) => this.announce(type, data, agentId),
  );
  /** Tasks that clients run themselves. */
  readonly tasks: ClientTasks;
  /** Sampling requests of MCP servers that clients have run, by the ids the clients chose. */
  readonly samplings = new Map<string, AbortController>();
  /** Commands that users run beside the agent. */
  readonly shell = new ClientShell(() => this.#session);
  /** Id of this opening. Positions in `window` are valid only for it. */
  readonly openedAs = crypto.randomUUID();
  readonly clients: Clients;
  /** Extensions, which join it as clients. */
  readonly extensions: ExtensionHost;
  #commands: ClientCommands;
  /** The context of a client that shows apps of MCP servers. */
  appsContext: Readonly<Record<string, unknown>> = {};
  /** The options that its clients have set so far. */
  options: OptionsOfSession = {};
  /** The trace in which it was last opened, for messages without one. */
  trace: TraceContext | undefined;
  /** Subagent options of a client. They stay when the session is reopened. */
  #subagents: GivenSubagents | undefined;
  /** The GitHub identity that a client set for the session, if any. */
  identity: GithubStatus | undefined;
  /** Set while the session is reopened with other options. No request reaches it meanwhile. */
  reopening: Promise<void> | undefined;
  readonly #options: HostedSessionOptions;
  #touchedAt = performance.now();
  #stopListening: (() => void) | undefined;
  /** Request kinds that are enabled because a client registered an interest, with callbacks that disable them. */
  readonly #attended = new Map<RequestKind, () => void>();
  #isReopening = false;
  #isHandedOver = false;
  /** Number of stored events that clients have received or could have; undefined before the first listener. */
  #known: number | undefined;

  constructor(session: Session, clients: Clients, options: HostedSessionOptions) {
    this.#session = session;
    this.clients = clients;
    this.#commands = this.#newCommands(session, clients);
    this.#options = options;
    this.extensions = this.#newExtensions(options.extensions);
    this.tasks = new ClientTasks(
      session.id,
      () => void this.session.record.emit("session.background_tasks_changed", {}),
    );
    clients.ready = (signal) => this.extensions.ready(signal);
    clients.serve(session);
  }

  #newExtensions(ports: HostedSessionOptions["extensions"]): ExtensionHost {
    const isThere = (): boolean => !this.session.queue.closed.aborted;
    return new ExtensionHost({
      ...ports,
      port: () => this.session.workspace.services?.extensions,
      onChange: (all) => {
        const extensions = all.map(({ pid: _, ...extension }) => extension);
        if (isThere()) void this.session.record.emit("session.extensions_loaded", { extensions });
      },
      warn: (message) => {
        if (isThere()) this.session.record.warn("extension", message);
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

  /** True while another process has it. The next request reopens it here. */
  get isHandedOver(): boolean {
    return this.#isHandedOver;
  }

  /** Releases it to another process. Its clients stay attached. */
  async handOver(): Promise<void> {
    this.#isHandedOver = true;
    await this.#closeQuietly();
  }

  async #closeQuietly(): Promise<void> {
    this.#commands.close();
    this.#isReopening = true;
    await this.session.close().finally(() => {
      this.#isReopening = false;
    });
    this.#stopListening?.();
    this.openRequests.clear();
    this.#known = this.session.record.past.count;
  }

  /** Closes and reopens the same session. Its clients stay attached and receive the events that follow. */
  async reopen(make: () => Promise<Session>): Promise<void> {
    await this.#closeQuietly();
    this.#session = await make();
    this.#isHandedOver = false;
    if (this.#subagents) this.giveSubagents(this.#subagents);
    this.#commands = this.#newCommands(this.session, this.clients);
    this.clients.serve(this.session);
    this.#attended.clear();
    this.#attend();
    await this.listen();
    this.#derived.reopened();
    this.extensions.sync();
  }

  /** Enables request kinds that need an interested client: tokens for MCP servers, more credits. */
  #attend(): void {
    for (const [eventType, kind] of gatedRequests) {
      const isWanted = this.interests.has(eventType);
      const detach = this.#attended.get(kind);
      if (isWanted && !detach) this.#attended.set(kind, this.#session.requests.attach({ kinds: [kind] }));
      if (isWanted || !detach) continue;
      detach();
      this.#attended.delete(kind);
    }
  }

  giveSubagents(given: GivenSubagents): void {
    this.#subagents = given;
    this.session.workspace.services?.giveSubagents?.(given);
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

  /** The time of the last request or event. */
  get touchedAt(): number {
    return this.#touchedAt;
  }

  touch(): void {
    this.#touchedAt = performance.now();
  }

  /** Whether closing it now would interrupt work. */
  get isBusy(): boolean {
    const { session } = this;
    if (session.workspace.services?.factories?.isBusy) return true;
    return session.queue.isWorking || session.queue.isPending || session.requests.pending().length > 0;
  }

  /** Sends every event of this process, from the first on, to attached clients. Resolves after the first event. */
  async listen(): Promise<void> {
    const { past } = this.session.record;
    const begun = deferred<void>();
    if (this.#known === undefined) this.window.begin(past.inherited);
    // Another process may have written events while the session was closed here.
    const known = this.#known ?? past.inherited;
    const missed = known < past.inherited ? await past.read(known, past.inherited) : [];
    for (const [index, event] of missed.entries()) this.#tellNew(event, known + index, begun.resolve);
    const onEvent = (event: SessionEvent): void =>
      this.#tellNew(event, this.session.record.past.deliveredCount, begun.resolve);
    let position = past.inherited;
    let isReplayed = false;
    // Events from before the first listener are replayed. Their positions follow from their order.
    this.#stopListening = this.session.record.follow((event) => {
      if (isReplayed || event.ephemeral) onEvent(event);
      else this.#tellNew(event, position++, begun.resolve);
    }, "own");
    isReplayed = true;
    if (this.session.record.isAnnounced) await begun.promise;
    this.announce("session.managed_settings_resolved", noManagedSettings);
  }

  #tellNew(event: SessionEvent, position: number, onBegun: () => void): void {
    this.window.add(event, position);
    if (event.type === "session.session_limits_changed") {
      this.options = { ...this.options, sessionLimits: event.data.sessionLimits };
    }
    // A client that receives the shutdown event would leave a session that continues.
    if (this.#isReopening && event.type === "session.shutdown") return;
    onBegun();
    this.touch();
    this.openRequests.follow(event);
    this.broadcast(event);
    this.#derived.follow(event);
    this.#options.onSessionEvent(event);
    if (!event.ephemeral) this.#options.onStoredEvent(this);
  }

  /** Detaches this client. */
  leave(connection: ClientConnection): void {
    this.touch();
    this.interests.forget(connection);
    this.tasks.handleDisconnect(connection);
    this.clients.leave(connection);
  }

  /** Returns the events that clients have received or could have. Later events arrive once, by notification. */
  async deliveredEvents(): Promise<SessionEvent[]> {
    const events: SessionEvent[] = [];
    for await (const event of eventsOf(this.session)) events.push(event);
    return events;
  }

  /** Sends a client's log line to all clients. Resolves with the id of its event when they have received it. */
  async log(given: string, options: { level: "info" | "warning" | "error"; ephemeral: boolean }): Promise<string> {
    const { session } = this;
    const message = session.record.redactor?.text(given) ?? given;
    const type = `session.${options.level}` as const;
    if (options.ephemeral) {
      const event = this.#passing(type, { [`${options.level}Type`]: "notification", message });
      this.broadcast(event);
      return event.id;
    }
    const said =
      type === "session.info"
        ? session.record.emit(type, { infoType: "notification", message })
        : type === "session.warning"
          ? session.record.emit(type, { warningType: "notification", message })
          : session.record.emit(type, { errorType: "notification", message });
    const id = session.events.at(-1)?.id ?? "";
    await said;
    return id;
  }

  broadcast(event: SessionEvent): void {
    // Clients take the last answer as the answer to their message. A sidekick's message is no answer.
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
    this.broadcast({ ...this.#passing(type, data), ...defined({ agentId }) });
  }

  /** Sends an event to one client, which missed it when the others received it. */
  tell(connection: ClientConnection, type: EventType, data: object): void {
    const params = { sessionId: this.id, event: this.#passing(type, data) };
    connection.tell(encodeFrame({ jsonrpc: "2.0", method: "session.event", params }), {
      sessionId: this.id,
      isRepeatedLater: false,
    });
  }

  /** Creates an event that is not stored. */
  #passing(type: EventType, data: object): SessionEvent {
    const event = { id: crypto.randomUUID(), timestamp: new Date().toISOString(), ephemeral: true, type, data };
    return { ...event, parentId: this.session.events.at(-1)?.id ?? null } as SessionEvent;
  }

  /** Closes it in memory. Its stored data stays. Clients receive its last events. */
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
