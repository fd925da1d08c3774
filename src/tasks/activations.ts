/** Runs activations of tasks: wait for a slot, run one turn of the agent, become idle or end. */
import { defined } from "../lib/defined.ts";
import type { EventData } from "../protocol/event.ts";
import type { TaskJournal } from "./journal.ts";
import type { RegistryPorts, TurnEnd } from "./ports.ts";
import type { RunningTask, RunningTasks } from "./running-tasks.ts";
import type { Slots } from "./slots.ts";
import { type TaskFold, untold } from "./task-fold.ts";
import type { TaskMessage, TaskRecord } from "./task-record.ts";
import { isFinal, next, type TaskSignal } from "./task-state.ts";

/** Longer answers are stored in a separate file. */
const LARGE_CHARACTERS = 16_384;
/** Time that a runner may take to stop or release resources before it is abandoned. */
export const GRACE_MS = 2_000;

type Answer = Partial<Pick<EventData<"troupe.task_state">, "turn" | "response" | "responseFile" | "error" | "limit">>;

export interface TaskActivationParts {
  readonly options: RegistryPorts;
  readonly fold: TaskFold;
  readonly journal: TaskJournal;
  readonly slots: Slots;
  readonly runningTasks: RunningTasks;
}

export class Activations {
  readonly #parts: TaskActivationParts;

  constructor(parts: TaskActivationParts) {
    this.#parts = parts;
  }

