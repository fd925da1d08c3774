/** The open sessions and the clients attached to each. Opens a session once, however many clients ask for it. */
import type { Readable, Writable } from "node:stream";
import { TroupeError } from "../protocol/errors.ts";
import { encodeFrame } from "../protocol/rpc/frame.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { SessionRequest } from "../runtime/session-request.ts";
import type { CloseReason, Session } from "../session/session.ts";
import { Clients } from "./clients/clients.ts";
import type { ClientConnection, ExtensionIdentity } from "./connection.ts";
import { admitExtension } from "./extensions/extension-join.ts";
import { ExtensionLauncher } from "./extensions/extension-launcher.ts";
import { withModelOptions } from "./model-tunnel/model-options.ts";
import { ModelTunnel } from "./model-tunnel/model-tunnel.ts";
import { describeSession, lifecycleMetadata } from "./sessions/describe-session.ts";
import { HostedSession, type HostedSessionOptions } from "./sessions/hosted-session.ts";
import {
  type CreateParams,
  clientProfile,
  type OptionsOfSession,
  optionsOf,
  type ResumeParams,
  requireServable,
  sessionRequest,
  traceOf,
} from "./sessions/session-options.ts";
import { type ClientStorage, StorageClient } from "./sessions/storage-client.ts";
import { warnWithoutEffect } from "./sessions/unused-options.ts";
import { UnusedSessions } from "./sessions/unused-sessions.ts";

export interface HubOptions extends Pick<HostedSessionOptions, "beforeClose"> {
  readonly runtime: Runtime;
  /** Command-line options that apply to every session. */
  readonly defaults: Omit<SessionRequest, "cwd">;
  readonly cwd: string;
  /** An unused session is closed after this time. */
  readonly idleMs?: number;
  /** Accepts the process of an extension as a client. */
  acceptExtension(streams: { input: Readable; output: Writable }, identity: ExtensionIdentity): ClientConnection;
}

type LifecycleType = "session.created" | "session.updated" | "session.deleted";

/** How long a process that holds an idle session may take to release it. */
const HAND_OVER_WAIT_MS = 5_000;

type Resumed = NonNullable<NonNullable<SessionRequest["resume"]>["event"]>;

export class Hub {
  readonly tunnel = new ModelTunnel();
  /** The client that stores the sessions, if one does. */
  readonly storageClient = new StorageClient();
  /** Plugin folders that clients set for all sessions opened later: bundled with a program, and additional ones. */
  readonly plugins: { builtin: readonly string[]; additional: readonly string[] } = { builtin: [], additional: [] };
  readonly #options: HubOptions;
  readonly #connections = new Set<ClientConnection>();
  readonly #hosted = new Map<string, HostedSession>();
  readonly #opening = new Map<string, Promise<HostedSession>>();
  readonly launcher = new ExtensionLauncher();
  readonly #unused: UnusedSessions;
  #isClosing = false;

  constructor(options: HubOptions) {
    this.#options = options;
    const { idleMs, runtime } = options;
    const close = (hosted: HostedSession): Promise<void> => this.#close(hosted);
    this.#unused = new UnusedSessions({ handOver: runtime.handOver, hosted: this.#hosted, idleMs, close });
  }

  connect(connection: ClientConnection): void {
    this.#connections.add(connection);
  }

