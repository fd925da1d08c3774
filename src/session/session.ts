/**
 * A session: one conversation with one main agent, stored in one log. It accepts messages, runs the loop for one
 * message at a time, and emits everything that happens as events.
 * Main parts: `event-log.ts` (store and emit), `conversation.ts` (the fold), `turn/` (queue, turns, runs), `requests/`,
 * `agents/`, `budget/`, `compaction/`, `modes/`, `rewind/`. Files that all of these share belong in this folder.
 */

import { codeChanges } from "../checkpoints/code-changes.ts";
import { deferred } from "../lib/deferred.ts";
import { defined } from "../lib/defined.ts";
import { stoppable } from "../lib/node/stoppable.ts";
import { requireFree } from "../protocol/errors.ts";
import type { Emit, SessionEvent } from "../protocol/event.ts";
import { type AgentPool, newAgentPool } from "./agents/agent-pool.ts";
import { emitLimits } from "./budget/credits.ts";
import { Conversation } from "./conversation.ts";
import { EventLog, type Listener } from "./event-log.ts";
import { History } from "./history.ts";
import { ModeState } from "./modes/mode-state.ts";
import { closeOpen, recover, repairAtEnd } from "./recover.ts";
import { type Broker, newBroker, type RequestPort } from "./requests/broker.ts";
import { SessionRewinds } from "./rewind/session-rewinds.ts";
import type { CloseReason, SessionOptions } from "./session-options.ts";
import {
  agentsPort,
  type MainAgentPort,
  mainAgentPort,
  type SessionAgents,
  type SessionPermissions,
  type SessionQueue,
  type SessionWorkspace,
  workspacePort,
} from "./session-ports.ts";
import { SessionRecord } from "./session-record.ts";
import { shutdownData } from "./summary.ts";
import { AnswerRunner, type Outcome } from "./turn/answer-runner.ts";
import { type BoundHooks, bindSessionHooks } from "./turn/hooked-calls.ts";
import { MessageQueue } from "./turn/message-queue.ts";
import { PendingMessages, type SendOptions } from "./turn/pending-messages.ts";
import { runAll } from "./turn/run-all.ts";

export type { CloseReason, Outcome, SendOptions, SessionOptions };

export class Session {
  readonly id: string;
  /** Past events, title, totals and rewinds. */
  readonly record: SessionRecord;
  /** The main agent: its model, prompt, tools, context and mode. */
  readonly mainAgent: MainAgentPort;
  /** The agents that work for the main agent. */
  readonly agents: SessionAgents;
  /** Rules, approvals and hooks. */
  readonly permissions: SessionPermissions;
  /** The folder, and the services of the runtime for it. */
  readonly workspace: SessionWorkspace;
  readonly #options: SessionOptions;
  readonly #conversation = new Conversation();
  readonly #log: EventLog;
  readonly #emit: Emit;
  readonly #pending: PendingMessages;
  readonly #broker: Broker;
  readonly #pool: AgentPool | undefined;
  readonly #runner: AnswerRunner;
  readonly #queue: MessageQueue;
  readonly #rewinds: SessionRewinds;
  readonly #modes: ModeState;
  /** Aborts when the session is closed. */
  readonly #end = stoppable();
  #closing: Promise<void> | undefined;

  /** Creates a session. Its log begins with `session.start`. */
  static async create(options: SessionOptions): Promise<Session> {
    const session = new Session(options);
    session.record.started();
    await session.#pool?.restore();
    return session;
  }

