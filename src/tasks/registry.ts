/**
 * Agents that work for others: who they are, what they were told, what became of them, and who has heard of it. There
 * is one truth, the session's log; the registry is a fold over it (`task-fold`) and what cannot be stored (`lives`: who
 * runs here, `slots`: places, `waiters`). `task-state` says what may follow what, `starting` brings a task into the log,
 * `activations` runs turns, `hearing` sees to it that every parent hears of every rest once, `stopping` ends subtrees,
 * `journal` writes before anyone is told.
 */
import { TroupeError } from "../protocol/errors.ts";
import type { SessionEvent } from "../protocol/event.ts";
import type { MessageReceipt, TaskReport, TaskScope, TaskView } from "../tools/agents/tasks.ts";
import { Activations } from "./activations.ts";
import { Journal } from "./journal.ts";
import { lendPlace } from "./lending.ts";
import { Mailbox, refused } from "./mailbox.ts";
import type { Notice } from "./notices.ts";
import { Notifications } from "./notifications.ts";
import type { NewTask, Reader, RegistryOptions, WaitEnd, WaitOptions } from "./ports.ts";
import { RunningTasks } from "./running-tasks.ts";
import { Slots } from "./slots.ts";
import { Starting } from "./starting.ts";
import { stopTasks } from "./stopping.ts";
import { TaskFold } from "./task-fold.ts";
import type { TaskMessage, TaskRecord, TaskUsage } from "./task-record.ts";
import { snapshotOf, type TaskSnapshot } from "./task-snapshot.ts";
import { isAtRest, isFinal } from "./task-state.ts";
import { isInScope, type Relation, relationOf, usageOf, viewOf, wholeTurn } from "./task-view.ts";
import { Waiters } from "./waiters.ts";

/** Whom those wait for who wait for everyone. */
const ANYONE = "";
/** How long closing waits for the log. */
const CLOSE_MS = 5_000;

export class Registry {
  readonly #options: RegistryOptions;
  readonly #fold: TaskFold;
  readonly #journal: Journal;
  readonly #slots: Slots;
  readonly #lives = new RunningTasks();
  readonly #waiters: Waiters;
  readonly #activations: Activations;
  readonly #hearing: Notifications;
  readonly #mailbox: Mailbox;
  readonly #starting: Starting;
  #isClosed = false;