  /** Sessions of the client stay open, so that it or another client can return. */
  disconnect(connection: ClientConnection): void {
    this.#connections.delete(connection);
    this.tunnel.forget(connection);
    this.launcher.forget(connection);
    for (const hosted of this.#hosted.values()) hosted.leave(connection);
    this.#unused.look();
    if (this.storageClient.forget(connection)) void this.#closeUnstored();
  }

  get connections(): ReadonlySet<ClientConnection> {
    return this.#connections;
  }

  find(sessionId: string): HostedSession | undefined {
    return this.#hosted.get(sessionId);
  }

  require(sessionId: string): HostedSession {
    const hosted = this.find(sessionId);
    if (!hosted) throw notFound(sessionId);
    return hosted;
  }

  async create(connection: ClientConnection, params: CreateParams): Promise<object> {
    requireServable(params);
    const sessionId = params.sessionId ?? crypto.randomUUID();
    // A client that chooses an existing id means that session.
    const isStored = this.#hosted.has(sessionId) || this.#opening.has(sessionId) || (await this.#isStored(sessionId));
    if (isStored) return this.resume(connection, { ...params, sessionId });
    const hosted = await this.#open(sessionId, { connection, params }, (request) =>
      this.#options.runtime.createSession({ ...request, sessionId }),
    );
    this.#tellAll("session.created", hosted);
    return describeSession(hosted);
  }

