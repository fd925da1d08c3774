/** The sessions that are open and the clients attached to each. Opens a session once, however many clients ask for it. */
import type { Readable, Writable } from "node:stream";
import { TroupeError } from "../protocol/errors.ts";
import { encodeFrame } from "../protocol/rpc/frame.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { SessionRequest } from "../runtime/session-request.ts";
import type { CloseReason, Session } from "../session/session.ts";
import { Clients } from "./clients/clients.ts";
import type { Connection, ExtensionIdentity } from "./connection.ts";
import { admitExtension } from "./extensions/extension-join.ts";
import { ExtensionLauncher } from "./extensions/extension-launcher.ts";
import { modelRequest } from "./model-tunnel/model-options.ts";
import { ModelTunnel } from "./model-tunnel/model-tunnel.ts";
import { described, lifecycleMetadata } from "./sessions/described.ts";
import { LiveSession, type LiveSessionOptions } from "./sessions/live-session.ts";
import { type KeptPlace, SessionKeeper } from "./sessions/session-keeper.ts";
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
import { warnWithoutEffect } from "./sessions/unused-options.ts";

export interface HubOptions extends Pick<LiveSessionOptions, "beforeClose"> {
  readonly runtime: Runtime;
  /** What the command line says of every session. */
  readonly defaults: Omit<SessionRequest, "cwd">;
  readonly cwd: string;
  /** A session that nobody has used for so long is closed. */
  readonly idleMs?: number;
  /** Lets the program of an extension in as a client. */
  acceptExtension(streams: { input: Readable; output: Writable }, identity: ExtensionIdentity): Connection;
}

type LifecycleType = "session.created" | "session.updated" | "session.deleted";

/** A session without clients is kept in memory this long, for them to come back to. */
const DETACHED_MS = 30 * 60_000;
const LOOK_MS = 500;
/** How long another process may take to let go of a session it does nothing with. */
const PATIENCE_MS = 5_000;

export class Hub {
  readonly tunnel = new ModelTunnel();
  /** The client that keeps the sessions, where one does. */
  readonly keeper = new SessionKeeper();
  /** Folders of plugins that clients give for all sessions opened from then on: those a program comes with, and others. */
  readonly plugins: { builtin: readonly string[]; additional: readonly string[] } = { builtin: [], additional: [] };
  readonly #options: HubOptions;
  readonly #connections = new Set<Connection>();
  readonly #live = new Map<string, LiveSession>();
  readonly #opening = new Map<string, Promise<LiveSession>>();
  readonly launcher = new ExtensionLauncher();
  #look: NodeJS.Timeout | undefined;
  #isClosing = false;

  constructor(options: HubOptions) {
    this.#options = options;
  }

  connect(connection: Connection): void {
    this.#connections.add(connection);
  }

  /** What it was attached to stays open, for it or another to come back to. */
  disconnect(connection: Connection): void {
    this.#connections.delete(connection);
    this.tunnel.forget(connection);
    this.launcher.forget(connection);
    for (const live of this.#live.values()) live.leave(connection);
    if (this.keeper.forget(connection)) void this.#closeUnkept();
  }

  get connections(): ReadonlySet<Connection> {
    return this.#connections;
  }

  find(sessionId: string): LiveSession | undefined {
    return this.#live.get(sessionId);
  }

  require(sessionId: string): LiveSession {
    const live = this.find(sessionId);
    if (!live) throw notFound(sessionId);
    return live;
  }

  async create(connection: Connection, params: CreateParams): Promise<object> {
    requireServable(params);
    const sessionId = params.sessionId ?? crypto.randomUUID();
    // A client that chooses an id twice means the same session.
    const isKept = this.#live.has(sessionId) || this.#opening.has(sessionId) || (await this.#isKept(sessionId));
    if (isKept) return this.resume(connection, { ...params, sessionId });
    const live = await this.#open(sessionId, { connection, params }, (request) =>
      this.#options.runtime.createSession({ ...request, sessionId }),
    );
    this.#tellAll("session.created", live);
    return described(live);
  }