  /** Starts an activation. The caller has already requested the slot, so that slots are granted in order. */
  start(task: TaskRecord, slot: Promise<void>): void {
    const live = this.#parts.runningTasks.of(task.id);
    live.run = this.#activate(task, live, slot).catch((error: unknown) => {
      if (!this.#parts.journal.isClosed) this.#parts.options.onDefect?.(error);
    });
  }

  /** Attaches to tasks that went on without a process, and interrupts the others. */
  async restore(unfinished: readonly TaskRecord[], goesOn: (task: TaskRecord) => boolean): Promise<void> {
    for (const task of unfinished.filter(goesOn)) {
      const slot = this.#parts.slots.take(task.id, this.#parts.runningTasks.of(task.id).stop.signal);
      slot.catch(() => undefined); // stopped while waiting
      this.start(task, slot);
    }
    await Promise.all(
      unfinished
        .filter((task) => !goesOn(task))
        .map(async (task) => {
          // It received a message but was not awake yet. The sender expects it to run, so it must be notified of the
          // interruption.
          if (task.status === "idle") await this.change(task, { kind: "woken" });
          await this.change(task, { kind: "process_gone" });
        }),
    );
  }

  /** Resumes an idle task with its unread messages. Call only inside `runningTasks.runExclusive` of the task. */
  async wake(task: TaskRecord): Promise<void> {
    const { runningTasks, slots } = this.#parts;
    const live = runningTasks.of(task.id);
    if (!live.isStopping && task.status === "idle") {
      const slot = slots.take(task.id, live.stop.signal);
      slot.catch(() => undefined); // stopped while waiting
      await this.change(task, { kind: "woken" });
      this.start(task, slot);
    }
    live.isWaking = false;
  }

  /**
   * Moves the task to its next state and resolves when that is in the log. Returns false if the signal does not apply.
   */
  async change(task: TaskRecord, signal: TaskSignal, answer: Answer = {}): Promise<boolean> {
    const from = task.status;
    const to = next({ status: from, ...defined({ reason: task.reason }) }, signal);
    if (!to) return false;
    const data = { taskId: task.id, from, to: to.status, ...defined({ reason: to.reason }), ...answer };
    await this.#parts.journal.keep("troupe.task_state", data, () => task.status === to.status);
    return true;
  }

  /** Returns the messages not yet passed to the agent, and marks them as passed. */
  hand(task: TaskRecord): readonly TaskMessage[] {
    const { handed } = this.#parts.runningTasks.of(task.id);
    const messages = untold(task).filter(({ id }) => !handed.has(id));
    for (const { id } of messages) handed.add(id);
    return messages;
  }

  /** Asks the runner to release the task's resources. Abandons it after the grace period. */
  async release(task: TaskRecord): Promise<void> {
    const { runningTasks, options } = this.#parts;
    const live = runningTasks.get(task.id);
    if (!live?.isHolding) return;
    live.isHolding = false;
    await this.within(GRACE_MS, async () => options.runner.release?.(task));
  }

  /** Waits for `work` for at most this long. Reports a rejection as a defect. */
  async within(milliseconds: number, work: () => Promise<unknown>): Promise<void> {
    const { options } = this.#parts;
    const timer = new AbortController();
    const late = options.stamp.sleep(milliseconds, timer.signal).catch(() => undefined);
    const done = work().catch((error: unknown) => options.onDefect?.(error));
    await Promise.race([done, late]);
    timer.abort();
  }

  async #activate(task: TaskRecord, live: RunningTask, slot: Promise<void>): Promise<void> {
    const { runningTasks } = this.#parts;
    try {
      await slot;
    } catch {
      return; // stopped while waiting; the code that stopped it logs that
    }
    const runs = await runningTasks.runExclusive(
      task.id,
      async () => !live.isStopping && (task.status === "running" || this.change(task, { kind: "slot_taken" })),
    );
    if (!runs || live.isStopping) return;
    live.handed.clear();
    const end = await this.#turn(task, live);
    if (live.isStopping) return;
    const answer = await this.#answer(task, end);
    await this.release(task);
    await runningTasks.runExclusive(task.id, async () => {
      if (!live.isStopping) await this.#rest(task, live, { end, answer });
    });
  }

  async #turn(task: TaskRecord, live: RunningTask): Promise<TurnEnd | { kind: "broke"; error: string }> {
    const { options } = this.#parts;
    const messages = this.hand(task);
    live.isHolding = true;
    try {
      const end = await options.runner.turn(task, messages, {
        signal: live.stop.signal,
        activity: (message) => {
          live.activity = { message: message.slice(0, 200), timestamp: options.stamp.now() };
        },
        mcpTask: (known) => {
          live.mcpTask = { ...known, updatedAt: options.stamp.now() };
          options.onChange();
        },
      });
      return end.kind === "answered" && end.response.trim() === "" ? { kind: "empty" } : end;
    } catch (error) {
      if (live.stop.signal.aborted) return { kind: "aborted" };
      options.onDefect?.(error);
      return { kind: "broke", error: error instanceof Error ? `${error.name}: ${error.message}` : String(error) };
    }
  }

  async #answer(task: TaskRecord, end: TurnEnd | { kind: "broke"; error: string }): Promise<Answer> {
    const error = "error" in end ? end.error : end.kind === "limit" ? end.message : undefined;
    const words = "response" in end ? (end.response ?? "") : "";
    const spoken = end.kind === "aborted" || end.kind === "broke" ? {} : { turn: task.turns.length + 1 };
    const limit = end.kind === "limit" && { limit: end.limit };
    return {
      ...spoken,
      ...(words !== "" && (await this.#kept(words))),
      ...defined({ error }),
      ...limit,
    };
  }

  /** Stores a large answer in a file. If that fails, the answer goes into the log: answers are never truncated. */
  async #kept(response: string): Promise<Answer> {
    if (response.length <= LARGE_CHARACTERS) return { response };
    try {
      return { responseFile: await this.#parts.options.keepLarge(response) };
    } catch {
      return { response };
    }
  }

  async #rest(
    task: TaskRecord,
    live: RunningTask,
    { end, answer }: { end: TurnEnd | { kind: "broke"; error: string }; answer: Answer },
  ): Promise<void> {
    if (end.kind === "broke") {
      await this.#end(task, { kind: "broke" }, answer);
      return;
    }
    if (end.kind !== "failed" && end.kind !== "aborted") await this.#confirmHanded(task, live);
    const isTold = task.messages.some(({ id }) => !live.handed.has(id));
    live.isWaking = isTold;
    const continues = (task.spec.multiTurn && !this.#isOrphan(task)) || isTold;
    const signal = { kind: "turn_ended", outcome: end.kind, continues } as const;
    if (continues) await this.change(task, signal, answer);
    else await this.#end(task, signal, answer);
    if (isTold) await this.wake(task);
  }

  /** Ends the task. Idle agents that it started get no more messages, so they end with it. */
  async #end(task: TaskRecord, signal: TaskSignal, answer: Answer): Promise<void> {
    await this.#dismissChildren(task);
    await this.change(task, signal, answer);
    await this.#dismissChildren(task); // a child may have become idle meanwhile
    await this.#dismissParent(task);
  }

  async #dismissChildren({ id }: TaskRecord): Promise<void> {
    await Promise.all(this.#parts.fold.childrenOf(id).map((child) => this.#dismiss(child)));
  }

  /** Ends a parent that stayed idle only because this task was running. */
  async #dismissParent({ parentId }: TaskRecord): Promise<void> {
    const parent = parentId === undefined ? undefined : this.#parts.fold.get(parentId);
    if (parent === undefined || !this.#isOrphan(parent)) return;
    await this.#dismiss(parent);
    if (isFinal(parent.status)) await this.#dismissParent(parent);
  }

  /**
   * Ends an idle task after all its descendants. It stays idle while a descendant is running. An interrupted task also
   * stays idle, because a user can resume it.
   */
  async #dismiss(task: TaskRecord): Promise<void> {
    const { fold, runningTasks } = this.#parts;
    if (task.status !== "idle" || task.reason === "interrupted") return;
    await this.#dismissChildren(task);
    if (fold.childrenOf(task.id).some(({ status }) => !isFinal(status))) return;
    await runningTasks.runExclusive(task.id, () => this.change(task, { kind: "dismissed" }));
  }

  /** Whether the agent that started it, or any ancestor, has ended. */
  #isOrphan({ parentId }: TaskRecord): boolean {
    const parent = parentId === undefined ? undefined : this.#parts.fold.get(parentId);
    return parent !== undefined && (isFinal(parent.status) || this.#isOrphan(parent));
  }

  /** Marks the passed messages as delivered: an agent that has answered has received them. */
  async #confirmHanded(task: TaskRecord, live: RunningTask): Promise<void> {
    const messageIds = task.messages.flatMap(({ id }) => (live.handed.has(id) ? [id] : []));
    if (messageIds.length === 0) return;
    const data = { taskId: task.id, messageIds };
    const isGone = (): boolean => !task.messages.some(({ id }) => messageIds.includes(id));
    await this.#parts.journal.keep("troupe.task_message_delivered", data, isGone);
  }
}