  /** Resumes a session, however it ended. */
  static async resume(options: SessionOptions): Promise<Session> {
    requireFree(options.log);
    const session = new Session(options);
    const { events, removed, damage } = options.log;
    const { cwd, isOwnFolder } = options;
    const folder = { cwd, ...defined({ isOwnFolder }) };
    const pending = options.continuesPending ? { broker: session.#broker, ...folder } : undefined;
    const parts = { conversation: session.#conversation, log: session.#log, pending };
    const recorded = { all: [...removed, ...events], visible: events };
    session.#queue.pendingTurn = await recover({ ...parts, events: recorded, damage });
    await session.#rewinds.finish();
    await session.#pool?.restore();
    if (options.mode) await session.#modes.set(options.mode);
    const { name } = options;
    if (name !== undefined && name !== session.record.name) void session.#emit("troupe.session_named", { name });
    if (options.resumed !== "silent") await session.record.resumed(options.log.count);
    else await emitLimits(options.credits, events, session.#emit);
    return session;
  }

  private constructor(options: SessionOptions) {
    const { log } = options;
    this.#options = options;
    this.id = log.sessionId;
    this.record = new SessionRecord({
      options,
      events: () => this.#log,
      rewinds: () => this.#rewinds,
      hasBegun: () => this.#runner.begun,
    });
    this.#emit = this.record.emit;
    for (const event of log.events) this.#fold(event);
    this.record.preamble.restored();
    this.#pending = PendingMessages.restored(log.events);
    this.#log = this.#newLog();
    const { mode, onMode } = options;
    this.#modes = new ModeState({ events: log.events, mode, onMode, emit: this.#emit });
    this.#broker = newBroker(this.#log, options, { emit: this.#emit, agentMode: () => this.#modes.current });
    const hooks = options.hooks?.(this.#emit);
    const ownHooks = hooks && bindSessionHooks(hooks, { sessionId: this.id, cwd: options.cwd });
    const { policy, grants, reasonToRefuse } = options;
    this.permissions = { policy, grants, reasonToRefuse, hooks: ownHooks };
    this.#pool = options.agentPool && this.#newPool(options.agentPool, hooks);
    this.#runner = this.#newRunner(ownHooks);
    this.#queue = new MessageQueue({
      sessionId: this.id,
      options,
      pending: this.#pending,
      runner: this.#runner,
      emit: this.#emit,
      modes: this.#modes,
      closed: this.#end.signal,
      areAgentsBusy: () => this.#pool?.isBusy ?? false,
    });
    this.#rewinds = new SessionRewinds({
      options,
      log: this.#log,
      emit: this.#emit,
      conversation: this.#conversation,
      pending: this.#pending,
      agentPool: this.#pool,
      queue: this.#queue,
      modes: this.#modes,
      refold: () => this.#refold(),
      writeSummary: () => this.record.writeSummary(),
    });
    this.mainAgent = mainAgentPort(options, { modes: this.#modes, runner: this.#runner });
    this.agents = agentsPort(options, { pool: this.#pool, end: this.#end.signal });
    this.workspace = workspacePort(options);
  }

  /** Events that still matter: all of them in a short session, the result of `condense` in a long one. */
  get events(): readonly SessionEvent[] {
    return this.#log.events;
  }

  /** Waiting messages, and whether the session works. */
  get queue(): SessionQueue {
    return this.#queue;
  }

  /** Open requests to clients, for those who answer them or make more. */
  get requests(): RequestPort {
    return this.#broker;
  }

  /** Passes every event from now on to the listener, in order, including ephemeral ones. */
  subscribe(listener: Listener): () => void {
    return this.#log.subscribe(listener);
  }

  /**
   * Accepts a message and returns its id. When this resolves, the message is on disk and will get an outcome. A working
   * agent reads it before its next model call (`immediate`) or answers it afterwards (`enqueue`).
   */
  async send(options: SendOptions): Promise<string> {
    return (await this.#queue.accept(options)).messageId;
  }

  /** Like `send`, then waits until the session is idle and returns the message's outcome. */
  async sendAndWait(options: SendOptions, accepted?: (messageId: string) => void): Promise<Outcome> {
    const settled = deferred<Outcome>();
    const { messageId } = await this.#queue.accept(options, settled.resolve);
    accepted?.(messageId);
    const outcome = await settled.promise;
    await this.#queue.whenIdle();
    return outcome;
  }

  /** Aborts the current answer. Waiting messages are answered next. */
  abort(): void {
    this.#queue.abort();
  }

  /**
   * Aborts the current work, writes the totals and releases the log. Waiting messages stay in the log. A resumed session
   * answers them before its next message.
   */
  close(reason?: CloseReason): Promise<void> {
    this.#closing ??= this.#close(reason);
    return this.#closing;
  }

  async #close(reason: CloseReason | undefined): Promise<void> {
    this.#queue.refuse();
    if (reason?.leavesPending) {
      this.#broker.keepPending(this.#pool?.registry.detachable.calls);
      this.#pool?.registry.detachable.detach();
    }
    this.#pool?.registry.detachable.close();
    this.abort();
    this.#end.abort();
    await this.#broker.close(reason?.pending);
    this.#queue.wake();
    await this.#queue.whenIdle();
    // Each step runs even if earlier ones fail; the log is released last.
    await runAll([
      () => this.#pool?.close(),
      () => this.#options.compactions?.close(),
      () => this.#options.beforeShutdown?.(),
      () => this.#runner.end(),
      () => this.#emitShutdown(reason),
      () => this.#options.releaseResources?.(),
      () => this.#log.snapshot(),
      () => this.#options.log.close(),
    ]);
  }

  async #emitShutdown(reason: CloseReason | undefined): Promise<void> {
    const hasUserMessages = this.#log.events.some(({ type }) => type === "user.message");
    await repairAtEnd(this.#log, this.#options.stamp);
    if (!reason?.leavesPending) await closeOpen(this.#conversation, this.#emit);
    const changes = await codeChanges(this.#options.fileHistory, this.#log.events);
    const data = shutdownData({ ...this.record.facts(), error: reason?.error, codeChanges: changes });
    // Retry once: the disk may have failed only for a moment.
    await this.#emit("session.shutdown", data).catch(() => this.#log.repair());
    if (hasUserMessages) await this.record.writeSummary().catch(() => undefined); // lists fall back to the log
  }

  #newLog(): EventLog {
    const { redactor, log: store, stamp, minCondensed, onDefect } = this.#options;
    return new EventLog({
      store,
      stamp,
      redactor,
      minCondensed,
      fold: (event) => {
        this.#fold(event);
        this.record.totals.apply(event);
        this.record.budget.fold(event);
      },
      onListenerDefect: onDefect ?? ((error) => process.emitWarning(String(error), "TroupeListenerDefect")),
    });
  }

  #newPool(
    agentPool: NonNullable<SessionOptions["agentPool"]>,
    hooks: Parameters<typeof newAgentPool>[1]["hooks"],
  ): AgentPool {
    return newAgentPool(agentPool, {
      settings: this.#options,
      log: this.#log,
      budget: this.record.budget,
      broker: this.#broker,
      hooks,
      notify: (notice, delivery) => this.#queue.notify(notice, delivery),
      onChange: () => {
        void this.#emit("session.background_tasks_changed", {});
        this.#queue.wake();
      },
    });
  }

  #newRunner(hooks: BoundHooks | undefined): AnswerRunner {
    const options = this.#options;
    const portsNaming = (named?: readonly string[]) =>
      this.#pool?.portsOf(undefined, () => options.promptAndTools.tools, named);
    return new AnswerRunner({
      settings: options,
      log: this.#log,
      emit: this.#emit,
      conversation: this.#conversation,
      history: new History(this.#conversation, options.log),
      preamble: this.record.preamble,
      budget: this.record.budget,
      pending: this.#pending,
      broker: this.#broker,
      hooks,
      agentPorts: portsNaming(),
      agentPortsFor: portsNaming,
      replaceOutcome: options.replaceOutcome ?? (async (outcome) => outcome),
      refold: () => this.#refold(),
      onAnswerBegins: (messageId) => {
        options.onMessage?.(messageId);
        this.record.preamble.after(this.#emit);
        this.record.writeSummary().catch(() => undefined); // optional: lists fall back to the log
      },
    });
  }

  #refold(): void {
    this.record.reset();
    this.#conversation.reset();
    this.#pool?.reset();
    for (const event of this.#log.events) this.#fold(event);
  }

  #fold(event: SessionEvent): void {
    if (event.agentId === undefined) this.#conversation.apply(event);
    else this.#pool?.fold(event);
    this.record.fold(event);
  }
}
