/**
 * A session: one conversation with one main agent, stored in one log. It accepts messages, runs the loop for one
 * message at a time, and emits everything that happens as events.
 * Main parts: `event-log.ts` (store and emit), `conversation.ts` (the fold), `turn/` (queue, turns, runs), `requests/`,
 * `agents/`, `budget/`, `compaction/`, `modes/`, `rewind/`. Files that all of these share belong in this folder.
 */

import { codeChanges } from "../checkpoints/code-changes.ts";
import { deferred } from "../lib/deferred.ts";
import { stoppable } from "../lib/node/stoppable.ts";
import type { Emit, SessionEvent } from "../protocol/event.ts";
import type { Registry } from "../tasks/registry.ts";
import type { TaskRequest } from "../tools/agents/tasks.ts";
import { type AgentPool, sessionAgents } from "./agents/agent-pool.ts";
import { startAgent } from "./agents/start-agent.ts";
import { Budget } from "./budget/budget.ts";
import { tellLimits } from "./budget/credits.ts";
import type { AgentContext } from "./compaction/agent-context.ts";
import { Conversation } from "./conversation.ts";
import { EventLog, type EventPast, type Listener } from "./event-log.ts";
import { History } from "./history.ts";
import { modelName } from "./model-selection.ts";
import { ModeState } from "./modes/mode-state.ts";
import { closeOpen, recover, repairAtEnd, requireFree } from "./recover.ts";
import { type Answerer, type Broker, newBroker, type OpenRequests } from "./requests/broker.ts";
import { SessionRewinds } from "./rewind/session-rewinds.ts";
import type { CloseReason, SessionOptions } from "./session-options.ts";
import { resumeData, shutdownData, startData, summarise } from "./summary.ts";
import { type SessionHooks, sessionHooks } from "./turn/hooked-calls.ts";
import { inTurn } from "./turn/in-turn.ts";
import { MessageQueue } from "./turn/message-queue.ts";
import { type Notice, PendingMessages, type SendOptions } from "./turn/pending-messages.ts";
import { RunTotals } from "./turn/run-totals.ts";
import { SessionPreamble } from "./turn/session-preamble.ts";
import { type Outcome, TurnRunner } from "./turn/turn-runner.ts";

export type { CloseReason, Outcome, SendOptions, SessionOptions };

export class Session {
  readonly id: string;
  readonly modes: ModeState;
  /** Totals since this process opened the session. */
  readonly run = new RunTotals();
  readonly #options: SessionOptions;
  readonly #conversation = new Conversation();
  readonly #introduction = new SessionPreamble();
  readonly #log: EventLog;
  readonly #history: History;
  readonly #budget: Budget;
  readonly #inbox: PendingMessages;
  readonly #emit: Emit;
  readonly #broker: Broker;
  readonly #answering: TurnRunner;
  readonly #company: AgentPool | undefined;
  readonly #working: MessageQueue;
  /** Aborts when the session is closed. */
  readonly end = stoppable();
  readonly #startedAt: number;
  #name: string | undefined;
  #closing: Promise<void> | undefined;

  /** Creates a session. Its log begins with `session.start`. */
  static async create(options: SessionOptions): Promise<Session> {
    const session = new Session(options);
    void session.#emit("session.start", startData(options, session.#startedAt));
    if (options.name !== undefined) void session.#emit("troupe.session_named", { name: options.name });
    if (options.mode && options.mode !== "interactive") {
      void session.#emit("session.mode_changed", { previousMode: "interactive", newMode: options.mode });
    }
    await session.#company?.restore();
    return session;
  }

