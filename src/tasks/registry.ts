/**
 * Tasks: agents that work for other agents. This folder holds their state, messages, results and notices.
 *
 * The session's log is the only source of truth. The registry is a fold over it (`task-fold.ts`) plus state that lives
 * in one process: `running-tasks.ts`, `slots.ts` and `waiters.ts`.
 * - `task-state.ts`: the state machine.
 * - `task-starter.ts`: checks, names and logs a new task.
 * - `task-runs.ts`: runs the agents for their answers.
 * - `notifications.ts`: notifies each parent once per idle or ended task.
 * - `stopping.ts`: ends subtrees.
 * - `journal.ts`: writes decisions to the log before they take effect.
 */
import { defined } from "../lib/defined.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { SessionEvent } from "../protocol/event.ts";
import type { MessageReceipt, TaskReport, TaskScope, TaskView } from "../tools/agents/task-port.ts";
import { DetachableTasks } from "./detachable-tasks.ts";
import { TaskJournal } from "./journal.ts";
import { lendSlot } from "./lending.ts";
import { Mailbox, refused } from "./mailbox.ts";
import type { TaskNotice } from "./notices.ts";
import { Notifications } from "./notifications.ts";
import type { NewTask, Reader, RegistryOptions, RegistryPorts, TaskWaitOptions, WaitEnd } from "./ports.ts";
import { RunningTasks } from "./running-tasks.ts";
import { Slots } from "./slots.ts";
import { stopTasks } from "./stopping.ts";
import { TaskFold } from "./task-fold.ts";
import type { TaskMessage, TaskRecord, TaskUsage } from "./task-record.ts";
import { TaskRuns } from "./task-runs.ts";
import { snapshotOf, type TaskSnapshot } from "./task-snapshot.ts";
import { TaskStarter } from "./task-starter.ts";
import { isFinal, isIdleOrEnded } from "./task-state.ts";
import { isInScope, type Relation, relationOf, taskViewOf, usageOf, wholeAnswer } from "./task-view.ts";
import { Waiters, waitEnd } from "./waiters.ts";

/** Key used by waiters that wait for any task. */
const ANY_TASK = "";
/** Maximum time that closing waits for the log. */
const CLOSE_MS = 5_000;

export class Registry {
  readonly detachable: DetachableTasks;
  readonly #options: RegistryPorts;
  readonly #fold: TaskFold;
  readonly #journal: TaskJournal;
  readonly #slots: Slots;
  readonly #runningTasks = new RunningTasks();
  readonly #waiters: Waiters;
  readonly #taskRuns: TaskRuns;
  readonly #notifications: Notifications;
  readonly #mailbox: Mailbox;
  readonly #starting: TaskStarter;
  #isClosed = false;

  constructor({ events, ...options }: RegistryOptions) {
    const { emit, repair, discard, stamp, limits } = options;
    this.#options = options;
    this.#fold = new TaskFold(events);
    this.detachable = new DetachableTasks(this.#fold, options.runner);
    const onTrouble = (error: unknown): void => {
      options.onTrouble?.(error);
      options.onChange();
    };
    this.#journal = new TaskJournal({ emit, ...defined({ repair, discard }), stamp, onTrouble });
    this.#slots = new Slots(limits);
    this.#waiters = new Waiters(stamp);
    const parts = {
      options,
      fold: this.#fold,
      journal: this.#journal,
      slots: this.#slots,
      runningTasks: this.#runningTasks,
    };
    this.#taskRuns = new TaskRuns(parts);
    this.#notifications = new Notifications(parts);
    this.#mailbox = new Mailbox(parts, this.#taskRuns);
    this.#starting = new TaskStarter(parts, this.#taskRuns);
  }

  /**
   * Updates the registry. The caller must pass every logged event of the session exactly once: after it is as durable
   * as its type requires, and before the promise of its `emit` resolves. State changes in no other way.
   */
  observe(event: SessionEvent): void {
    const touched = this.#fold.apply(event);
    if (event.type === "troupe.task_created") this.#stopUnwanted(event.data.taskId);
    for (const task of touched) {
      if (event.type === "troupe.task_state") this.#changed(task);
      this.#waiters.wake(task.id);
    }
    this.#notifications.observe(event, touched);
    if (!event.type.startsWith("troupe.task_")) return;
    this.#waiters.wake(ANY_TASK);
    this.#options.onChange();
  }

  /**
   * Restores the tasks of an earlier process. Call it before anything else. Tasks that were running become idle, apart
   * from those that work without a process. Nothing starts, and undelivered notices are passed on. It can be interrupted
   * and repeated.
   */
  async restore(): Promise<void> {
    await this.#restore(this.detachable.continuesDetached);
  }

  async #restore(continuesDetached: (task: TaskRecord) => boolean): Promise<void> {
    const unfinished = this.#fold.all().filter(({ status, isCalled }) => !isIdleOrEnded(status) || isCalled);
    await this.#taskRuns.restore(unfinished, continuesDetached);
    this.#notifications.open();
  }