  async resume(connection: ClientConnection, params: ResumeParams): Promise<object> {
    requireServable(params);
    const { sessionId, continuePendingWork = false } = params;
    const open = this.#hosted.get(sessionId) ?? (await this.#opening.get(sessionId));
    if (open) return this.#rejoin(open, connection, params);
    if (!(await this.#isStored(sessionId))) throw notFound(sessionId);
    const resumed = params.disableResume ? "silent" : { sessionWasActive: false, continuePendingWork };
    const hosted = await this.#open(sessionId, { connection, params }, (request) =>
      this.#options.runtime.resumeSession(sessionId, {
        ...request,
        resume: { event: resumed, patienceMs: HAND_OVER_WAIT_MS, continuesPending: continuePendingWork },
      }),
    );
    hosted.session.queue.resume();
    return describeSession(hosted);
  }

  /** Like `resume`, for a process that this server started. */
  async joinExtension(connection: ClientConnection, params: ResumeParams, signal: AbortSignal): Promise<object> {
    const hosted = this.require(params.sessionId);
    await hosted.reopening;
    const { extensions, clients, session } = hosted;
    extensions.asked(connection);
    try {
      const { profile, grant } = await admitExtension(session, connection, { params, gone: signal });
      connection.requireConnected();
      clients.factories.declare(connection, { factory: params.factories, workflow: params.workflows });
      clients.join(connection, profile);
      extensions.joined(connection);
      return { ...describeSession(hosted), ...grant };
    } catch (error) {
      clients.factories.withdraw(connection);
      extensions.refused(connection, error instanceof Error ? error.message : String(error));
      throw error;
    }
  }

  /** Call when the process of an extension disconnected. */
  extensionGone(connection: ClientConnection): void {
    const hosted = this.#hosted.get(connection.extension?.sessionId ?? "");
    hosted?.leave(connection);
    void hosted?.extensions.handleDisconnect(connection);
  }

  /** Joins an open session. `continuePendingWork` decides if requests left pending are repeated or cancelled. */
  async #rejoin(hosted: HostedSession, connection: ClientConnection, params: ResumeParams): Promise<object> {
    const { continuePendingWork = false } = params;
    const sessionWasActive = hosted.clients.attached.length > 0;
    hosted.touch();
    await hosted.reopening;
    if (hosted.isHandedOver) await this.takeBack(hosted);
    connection.requireConnected();
    hosted.clients.join(connection, clientProfile(params));
    hosted.trace = traceOf(params);
    if (!sessionWasActive && !continuePendingWork && hosted.session.requests.pending().length > 0) {
      hosted.session.abort();
      await hosted.session.queue.whenIdle();
    }
    const resumed = params.disableResume ? "silent" : ({ sessionWasActive, continuePendingWork } as const);
    const isReopened = await this.reconfigure(hosted, optionsOf(params), resumed);
    if (!isReopened && resumed !== "silent") await hosted.session.record.rejoined(resumed);
    warnWithoutEffect(hosted.session, params);
    if (!sessionWasActive && continuePendingWork) hosted.session.requests.remind();
    return describeSession(hosted);
  }

  /**
   * Changes options of an open session by reopening it; `resumed` sets how that is announced. Returns false if nothing
   * changed, or if the session is busy: it then keeps its options and warns its clients.
   */
  async reconfigure(hosted: HostedSession, changes: OptionsOfSession, resumed: Resumed = "silent"): Promise<boolean> {
    const options = { ...hosted.options, ...changes };
    if (JSON.stringify(options) === JSON.stringify(hosted.options)) return false;
    const changed = Object.keys(changes).filter(
      (name) => JSON.stringify(Reflect.get(options, name)) !== JSON.stringify(Reflect.get(hosted.options, name)),
    );
    if (hosted.isBusy) {
      const message = `The session is busy; these options of a client were not used: ${changed.join(", ")}.`;
      hosted.session.record.warn("options", message);
      return false;
    }
    await this.#reopen(hosted, options, resumed).catch(async (error: unknown) => {
      // It is closed and could not be reopened. It can be resumed from its log.
      this.#hosted.delete(hosted.id);
      await hosted.extensions.close();
      throw error;
    });
    hosted.options = options;
    return true;
  }

  /** Reopens it here, if the process that has it now releases it. */
  async takeBack(hosted: HostedSession): Promise<void> {
    await (hosted.reopening ?? this.#reopen(hosted, hosted.options, "silent"));
  }

  async #reopen(hosted: HostedSession, options: OptionsOfSession, resumed: Resumed): Promise<void> {
    const resume = { event: resumed, patienceMs: HAND_OVER_WAIT_MS };
    const request = { ...this.#request(options, hosted.clients), resume };
    hosted.reopening = hosted.reopen(() => this.#options.runtime.resumeSession(hosted.id, request));
    await hosted.reopening.finally(() => {
      hosted.reopening = undefined;
      this.#unused.look();
    });
  }

  /** Detaches this client. The last client closes the session. */
  async leave(connection: ClientConnection, sessionId: string): Promise<void> {
    const hosted = this.#hosted.get(sessionId);
    if (!hosted) return;
    const isLast = !connection.extension && hosted.clients.attached.every((one) => one === connection);
    if (isLast) return this.#close(hosted);
    hosted.leave(connection);
    this.#unused.look();
  }

  /** Stops work and cancels pending requests. The session can be resumed. */
  async suspend(hosted: HostedSession): Promise<void> {
    await this.#close(hosted, { pending: "Session suspended" });
  }

  /** Closes it for all its clients. Its stored data stays. */
  async shutDown(hosted: HostedSession, reason: CloseReason): Promise<void> {
    await this.#close(hosted, reason);
  }

  async delete(sessionId: string): Promise<{ success: boolean; error?: string }> {
    const hosted = this.#hosted.get(sessionId);
    const isStored = await this.#isStored(sessionId);
    if (!hosted && !isStored) return { success: false, error: `Session file not found for ${sessionId}` };
    if (hosted) await this.#close(hosted, { isDeleted: true });
    const { store, past } = this.#options.runtime;
    if (await this.#isStored(sessionId)) await store.remove(sessionId);
    await past.remove(sessionId);
    this.#tellAll("session.deleted", { id: sessionId });
    return { success: true };
  }

  isOpen(sessionId: string): boolean {
    return this.#hosted.has(sessionId) || this.#opening.has(sessionId);
  }

  /** Closes it in memory for all its clients. Its stored data stays. */
  async closeSession(sessionId: string): Promise<void> {
    const hosted = this.#hosted.get(sessionId);
    if (hosted) await this.#close(hosted);
  }

  /** Closes every session. No session can be opened afterwards. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#unused.close();
    await Promise.allSettled(this.#opening.values());
    await this.#closeAll();
  }

  /** Stores the sessions of this server with a client. Throws if a session is open already. */
  async keepWith(connection: ClientConnection, storage: ClientStorage): Promise<void> {
    if (this.#hosted.size > 0 || this.#opening.size > 0) {
      throw new TroupeError(
        "usage",
        "Sessions are already open. A client that stores sessions must register before the first one opens.",
      );
    }
    this.storageClient.hold(connection, storage);
    await this.#options.runtime.keepSessionsWith(this.storageClient.provider(storage));
  }

  /** Closes sessions whose storage client disconnected. */
  async #closeUnstored(): Promise<void> {
    const message =
      "The client that stores this session has disconnected. The session is closed; resume it when the client is connected again.";
    for (const hosted of this.#hosted.values()) void hosted.log(message, { level: "error", ephemeral: true });
    await this.#closeAll();
  }

  async #closeAll(): Promise<void> {
    await Promise.allSettled([...this.#hosted.values()].map((hosted) => this.#close(hosted)));
  }

  async #isStored(sessionId: string): Promise<boolean> {
    return (await this.#options.runtime.store.revision(sessionId)) !== undefined;
  }

  async #open(
    sessionId: string,
    by: { connection: ClientConnection; params: CreateParams },
    make: (request: SessionRequest) => Promise<Session>,
  ): Promise<HostedSession> {
    if (this.#isClosing) throw new TroupeError("failed", "The server is shutting down.");
    const clients = new Clients(sessionId);
    clients.join(by.connection, clientProfile(by.params));
    const options = optionsOf(by.params);
    const opening = make(this.#request(options, clients)).then(async (session) => {
      const hosted = new HostedSession(session, clients, {
        beforeClose: this.#options.beforeClose,
        onStoredEvent: () => this.#tellAll("session.updated", hosted),
        onSessionEvent: (event) => hosted.telemetry.tell(event, hosted, this.#connections),
        extensions: {
          accept: ({ fromExtension: input, toExtension: output }, { id, name, scope }) =>
            this.#options.acceptExtension({ input, output }, { id, name, scope, sessionId, factories: new Map() }),
          profile: (extension) => this.launcher.profile(extension),
        },
      });
      hosted.options = options;
      hosted.trace = traceOf(by.params);
      this.#hosted.set(sessionId, hosted);
      // The client may have disconnected while its session was created.
      if (by.connection.isClosed) clients.leave(by.connection);
      await hosted.listen();
      warnWithoutEffect(session, by.params);
      hosted.extensions.sync();
      return hosted;
    });
    this.#opening.set(sessionId, opening);
    try {
      return await opening;
    } finally {
      this.#opening.delete(sessionId);
      this.#unused.look();
    }
  }

  #request(options: OptionsOfSession, clients: Clients): SessionRequest {
    const { cwd: own, defaults } = this.#options;
    const { pluginDirectories = [] } = defaults.workspace ?? {};
    const { builtin, additional } = this.plugins;
    const workspace = { ...defaults.workspace, pluginDirectories: [...pluginDirectories, ...builtin, ...additional] };
    const cwd = this.storageClient.initialCwd ?? own;
    const asked = sessionRequest(options, { cwd, ...defaults, workspace });
    const request = withModelOptions(asked, options, (providerName) => clients.token(providerName));
    const { isUsed, fetch, openSocket: socket } = this.tunnel;
    return {
      ...request,
      ...(isUsed && { model: { ...request.model, fetch, socket } }),
      client: { ...request.client, program: clients.program },
    };
  }

  async #close(hosted: HostedSession, reason?: CloseReason): Promise<void> {
    this.#hosted.delete(hosted.id);
    this.#unused.look();
    await hosted.close({ leavesPending: true, ...reason });
    this.tunnel.release(hosted.id);
  }

  #tellAll(type: LifecycleType, hosted: HostedSession | { readonly id: string }): void {
    const metadata =
      "session" in hosted ? lifecycleMetadata(hosted.session.events, hosted.session.record.title) : undefined;
    const params = { type, sessionId: hosted.id, ...(metadata && { metadata }) };
    const frame = encodeFrame({ jsonrpc: "2.0", method: "session.lifecycle", params });
    for (const connection of this.#connections)
      if (connection.isAdmitted) connection.hint(frame, { mustArrive: type !== "session.updated" });
  }
}

const notFound = (sessionId: string): TroupeError => new TroupeError("usage", `Session not found: ${sessionId}`);