  /** Resumes a session, however it ended. */
  static async resume(options: SessionOptions): Promise<Session> {
    requireFree(options.log);
    const session = new Session(options);
    const { events, removed, damage } = options.log;
    const pending = options.continuesPending ? { broker: session.#broker, cwd: options.cwd } : undefined;
    const parts = { conversation: session.#conversation, log: session.#log, pending };
    const known = { said: [...removed, ...events], view: events };
    session.#working.left = await recover({ ...parts, events: known, damage });
    await session.rewinds.finish();
    await session.#company?.restore();
    if (options.mode) await session.modes.set(options.mode);
    const { name } = options;
    if (name !== undefined && name !== session.#name) void session.#emit("troupe.session_named", { name });
    if (options.resumed !== "silent") await session.#resumed(options.log.count);
    else await tellLimits(options.credits, events, session.#emit);
    return session;
  }

  private constructor(options: SessionOptions) {
    this.#options = options;
    this.settings = options;
    this.id = options.log.sessionId;
    for (const event of options.log.events) this.#fold(event);
    this.#budget = new Budget([...options.log.removed, ...options.log.events]); // usage of rewound events counts too
    this.#inbox = PendingMessages.restored(options.log.events);
    this.#startedAt = Date.parse(options.log.events[0]?.timestamp ?? "") || options.stamp.now();
    this.#log = new EventLog({
      ...(options.redactor && { redactor: options.redactor }),
      store: options.log,
      stamp: options.stamp,
      fold: (event) => {
        this.#fold(event);
        this.run.apply(event);
        if (event.type === "troupe.usage") this.#budget.apply(event.data);
      },
      onListenerDefect: options.onDefect ?? ((error) => process.emitWarning(String(error), "TroupeListenerDefect")),
      ...(options.minCondensed !== undefined && { minCondensed: options.minCondensed }),
    });
    this.#history = new History(this.#conversation, options.log);
    this.#introduction.restored();
    this.#emit = (type, data) => this.#log.emit(undefined, type, data);
    const { mode, onMode } = options;
    this.modes = new ModeState({ events: options.log.events, mode, onMode, emit: this.#emit });
    this.#broker = newBroker(this.#log, options, { emit: this.#emit, agentMode: () => this.modes.current });
    const hooks = options.hooks?.(this.#emit);
    this.hooks = hooks && sessionHooks(hooks, { sessionId: this.id, cwd: options.cwd });
    this.#company =
      options.company &&
      sessionAgents(options.company, {
        ...{ settings: options, log: this.#log, budget: this.#budget, broker: this.#broker, hooks },
        notify: (notice, how) => this.notify(notice, how),
        onChange: () => {
          void this.#emit("session.background_tasks_changed", {});
          this.#working.stir();
        },
      });
    this.#answering = new TurnRunner({
      ...{ settings: options, log: this.#log, emit: this.#emit, conversation: this.#conversation },
      history: this.#history,
      introduction: this.#introduction,
      budget: this.#budget,
      inbox: this.#inbox,
      broker: this.#broker,
      hooks: this.hooks,
      company: this.#company?.portsOf(undefined, () => options.offer.tools),
      companyNaming: (named) => this.#company?.portsOf(undefined, () => options.offer.tools, named),
      settle: options.settle ?? (async (outcome) => outcome),
      refold: () => this.#refold(),
      onTaken: (messageId) => {
        options.onMessage?.(messageId);
        this.#introduction.after(this.#emit);
        this.#writeSummary().catch(() => undefined); // optional: lists fall back to the log
      },
    });
    this.#working = new MessageQueue({
      ...{ sessionId: this.id, options, inbox: this.#inbox, answering: this.#answering, emit: this.#emit },
      ...{ modes: this.modes, areAgentsBusy: () => this.#company?.isBusy ?? false },
    });
    this.rewinds = new SessionRewinds({
      ...{ options, log: this.#log, emit: this.#emit, conversation: this.#conversation, inbox: this.#inbox },
      ...{ company: this.#company, working: this.#working, modes: this.modes },
      refold: () => this.#refold(),
      writeSummary: () => this.#writeSummary(),
    });
  }

  /** Events that still matter: all of them in a short session, the result of `condense` in a long one. */
  get events(): readonly SessionEvent[] {
    return this.#log.events;
  }

  /** All events of the session, including those no longer in memory. */
  get past(): EventPast {
    return this.#log.past;
  }

  /** Rewinds the session, and undoes rewinds. */
  readonly rewinds: SessionRewinds;

  /** Emits `session.resume` for a client that returns to the open session. */
  rejoined(how: Exclude<SessionOptions["resumed"], "silent">): Promise<void> {
    return this.#resumed(this.past.count, how);
  }

  #resumed(eventCount: number, how: SessionOptions["resumed"] = this.#options.resumed): Promise<void> {
    return this.#emit("session.resume", {
      ...resumeData(this.#options, eventCount),
      ...(typeof how === "object" && how),
    });
  }

  /** The number of `events` from before this process. Valid until the first of them is condensed or rewound. */
  get inherited(): number {
    return Math.min(this.#options.log.events.length, this.#log.events.length);
  }

  /** Whether there is anything on disk to resume. */
  get isKept(): boolean {
    return this.#answering.begun || this.inherited > 0;
  }

  get budget(): Budget {
    return this.#budget;
  }

  get title(): string | undefined {
    return this.#introduction.title;
  }

  /** The name given by a user or a program. `title` is derived from the first message. */
  get name(): string | undefined {
    return this.#name;
  }

  /** Sets the name and emits it as the new title. */
  async rename(name: string): Promise<void> {
    void this.#emit("session.title_changed", { title: name });
    await this.#emit("troupe.session_named", { name });
    await this.#writeSummary().catch(() => undefined); // lists fall back to the log
  }

  /** Sets an automatic title, for a session without a name. */
  async entitle(title: string): Promise<void> {
    void this.#emit("session.title_changed", { title });
    await this.#emit("troupe.session_named", { name: title, auto: true });
    await this.#writeSummary().catch(() => undefined);
  }

  /** Starts a background agent for a user or a program. The main agent is notified when it ends. */
  async startAgent(request: Omit<TaskRequest, "mode" | "toolCallId">): Promise<string> {
    const tasks = this.#company?.portsOf(undefined, () => this.#options.offer.tools).tasks;
    return startAgent(tasks, { ...request, toolCallId: this.#options.stamp.id("call") }, this.end.signal);
  }

  /** The session's options, for surfaces. */
  readonly settings: SessionOptions;
  /** The hooks that run around its calls. */
  readonly hooks: SessionHooks | undefined;
  get context(): AgentContext | undefined {
    return this.#answering.context;
  }

  /** True from the acceptance of a message until the session is idle. */
  get isWorking(): boolean {
    return this.#working.isWorking;
  }

  /** True while waiting messages or running agents will wake the main agent. */
  get isPending(): boolean {
    return this.#inbox.size > 0 || (this.#company?.isBusy ?? false);
  }

  /** The agents that work for the main agent, for surfaces that show or control them. */
  get tasks(): Registry | undefined {
    return this.#company?.registry;
  }

  /** Passes every event from now on to the listener, in order, including ephemeral ones. */
  subscribe(listener: Listener): () => void {
    return this.#log.subscribe(listener);
  }

  /** Open requests to clients, for those who answer them or make more. */
  get requests(): OpenRequests {
    return this.#broker;
  }

  /** Attaches a client that answers requests (such as permissions) until detached. The first answer wins. */
  attach(answerer: Answerer): () => void {
    return this.#broker.attach(answerer);
  }

  /** Emits a warning. */
  warn(warningType: string, message: string): void {
    void this.#emit("session.warning", { warningType, message });
  }

  /** Emits an event on behalf of a part of the session. */
  readonly say: Emit = (type, data) => this.#emit(type, data);

  /** Like `subscribe`, but first passes on all of `events`, or those since this process opened the session. */
  follow(listener: Listener, which: "all" | "own" = "all"): () => void {
    return this.#log.follow(listener, which === "own" ? this.inherited : 0);
  }

  /**
   * Accepts a message and returns its id. When this resolves, the message is on disk and will get an outcome. A working
   * agent reads it before its next model call (`immediate`) or answers it afterwards (`enqueue`).
   */
  async send(options: SendOptions): Promise<string> {
    return (await this.#working.accept(options)).messageId;
  }

  /** Waiting messages, to be shown, edited or withdrawn. */
  get queue(): Pick<MessageQueue, "waiting" | "withdraw" | "editor"> {
    return this.#working;
  }

  /** Like `send`, then waits until the session is idle and returns the message's outcome. */
  async sendAndWait(options: SendOptions, accepted?: (messageId: string) => void): Promise<Outcome> {
    const settled = deferred<Outcome>();
    const { messageId } = await this.#working.accept(options, settled.resolve);
    accepted?.(messageId);
    const outcome = await settled.promise;
    await this.#working.whenIdle();
    return outcome;
  }

  /** Sends the agent a notice that no user typed: before its next model call, or by waking an idle agent. */
  notify(notice: Notice, options: { wakes?: boolean; take?: () => boolean } = {}): void {
    this.#working.notify(notice, options);
  }

  /** Aborts the current turn. Waiting messages are answered next. */
  abort(): void {
    this.#working.abort();
  }

  /** Resumes the pending work of an earlier process, if `continuesPending` is set. */
  goOn(): void {
    this.#working.goOn();
  }

  readonly callTool: TurnRunner["callTool"] = (call, signal) => this.#answering.callTool(call, signal);

  /** Resolves when the session is idle. */
  async whenIdle(): Promise<void> {
    await this.#working.whenIdle();
  }

  /**
   * Aborts the current work, writes the totals and releases the log. Waiting messages stay in the log and are answered
   * when the session is resumed.
   */
  close(reason?: CloseReason): Promise<void> {
    this.#closing ??= this.#close(reason);
    return this.#closing;
  }

  async #close(reason: CloseReason | undefined): Promise<void> {
    this.#working.refuse();
    if (reason?.leavesPending) this.#broker.leave();
    this.abort();
    this.end.abort();
    await this.#broker.close(reason?.pending);
    this.#working.stir();
    await this.whenIdle();
    // Each step runs even if earlier ones fail; the log is released last.
    await inTurn([
      () => this.#company?.close(),
      () => this.#options.compactions?.close(),
      () => this.#options.onEnd?.(),
      () => this.#answering.end(),
      () => this.#lastWords(reason),
      () => this.#options.onClose?.(),
      () => this.#log.snapshot(),
      () => this.#options.log.close(),
    ]);
  }

  async #lastWords(reason: CloseReason | undefined): Promise<void> {
    const isSpokenTo = this.#log.events.some(({ type }) => type === "user.message");
    await repairAtEnd(this.#log, this.#options.stamp);
    if (!reason?.leavesPending) await closeOpen(this.#conversation, this.#emit);
    const changes = await codeChanges(this.#options.fileHistory, this.#log.events);
    const data = shutdownData({ ...this.#facts(), error: reason?.error, codeChanges: changes });
    // Retry once: the disk may have failed only for a moment.
    await this.#emit("session.shutdown", data).catch(() => this.#log.repair());
    if (isSpokenTo) await this.#writeSummary().catch(() => undefined); // lists fall back to the log
  }

  #refold(): void {
    this.#introduction.reset();
    this.#name = undefined;
    this.#conversation.reset();
    this.#company?.reset();
    for (const event of this.#log.events) this.#fold(event);
  }

  #fold(event: SessionEvent): void {
    if (event.agentId === undefined) this.#conversation.apply(event);
    else this.#company?.fold(event);
    this.#introduction.apply(event);
    if (event.type === "troupe.session_named" && !event.data.auto) this.#name = event.data.name;
  }

  #facts() {
    const { stamp, model, context } = this.#options;
    return {
      sessionId: this.id,
      context,
      model: modelName(model),
      name: this.#name,
      title: this.#introduction.title,
      startedAt: this.#startedAt,
      now: stamp.now(),
      budget: this.#budget,
      detachedFrom: this.#options.detachedFrom,
    };
  }

  async #writeSummary(): Promise<void> {
    await this.#options.log.writeSummary(summarise(this.#facts()));
  }
}