  async resume(connection: Connection, params: ResumeParams): Promise<object> {
    requireServable(params);
    const { sessionId, continuePendingWork = false } = params;
    const open = this.#live.get(sessionId) ?? (await this.#opening.get(sessionId));
    if (open) return this.#rejoin(open, connection, params);
    if (!(await this.#isKept(sessionId))) throw notFound(sessionId);
    const resumed = params.disableResume ? "silent" : { sessionWasActive: false, continuePendingWork };
    const live = await this.#open(sessionId, { connection, params }, (request) =>
      this.#options.runtime.resumeSession(sessionId, {
        ...{ ...request, resumed, patienceMs: PATIENCE_MS },
        continuesPending: continuePendingWork,
      }),
    );
    live.session.goOn();
    return described(live);
  }

  /** As `resume`, for a program that this server has started. */
  async joinExtension(connection: Connection, params: ResumeParams, signal: AbortSignal): Promise<object> {
    const live = this.require(params.sessionId);
    await live.reopening;
    const { extensions, clients, session } = live;
    extensions.asked(connection);
    try {
      const { profile, grant } = await admitExtension(session, connection, { params, gone: signal });
      connection.requireThere();
      clients.factories.declare(connection, { factory: params.factories, workflow: params.workflows });
      clients.join(connection, profile);
      extensions.joined(connection);
      return { ...described(live), ...grant };
    } catch (error) {
      clients.factories.withdraw(connection);
      extensions.refused(connection, error instanceof Error ? error.message : String(error));
      throw error;
    }
  }

  /** The program of an extension has let go of us. */
  extensionGone(connection: Connection): void {
    const live = this.#live.get(connection.extension?.sessionId ?? "");
    live?.leave(connection);
    void live?.extensions.left(connection);
  }

  /** Whoever comes to a session that others left finds its open requests, or has them ended. */
  async #rejoin(live: LiveSession, connection: Connection, params: ResumeParams): Promise<object> {
    const { continuePendingWork = false } = params;
    const sessionWasActive = live.clients.attached.length > 0;
    live.touch();
    await live.reopening;
    if (live.isParked) await this.takeBack(live);
    connection.requireThere();
    live.clients.join(connection, clientProfile(params));
    live.trace = traceOf(params);
    if (!sessionWasActive && !continuePendingWork && live.session.requests.pending().length > 0) {
      live.session.abort();
      await live.session.whenIdle();
    }
    const resumed = params.disableResume ? "silent" : ({ sessionWasActive, continuePendingWork } as const);
    const isReopened = await this.reconfigure(live, optionsOf(params), resumed);
    if (!isReopened && resumed !== "silent") await live.session.rejoined(resumed);
    warnWithoutEffect(live.session, params);
    if (!sessionWasActive && continuePendingWork) live.session.requests.remind();
    return described(live);
  }

  /**
   * Other options for an open session. Most of them are what it is made with, so it is made anew; that it was is told as
   * `resumed` says. False when nothing is different. A session at work goes on as it is, and its clients are told.
   */
  async reconfigure(
    live: LiveSession,
    changes: OptionsOfSession,
    resumed: NonNullable<SessionRequest["resumed"]> = "silent",
  ): Promise<boolean> {
    const options = { ...live.options, ...changes };
    if (JSON.stringify(options) === JSON.stringify(live.options)) return false;
    const changed = Object.keys(changes).filter(
      (name) => JSON.stringify(Reflect.get(options, name)) !== JSON.stringify(Reflect.get(live.options, name)),
    );
    if (live.isBusy) {
      const message = `The session is at work; these options of a client were not used: ${changed.join(", ")}.`;
      live.session.warn("options", message);
      return false;
    }
    await this.#reopen(live, options, resumed).catch(async (error: unknown) => {
      // It is closed and could not be made anew; what it kept is there to be resumed.
      this.#live.delete(live.id);
      await live.extensions.close();
      throw error;
    });
    live.options = options;
    return true;
  }

  /** From the process that has it now, if it lets go. */
  async takeBack(live: LiveSession): Promise<void> {
    await (live.reopening ?? this.#reopen(live, live.options, "silent"));
  }

  async #reopen(
    live: LiveSession,
    options: OptionsOfSession,
    resumed: NonNullable<SessionRequest["resumed"]>,
  ): Promise<void> {
    const request = { ...this.#request(options, live.clients), resumed, patienceMs: PATIENCE_MS };
    live.reopening = live.reopen(() => this.#options.runtime.resumeSession(live.id, request));
    await live.reopening.finally(() => {
      live.reopening = undefined;
    });
  }

  /** This client has done with the session; the last one closes it. */
  async leave(connection: Connection, sessionId: string): Promise<void> {
    const live = this.#live.get(sessionId);
    if (!live) return;
    const isLast = !connection.extension && live.clients.attached.every((one) => one === connection);
    if (isLast) await this.#close(live);
    else live.leave(connection);
  }

  /** Work stops and what waits for an answer is cancelled; the session can be resumed. */
  async suspend(live: LiveSession): Promise<void> {
    await this.#close(live, { pending: "Session suspended" });
  }

  /** Ends it for all its clients; what it kept stays. */
  async shutDown(live: LiveSession, reason: CloseReason): Promise<void> {
    await this.#close(live, reason);
  }

  async delete(sessionId: string): Promise<{ success: boolean; error?: string }> {
    const live = this.#live.get(sessionId);
    const isKept = await this.#isKept(sessionId);
    if (!live && !isKept) return { success: false, error: `Session file not found for ${sessionId}` };
    if (live) await this.#close(live, { isDeleted: true });
    const { store, past } = this.#options.runtime;
    if (await this.#isKept(sessionId)) await store.remove(sessionId);
    await past.remove(sessionId);
    this.#tellAll("session.deleted", { id: sessionId });
    return { success: true };
  }

  isOpen(sessionId: string): boolean {
    return this.#live.has(sessionId) || this.#opening.has(sessionId);
  }

  /** Closes it in memory for all its clients; what it kept stays. */
  async closeSession(sessionId: string): Promise<void> {
    const live = this.#live.get(sessionId);
    if (live) await this.#close(live);
  }

  /** Closes every session; none is opened after. */
  async close(): Promise<void> {
    this.#isClosing = true;
    clearInterval(this.#look);
    await Promise.allSettled(this.#opening.values());
    await this.#closeAll();
  }

  /** From now on a client keeps the sessions of this server; it must be asked for before there are any. */
  async keepWith(connection: Connection, place: KeptPlace): Promise<void> {
    if (this.#live.size > 0 || this.#opening.size > 0) {
      throw new TroupeError(
        "usage",
        "Sessions are open already; a client that keeps them must say so before the first.",
      );
    }
    this.keeper.hold(connection, place);
    await this.#options.runtime.keepSessionsWith(this.keeper.provider(place));
  }

  /** What nobody keeps any more cannot go on. */
  async #closeUnkept(): Promise<void> {
    const message =
      "The client that keeps this session has left. The session is closed; resume it when the client is back.";
    for (const live of this.#live.values()) void live.log(message, { level: "error", ephemeral: true });
    await this.#closeAll();
  }

  async #closeAll(): Promise<void> {
    await Promise.allSettled([...this.#live.values()].map((live) => this.#close(live)));
  }

  async #isKept(sessionId: string): Promise<boolean> {
    return (await this.#options.runtime.store.revision(sessionId)) !== undefined;
  }

  async #open(
    sessionId: string,
    by: { connection: Connection; params: CreateParams },
    make: (request: SessionRequest) => Promise<Session>,
  ): Promise<LiveSession> {
    if (this.#isClosing) throw new TroupeError("failed", "The server is shutting down.");
    const clients = new Clients(sessionId);
    clients.join(by.connection, clientProfile(by.params));
    const options = optionsOf(by.params);
    const opening = make(this.#request(options, clients)).then(async (session) => {
      const live = new LiveSession(session, clients, {
        beforeClose: this.#options.beforeClose,
        onKept: () => this.#tellAll("session.updated", live),
        onTold: (event) => live.telemetry.tell(event, live, this.#connections),
        extensions: {
          accept: (program, { id, name, scope }) =>
            this.#options.acceptExtension(program, { id, name, scope, sessionId, factories: new Map() }),
          profile: (extension) => this.launcher.profile(extension),
        },
      });
      live.options = options;
      live.trace = traceOf(by.params);
      this.#live.set(sessionId, live);
      // It may have gone while its session was made.
      if (by.connection.isClosed) clients.leave(by.connection);
      await live.listen();
      warnWithoutEffect(session, by.params);
      live.extensions.sync();
      return live;
    });
    this.#opening.set(sessionId, opening);
    try {
      return await opening;
    } finally {
      this.#opening.delete(sessionId);
      this.#watch();
    }
  }

  #request(options: OptionsOfSession, clients: Clients): SessionRequest {
    const { cwd: own, defaults } = this.#options;
    const { pluginDirectories = [] } = defaults.workspace ?? {};
    const { builtin, additional } = this.plugins;
    const workspace = { ...defaults.workspace, pluginDirectories: [...pluginDirectories, ...builtin, ...additional] };
    const cwd = this.keeper.initialCwd ?? own;
    return {
      ...sessionRequest(options, { cwd, ...defaults, workspace }),
      ...modelRequest(options, (providerName) => clients.token(providerName)),
      ...(this.tunnel.isUsed && { modelFetch: this.tunnel.fetch, modelSocket: this.tunnel.openSocket }),
      program: clients.program,
    };
  }

  async #close(live: LiveSession, reason?: CloseReason): Promise<void> {
    this.#live.delete(live.id);
    await live.close({ leavesPending: true, ...reason });
    this.tunnel.release(live.id);
  }

  #tellAll(type: LifecycleType, live: LiveSession | { readonly id: string }): void {
    const metadata = "session" in live ? lifecycleMetadata(live.session.events, live.session.title) : undefined;
    const params = { type, sessionId: live.id, ...(metadata && { metadata }) };
    const frame = encodeFrame({ jsonrpc: "2.0", method: "session.lifecycle", params });
    for (const connection of this.#connections)
      if (connection.isAdmitted) connection.hint(frame, { mustArrive: type !== "session.updated" });
  }

  /** Looks after sessions that nobody uses, while there are any. */
  #watch(): void {
    if (this.#look !== undefined || this.#isClosing) return;
    this.#look = setInterval(() => this.#closeUnused(), LOOK_MS);
    this.#look.unref();
  }

  #isAskedFor(live: LiveSession): boolean {
    if (live.isParked || live.reopening) return false;
    return this.#options.runtime.handOver.isAskedFor(live.session.settings.log);
  }

  /** What is at work here stays here. */
  async #letGo(live: LiveSession): Promise<void> {
    const { handOver } = this.#options.runtime;
    const { log } = live.session.settings;
    if (live.isBusy) return handOver.refuse(log);
    await live.park();
    await handOver.answered(log);
  }

  #closeUnused(): void {
    const now = performance.now();
    for (const live of [...this.#live.values()]) {
      const isAttached = live.clients.attached.length > 0;
      const limit = this.#options.idleMs ?? (isAttached ? Number.POSITIVE_INFINITY : DETACHED_MS);
      if (now - live.touchedAt > limit && !live.isBusy) void this.#close(live);
      else if (this.#isAskedFor(live)) void this.#letGo(live);
    }
    if (this.#live.size > 0) return;
    clearInterval(this.#look);
    this.#look = undefined;
  }
}

const notFound = (sessionId: string): TroupeError => new TroupeError("usage", `Session not found: ${sessionId}`);