  /**
   * Rebuilds the tasks after a rewind. No task may be running. Tasks that are running in the rewound log become idle.
   */
  async rewound(events: Iterable<SessionEvent>): Promise<void> {
    this.#notifications.close();
    this.#fold.refill(events);
    this.#notifications.reset();
    await this.#restore(() => false);
    this.#options.onChange();
  }

  /**
   * Creates a task and resolves when it is in the log. It runs as soon as a slot is free. Throws a `TroupeError` if it
   * must not start.
   */
  async create(task: NewTask): Promise<{ readonly id: string; readonly queued: boolean }> {
    if (this.#isClosed) throw new TroupeError("interrupted", "The session is being closed.");
    return this.#starting.start(task);
  }

  /**
   * Waits until the task is idle, ends, answers, moves to the background, or the timeout expires. Aborting the wait
   * does not affect the task.
   * A result that the parent reads this way needs no notice. A waiting agent lends its slot to the task it waits for.
   */
  async wait(id: string, options: TaskWaitOptions): Promise<WaitEnd> {
    const task = this.#known(id);
    const { timeoutMs, signal, reader, sinceAnswer } = options;
    const wasSync = task.mode === "sync";
    const stopReading = this.#notifications.reading(task, reader);
    const stopLending = lendSlot(reader?.agentId, id, { runningTasks: this.#runningTasks, slots: this.#slots });
    try {
      const findEnd = (): WaitEnd | undefined => waitEnd(task, { isBusy: this.#isBusy(task), wasSync, sinceAnswer });
      const end = (await this.#waiters.until(id, findEnd, { timeoutMs, signal })) ?? "timeout";
      if (reader && isIdleOrEnded(task.status)) await this.#notifications.read(task, reader);
      return end;
    } finally {
      stopLending();
      stopReading();
    }
  }

  /**
   * Sends a message. A running agent receives it before its next model call, an idle one at once. For an ended agent the
   * receipt is "refused".
   */
  async send(id: string, content: string, from?: string): Promise<MessageReceipt> {
    const task = this.#fold.get(id);
    if (!task || this.#isClosed)
      return refused(id, task ? "The session is being closed." : `There is no agent "${id}".`);
    return this.#mailbox.accept(task, content, from);
  }

  /** Returns the messages that arrived since the last call. The runner calls it before each model call. */
  takeMessages(id: string): readonly TaskMessage[] {
    const task = this.#fold.get(id);
    return task?.status === "running" ? this.#taskRuns.takeMessages(task) : [];
  }

  /**
   * Moves a task to the background: the call that waits for it returns and the task continues. Only for tasks of the
   * main agent.
   */
  async promote(id: string): Promise<boolean> {
    const task = this.#fold.get(id);
    const canBe = (): boolean => task?.mode === "sync" && task.parentId === undefined && !isIdleOrEnded(task.status);
    if (!task || !canBe()) return false;
    return this.#runningTasks.runExclusive(id, async () => {
      if (!canBe()) return false;
      await this.#journal.write("troupe.task_promoted", { taskId: id }, () => task.mode === "background");
      return true;
    });
  }

  /**
   * Ends the task and its descendants. Returns false if there is nothing to end. `notice: "waits"`: the notice does not
   * wake an idle parent, which reads it with its next input.
   */
  async cancel(id: string, options: { readonly reader?: Reader; readonly notice?: "waits" } = {}): Promise<boolean> {
    const task = this.#fold.get(id);
    if (!task || isFinal(task.status)) return false;
    if (options.notice === "waits") this.#notifications.suppressWake(task);
    const stopReading = this.#notifications.reading(task, options.reader);
    try {
      await this.#stop([task], "stopped");
      if (options.reader) await this.#notifications.read(task, options.reader);
      return true;
    } finally {
      stopReading();
    }
  }

  /** Cancels all tasks. Their notices wake no agent and are read with the next input. */
  async cancelAll(): Promise<void> {
    await Promise.allSettled(this.#starting.underWay.get(undefined) ?? []);
    const all = this.#fold.childrenOf(undefined).filter(({ status }) => !isFinal(status));
    for (const task of all) this.#notifications.suppressWake(task);
    await this.#stop(all, "stopped");
  }

  /** Hides an ended task from lists. Its id stays reserved and its answers stay readable. */
  async remove(id: string): Promise<boolean> {
    const task = this.#fold.get(id);
    if (!task || !isFinal(task.status) || task.isRemoved) return false;
    await this.#journal.write("troupe.task_removed", { taskId: id }, () => task.isRemoved);
    return true;
  }

  get(id: string): TaskRecord | undefined {
    return this.#fold.get(id);
  }

  /** Whether any task is running, queued or waking up. */
  get isBusy(): boolean {
    return this.#fold.all().some((task) => this.#isBusy(task));
  }

  /** Whether any of them needs this process. */
  get isBusyHere(): boolean {
    return this.#fold.all().some((task) => this.#isBusy(task) && !this.detachable.continuesDetached(task));
  }

  /** How many agents may still be started for the last message. */
  get remainingAgents(): number {
    return Math.max(0, (this.#options.limits.maxTotal ?? Number.MAX_SAFE_INTEGER) - this.#fold.agentsOfMessage);
  }

  has(id: string): boolean {
    return this.#fold.get(id) !== undefined;
  }

  /** Lists tasks in order of creation, as `viewer` sees them (undefined: the main agent, a user or a program). */
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

  /**
   * Returns the complete record, for programs. An answer that is stored in a file appears as the file name; `report`
   * has its text.
   */
  snapshot(id: string): TaskSnapshot | undefined {
    const task = this.#fold.get(id);
    return task && snapshotOf(task, { running: this.#runningTasks.get(id), abort: () => this.cancel(id) });
  }

  /** Returns all answers of the task in full. No model is asked. */
  async report(
    id: string,
    options: { readonly viewer?: string | undefined; readonly sinceAnswer?: number } = {},
  ): Promise<TaskReport> {
    const task = this.#known(id);
    const answers = task.answers.filter(({ number }) => number > (options.sinceAnswer ?? 0));
    return {
      task: this.#view(task, options.viewer),
      answers: await Promise.all(answers.map((answer) => wholeAnswer(answer, this.#options.readLarge))),
      ...defined({ error: task.error }),
    };
  }

  /** Returns the usage of the task, by default including its descendants. */
  usage(id: string, extent: "own" | "subtree" = "subtree"): TaskUsage {
    const task = this.#known(id);
    return extent === "own" ? task.usage : usageOf(this.#fold, task);
  }

  relationOf(viewer: string | undefined, id: string): Relation {
    return relationOf(this.#fold, viewer, id);
  }

  /** Returns the notices that this agent (undefined: the main agent) must read before its next request. */
  notices(parentId: string | undefined): readonly TaskNotice[] {
    return this.#notifications.due(parentId);
  }

  /** Sets the text that shows what a running task waits for. */
  waitingFor(id: string, reason: string | undefined): void {
    const running = this.#runningTasks.get(id);
    if (running) running.waitingFor = reason;
    this.#options.onChange();
  }

  /** Waits until no task is busy. Returns the ids of tasks that are still busy when the timeout expires. */
  async waitForAll(timeoutMs: number, signal?: AbortSignal): Promise<readonly string[]> {
    const busy = (): string[] => this.#fold.all().flatMap((task) => (this.#isBusy(task) ? [task.id] : []));
    const findEnd = (): readonly string[] | undefined => (busy().length === 0 ? [] : undefined);
    return (await this.#waiters.until(ANY_TASK, findEnd, { timeoutMs, signal })) ?? busy();
  }

  /** Resolves when the log is writable and contains all earlier events. Rejects when the registry is closed. */
  async writable(): Promise<void> {
    await this.#journal.writable();
  }

  /**
   * Interrupts running tasks in an orderly way, with the same result as the end of the process. Tasks that work without a
   * process go on. Nothing starts afterwards.
   */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#notifications.close();
    await Promise.allSettled([...this.#starting.underWay.values()].flatMap((starts) => [...starts]));
    const written = this.#stop(this.#fold.childrenOf(undefined), "process_gone");
    // An unwritable log does not delay closing for longer: the next process restores the same states.
    await this.#taskRuns.within(CLOSE_MS, () => written.catch(() => undefined));
    this.#journal.close();
  }

  #known(id: string): TaskRecord {
    const task = this.#fold.get(id);
    if (task) return task;
    throw new TroupeError("usage", `There is no agent "${id}".`, { hint: "Use list_agents to list the agents." });
  }

  /** Cancels a start that was reported as failed because of the log, but was written later. */
  #stopUnwanted(id: string): void {
    if (this.#starting.isUnwanted(id)) this.#background(this.cancel(id));
  }

  #changed(task: TaskRecord): void {
    const { id, status, reason } = task;
    if (isIdleOrEnded(status)) this.#slots.release(id);
    if (isFinal(status)) this.#runningTasks.forget(id);
    this.#options.onState?.(task, { status, ...defined({ reason }) });
  }

  #isBusy({ id, status }: TaskRecord): boolean {
    return !isIdleOrEnded(status) || (status === "idle" && this.#runningTasks.get(id)?.isWaking === true);
  }

  async #stop(roots: readonly TaskRecord[], verdict: "stopped" | "process_gone"): Promise<void> {
    const starting = this.#starting.underWay;
    await stopTasks(roots, verdict, {
      fold: this.#fold,
      runningTasks: this.#runningTasks,
      taskRuns: this.#taskRuns,
      starting,
      continuesDetached: this.detachable.continuesDetached,
    });
  }

  #view(task: TaskRecord, viewer: string | undefined): TaskView {
    const running = this.#runningTasks.get(task.id);
    const { trouble } = this.#journal;
    const ownReason = task.status === "queued" ? "a free slot" : running?.waitingFor;
    const waitingFor = trouble !== undefined && this.#isBusy(task) ? `the session's log: ${trouble}` : ownReason;
    return taskViewOf(task, { fold: this.#fold, running, viewer, now: this.#options.stamp.now(), waitingFor });
  }

  #background(work: Promise<unknown>): void {
    work.catch((error: unknown) => {
      if (!this.#journal.isClosed) this.#options.onDefect?.(error);
    });
  }
}
