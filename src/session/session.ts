/**
 * A session: one conversation with one main agent, kept in one log. It accepts messages, runs the loop over them one
 * at a time, and says everything that happens as events. What it holds lives in files of its own: `event-log` (emit,
 * store, tell), `conversation` (the fold), `inbox` (steering and queue), `working` (message after message), `budget`,
 * `start-run` (one Run for the loop).
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
  /** What happened in it since this process opened it. */
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

  /** A new session. Its log begins with `session.start`. */
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

  /** Takes up a session that was left, by whatever means it ended. */
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
    this.#budget = new Budget([...options.log.removed, ...options.log.events]); // what was spent is spent
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
        this.#writeSummary().catch(() => undefined); // the log is the truth; lists fall back to it
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

  /** Events that still matter: all of them in a short session, in a long one what `condense` leaves of them. */
  get events(): readonly SessionEvent[] {
    return this.#log.events;
  }

  /** All events of the session, also those that are not in memory any more. */
  get past(): EventPast {
    return this.#log.past;
  }

  /** Back to before a message, and forth again. */
  readonly rewinds: SessionRewinds;

  /** Another client has come back to the session while it was open. */
  rejoined(how: Exclude<SessionOptions["resumed"], "silent">): Promise<void> {
    return this.#resumed(this.past.count, how);
  }

  #resumed(eventCount: number, how: SessionOptions["resumed"] = this.#options.resumed): Promise<void> {
    return this.#emit("session.resume", {
      ...resumeData(this.#options, eventCount),
      ...(typeof how === "object" && how),
    });
  }

  /** How many of `events` were there before this process. Holds until the first of them is condensed or rewound. */
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

  /** What a person or a program called it; `title` is only what it began with. */
  get name(): string | undefined {
    return this.#name;
  }

  /** Names it; whoever watches sees the new title. */
  async rename(name: string): Promise<void> {
    void this.#emit("session.title_changed", { title: name });
    await this.#emit("troupe.session_named", { name });
    await this.#writeSummary().catch(() => undefined); // lists fall back to the log
  }

  /** Gives it a title where nobody has named it. */
  async entitle(title: string): Promise<void> {
    void this.#emit("session.title_changed", { title });
    await this.#emit("troupe.session_named", { name: title, auto: true });
    await this.#writeSummary().catch(() => undefined);
  }

  /** Starts an agent in the background on behalf of a person or a program; its end is told to the main agent. */
  async startAgent(request: Omit<TaskRequest, "mode" | "toolCallId">): Promise<string> {
    const tasks = this.#company?.portsOf(undefined, () => this.#options.offer.tools).tasks;
    return startAgent(tasks, { ...request, toolCallId: this.#options.stamp.id("call") }, this.end.signal);
  }

  /** What it was made of, for surfaces. */
  readonly settings: SessionOptions;
  /** Those who have a say in its calls, whoever makes one. */
  readonly hooks: SessionHooks | undefined;
  get context(): AgentContext | undefined {
    return this.#answering.context;
  }

  /** True from the moment a message is taken up until the session is idle. */
  get isWorking(): boolean {
    return this.#working.isWorking;
  }

  /** True while messages or agents will set the main agent going again by themselves. */
  get isPending(): boolean {
    return this.#inbox.size > 0 || (this.#company?.isBusy ?? false);
  }

  /** The agents that work for the main one, for surfaces that show or steer them. */
  get tasks(): Registry | undefined {
    return this.#company?.registry;
  }

  /** Hears every event from now on, ephemeral ones included, in order. */
  subscribe(listener: Listener): () => void {
    return this.#log.subscribe(listener);
  }

  /** What waits for someone outside, for those who answer it or ask more. */
  get requests(): OpenRequests {
    return this.#broker;
  }

  /** Answers questions of this session (permissions, the model's own) until detached; the first answer wins. */
  attach(answerer: Answerer): () => void {
    return this.#broker.attach(answerer);
  }

  /** Tells whoever watches, and the log, of something that is not as it should be. */
  warn(warningType: string, message: string): void {
    void this.#emit("session.warning", { warningType, message });
  }

  /** Says something on behalf of a part of the session. */
  readonly say: Emit = (type, data) => this.#emit(type, data);

  /** As `subscribe`, but first hears all of `events`, or those since this process opened the session. */
  follow(listener: Listener, which: "all" | "own" = "all"): () => void {
    return this.#log.follow(listener, which === "own" ? this.inherited : 0);
  }

  /**
   * Accepts a message: when this resolves it is on disk and gets an outcome. A working agent is steered
   * (`immediate`) or answers after what it has (`enqueue`). Returns the id of the message.
   */
  async send(options: SendOptions): Promise<string> {
    return (await this.#working.accept(options)).messageId;
  }

  /** Messages that wait, to be shown or taken back. */
  get queue(): Pick<MessageQueue, "waiting" | "withdraw" | "editor"> {
    return this.#working;
  }

  /** As `send`, then waits until the session is idle and tells what became of this message. */
  async sendAndWait(options: SendOptions, accepted?: (messageId: string) => void): Promise<Outcome> {
    const settled = deferred<Outcome>();
    const { messageId } = await this.#working.accept(options, settled.resolve);
    accepted?.(messageId);
    const outcome = await settled.promise;
    await this.#working.whenIdle();
    return outcome;
  }

  /** Tells the agent something nobody typed: before its next model call, or by waking it when it is idle. */
  notify(notice: Notice, options: { wakes?: boolean; take?: () => boolean } = {}): void {
    this.#working.notify(notice, options);
  }

  /** Stops the turn that is under way; messages that wait are answered next. */
  abort(): void {
    this.#working.abort();
  }

  /** Goes on with what an earlier process left, where that was asked for. */
  goOn(): void {
    this.#working.goOn();
  }

  readonly callTool: TurnRunner["callTool"] = (call, signal) => this.#answering.callTool(call, signal);

  /** Resolves when nothing is under way. */
  async whenIdle(): Promise<void> {
    await this.#working.whenIdle();
  }

  /**
   * Ends what is under way, writes the totals and lets go of the log. Messages that wait stay in the log and are
   * answered when the session is taken up again.
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
    // Each step is taken, whatever became of those before; the log is let go of last.
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
    // A disk that failed for a moment gets a second chance for the last words.
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