  constructor(options: RegistryOptions) {
    const { emit, repair, unsay, stamp, limits } = options;
    this.#options = options;
    this.#fold = new TaskFold(options.events);
    const onTrouble = (error: unknown): void => {
      options.onTrouble?.(error);
      options.onChange();
    };
    this.#journal = new Journal({ emit, ...(repair && { repair }), ...(unsay && { unsay }), stamp, onTrouble });
    this.#slots = new Slots(limits);
    this.#waiters = new Waiters(stamp);
    const parts = { options, fold: this.#fold, journal: this.#journal, slots: this.#slots, lives: this.#lives };
    this.#activations = new Activations(parts);
    this.#hearing = new Notifications(parts);
    this.#mailbox = new Mailbox(parts, this.#activations);
    this.#starting = new Starting(parts, this.#activations);
  }

  /**
   * Must hear every event of the session that is kept, once, when it is as durable as its kind demands and before the
   * promise of its `emit` resolves. This is the only way anything here comes to be true.
   */
  observe(event: SessionEvent): void {
    const touched = this.#fold.apply(event);
    if (event.type === "troupe.task_created") this.#stopUnwanted(event.data.taskId);
    for (const task of touched) {
      if (event.type === "troupe.task_state") this.#changed(task);
      this.#waiters.wake(task.id);
    }
    this.#hearing.observe(event, touched);
    if (!event.type.startsWith("troupe.task_")) return;
    this.#waiters.wake(ANYONE);
    this.#options.onChange();
  }

  /**
   * Takes up what an earlier process left, before anything else is asked of the registry: who was at work then is idle
   * now, nothing runs by itself, and what nobody has heard of is handed out. Can be cut short and done again.
   */
  async restore(): Promise<void> {
    const cutOff = this.#fold.all().filter(({ status, isCalled }) => !isAtRest(status) || isCalled);
    await Promise.all(
      cutOff.map(async (task) => {
        // Written to and not awake yet: whoever wrote believes it at work, and must hear that it is not.
        if (task.status === "idle") await this.#activations.change(task, { kind: "woken" });
        await this.#activations.change(task, { kind: "process_gone" });
      }),
    );
    this.#hearing.open();
  }

  /** The log reads otherwise now. Nobody is at work when that happens; those who were at work then are idle. */
  async rewound(events: Iterable<SessionEvent>): Promise<void> {
    this.#hearing.close();
    this.#fold.refill(events);
    this.#hearing.reset();
    await this.restore();
    this.#options.onChange();
  }

  /** Resolves when the task is in the log; it runs as soon as a place is free. Throws a `TroupeError` where it may not. */
  async create(task: NewTask): Promise<{ readonly id: string; readonly queued: boolean }> {
    if (this.#isClosed) throw new TroupeError("interrupted", "The session is being closed.");
    return this.#starting.start(task);
  }

  /**
   * Until the task rests, answers, goes to the background, or the time is up. To stop waiting stops nothing else. What
   * the parent finds at rest by this counts as heard. An agent that waits lends its place to whom it waits for.
   */
  async wait(id: string, options: WaitOptions): Promise<WaitEnd> {
    const task = this.#known(id);
    const { timeoutMs, signal, reader, sinceTurn } = options;
    const wasSync = task.mode === "sync";
    const stopReading = this.#hearing.reading(task, reader);
    const stopLending = lendPlace(reader?.agentId, id, { lives: this.#lives, slots: this.#slots });
    try {
      const look = (): WaitEnd | undefined => this.#outcome(task, { wasSync, sinceTurn });
      const end = (await this.#waiters.until(id, look, { timeoutMs, signal })) ?? "timeout";
      if (reader && isAtRest(task.status)) await this.#hearing.read(task, reader);
      return end;
    } finally {
      stopLending();
      stopReading();
    }
  }

  /** A running agent gets it at its next tool boundary, an idle one at once, one that ended never: that comes back. */
  async send(id: string, content: string, from?: string): Promise<MessageReceipt> {
    const task = this.#fold.get(id);
    if (!task || this.#isClosed)
      return refused(id, task ? "The session is being closed." : `There is no agent "${id}".`);
    return this.#mailbox.accept(task, content, from);
  }

  /** For the runner, between the calls of a turn: what came in for the agent since it was last asked. */
  takeMessages(id: string): readonly TaskMessage[] {
    const task = this.#fold.get(id);
    return task?.status === "running" ? this.#activations.hand(task) : [];
  }

  /** A call that waits for the task returns; the task goes on. Only for agents of the main agent. */
  async promote(id: string): Promise<boolean> {
    const task = this.#fold.get(id);
    const canBe = (): boolean => task?.mode === "sync" && task.parentId === undefined && !isAtRest(task.status);
    if (!task || !canBe()) return false;
    return this.#lives.inTurn(id, async () => {
      if (!canBe()) return false;
      await this.#journal.keep("troupe.task_promoted", { taskId: id }, () => task.mode === "background");
      return true;
    });
  }

  /**
   * Ends the task and all below it. False when there is nothing to end. `notice: "waits"`: an idle parent is not woken
   * by it, but reads of it with whatever it reads next.
   */
  async cancel(id: string, options: { readonly reader?: Reader; readonly notice?: "waits" } = {}): Promise<boolean> {
    const task = this.#fold.get(id);
    if (!task || isFinal(task.status)) return false;
    if (options.notice === "waits") this.#hearing.hush(task);
    const stopReading = this.#hearing.reading(task, options.reader);
    try {
      await this.#stop([task], "stopped");
      if (options.reader) await this.#hearing.read(task, options.reader);
      return true;
    } finally {
      stopReading();
    }
  }

  /** Ends what calls of this agent (nobody = the main agent) wait for; what works in the background lives on. */
  async cancelSync(parentId: string | undefined): Promise<void> {
    const waitedFor = this.#fold.childrenOf(parentId).filter((task) => task.mode === "sync" && !isAtRest(task.status));
    for (const task of waitedFor) this.#hearing.hush(task);
    await this.#stop(waitedFor, "stopped");
  }

  /** Stops everything, and sets nothing in motion: who hears of it hears with whatever comes next. */
  async cancelAll(): Promise<void> {
    await Promise.allSettled(this.#starting.underWay.get(undefined) ?? []);
    const all = this.#fold.childrenOf(undefined).filter(({ status }) => !isFinal(status));
    for (const task of all) this.#hearing.hush(task);
    await this.#stop(all, "stopped");
  }

  /** Takes an ended task off the lists. Its id stays taken and its answers readable. */
  async remove(id: string): Promise<boolean> {
    const task = this.#fold.get(id);
    if (!task || !isFinal(task.status) || task.isRemoved) return false;
    await this.#journal.keep("troupe.task_removed", { taskId: id }, () => task.isRemoved);
    return true;
  }

  get(id: string): TaskRecord | undefined {
    return this.#fold.get(id);
  }

  /** Whether anyone works, waits for a place, or is about to. */
  get isBusy(): boolean {
    return this.#fold.all().some((task) => this.#isBusy(task));
  }

  has(id: string): boolean {
    return this.#fold.get(id) !== undefined;
  }

  /** In the order they were made, as `viewer` (nobody = the main agent, a person, a program) sees them. */
  list(
    options: { readonly viewer?: string | undefined; readonly scope?: TaskScope; readonly includeEnded?: boolean } = {},
  ): readonly TaskView[] {
    const { viewer, scope, includeEnded = true } = options;
    return this.#fold
      .all()
      .filter((task) => !task.isRemoved && (includeEnded || !isFinal(task.status)))
      .filter((task) => isInScope(relationOf(this.#fold, viewer, task.id), scope, viewer))
      .map((task) => this.#view(task, viewer));
  }

  view(id: string, viewer?: string): TaskView | undefined {
    const task = this.#fold.get(id);
    return task && this.#view(task, viewer);
  }

  /** The whole record, for programs. Answers that are kept in files are named by them: `report` has the words. */
  snapshot(id: string): TaskSnapshot | undefined {
    const task = this.#fold.get(id);
    return task && snapshotOf(task, { live: this.#lives.get(id), abort: () => this.cancel(id) });
  }

  /** Everything the task answered, whole, without asking any model. */
  async report(
    id: string,
    options: { readonly viewer?: string | undefined; readonly sinceTurn?: number } = {},
  ): Promise<TaskReport> {
    const task = this.#known(id);
    const turns = task.turns.filter(({ number }) => number > (options.sinceTurn ?? 0));
    return {
      task: this.#view(task, options.viewer),
      turns: await Promise.all(turns.map((turn) => wholeTurn(turn, this.#options.readLarge))),
      ...(task.error !== undefined && { error: task.error }),
    };
  }

  /** What the task used; with everything below it, where asked. */
  usage(id: string, extent: "own" | "subtree" = "subtree"): TaskUsage {
    const task = this.#known(id);
    return extent === "own" ? task.usage : usageOf(this.#fold, task);
  }

  relationOf(viewer: string | undefined, id: string): Relation {
    return relationOf(this.#fold, viewer, id);
  }

  /** What this agent (nobody = the main agent) has to hear before its next request. */
  notices(parentId: string | undefined): readonly Notice[] {
    return this.#hearing.due(parentId);
  }

  /** The notice of this task stands in a request that was sent. Also found out by itself when the parent's model answers. */
  async noticeDelivered(id: string): Promise<void> {
    await this.#hearing.delivered(this.#known(id));
  }

  /** Shown to who watches: what a running task waits for. */
  waitingFor(id: string, what: string | undefined): void {
    const live = this.#lives.get(id);
    if (live) live.waitingFor = what;
    this.#options.onChange();
  }

  /** Until nobody works or waits for a place. Those who still do, when the time is up. */
  async waitForAll(timeoutMs: number, signal?: AbortSignal): Promise<readonly string[]> {
    const busy = (): string[] => this.#fold.all().flatMap((task) => (this.#isBusy(task) ? [task.id] : []));
    const look = (): readonly string[] | undefined => (busy().length === 0 ? [] : undefined);
    return (await this.#waiters.until(ANYONE, look, { timeoutMs, signal })) ?? busy();
  }

  /** Resolves when the log can be written and holds everything said before. Rejects when the registry is closed. */
  async writable(): Promise<void> {
    await this.#journal.writable();
  }

  /** Cuts off who is at work, as the end of the process would, but cleanly. Nothing starts any more. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#hearing.close();
    await Promise.allSettled([...this.#starting.underWay.values()].flatMap((starts) => [...starts]));
    const written = this.#stop(this.#fold.childrenOf(undefined), "process_gone");
    // A log that cannot be written keeps nobody: the next process finds the same.
    await this.#activations.within(CLOSE_MS, () => written.catch(() => undefined));
    this.#journal.close();
  }

  #known(id: string): TaskRecord {
    const task = this.#fold.get(id);
    if (task) return task;
    throw new TroupeError("usage", `There is no agent "${id}".`, { hint: "list_agents names those there are." });
  }

  /** A start was refused because it could not be written, and then was written after all: it ends before it begins. */
  #stopUnwanted(id: string): void {
    if (this.#starting.isUnwanted(id)) this.#background(this.cancel(id));
  }

  #changed(task: TaskRecord): void {
    const { id, status, reason } = task;
    if (isAtRest(status)) this.#slots.release(id);
    if (isFinal(status)) this.#lives.forget(id);
    this.#options.onState?.(task, { status, ...(reason && { reason }) });
  }

  #outcome(
    task: TaskRecord,
    { wasSync, sinceTurn }: { wasSync: boolean; sinceTurn: number | undefined },
  ): WaitEnd | undefined {
    if (isFinal(task.status)) return "ended";
    const isBusy = this.#isBusy(task);
    if (!isBusy) return "idle";
    if (sinceTurn !== undefined && task.turns.length > sinceTurn) return "turn";
    return wasSync && task.mode === "background" ? "promoted" : undefined;
  }

  #isBusy({ id, status }: TaskRecord): boolean {
    return !isAtRest(status) || (status === "idle" && this.#lives.get(id)?.isWaking === true);
  }

  async #stop(roots: readonly TaskRecord[], verdict: "stopped" | "process_gone"): Promise<void> {
    const starting = this.#starting.underWay;
    await stopTasks(roots, verdict, { fold: this.#fold, lives: this.#lives, activations: this.#activations, starting });
  }

  #view(task: TaskRecord, viewer: string | undefined): TaskView {
    const live = this.#lives.get(task.id);
    const { trouble } = this.#journal;
    const place = task.status === "queued" ? "a free place" : live?.waitingFor;
    const waitingFor = trouble !== undefined && this.#isBusy(task) ? `the session's log: ${trouble}` : place;
    return viewOf(task, { fold: this.#fold, live, viewer, now: this.#options.stamp.now(), waitingFor });
  }

  #background(work: Promise<unknown>): void {
    work.catch((error: unknown) => {
      if (!this.#journal.isClosed) this.#options.onDefect?.(error);
    });
  }
}
