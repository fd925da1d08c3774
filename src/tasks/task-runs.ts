/** Runs tasks: wait for a slot, let the agent answer its messages, become idle or end. */
import { defined } from "../lib/defined.ts";
import type { EventData } from "../protocol/event.ts";
import type { TaskJournal } from "./journal.ts";
import type { AnswerEnd, RegistryPorts } from "./ports.ts";
import type { RunningTask, RunningTasks } from "./running-tasks.ts";
import type { Slots } from "./slots.ts";
import { type TaskFold, undelivered } from "./task-fold.ts";
import type { TaskMessage, TaskRecord } from "./task-record.ts";
import { isFinal, next, type TaskSignal } from "./task-state.ts";

/** Longer answers are stored in a separate file. */
const LARGE_CHARACTERS = 16_384;
/** Time that a runner may take to stop or release resources before it is abandoned. */
export const GRACE_MS = 2_000;

type Answer = Partial<Pick<EventData<"troupe.task_state">, "turn" | "response" | "responseFile" | "error" | "limit">>;

export interface TaskRunParts {
  readonly options: RegistryPorts;
  readonly fold: TaskFold;
  readonly journal: TaskJournal;
  readonly slots: Slots;
  readonly runningTasks: RunningTasks;
}

export class TaskRuns {
  readonly #parts: TaskRunParts;

  constructor(parts: TaskRunParts) {
    this.#parts = parts;
  }

  /** Starts a run. The caller has already requested the slot, so that slots are granted in order. */
  start(task: TaskRecord, slot: Promise<void>): void {
    const running = this.#parts.runningTasks.of(task.id);
    running.run = this.#run(task, running, slot).catch((error: unknown) => {
      if (!this.#parts.journal.isClosed) this.#parts.options.onDefect?.(error);
    });
  }

  /** Attaches to tasks that went on without a process, and interrupts the others. */
  async restore(unfinished: readonly TaskRecord[], continuesDetached: (task: TaskRecord) => boolean): Promise<void> {
    for (const task of unfinished.filter(continuesDetached)) {
      const slot = this.#parts.slots.take(task.id, this.#parts.runningTasks.of(task.id).stop.signal);
      slot.catch(() => undefined); // stopped while waiting
      this.start(task, slot);
    }
    await Promise.all(
      unfinished
        .filter((task) => !continuesDetached(task))
        .map(async (task) => {
          // It received a message but was not awake yet. The sender expects it to run, so it must be notified of the
          // interruption.
          if (task.status === "idle") await this.change(task, { kind: "resumed" });
          await this.change(task, { kind: "process_gone" });
        }),
    );
  }

  /** Resumes an idle task with its unread messages. Call only inside `runningTasks.runExclusive` of the task. */
  async wake(task: TaskRecord): Promise<void> {
    const { runningTasks, slots } = this.#parts;
    const running = runningTasks.of(task.id);
    if (!running.isStopping && task.status === "idle") {
      const slot = slots.take(task.id, running.stop.signal);
      slot.catch(() => undefined); // stopped while waiting
      await this.change(task, { kind: "resumed" });
      this.start(task, slot);
    }
    running.isWaking = false;
  }

  /**
   * Moves the task to its next state and resolves when that is in the log. Returns false if the signal does not apply.
   */
  async change(task: TaskRecord, signal: TaskSignal, answer: Answer = {}): Promise<boolean> {
    const from = task.status;
    const to = next({ status: from, ...defined({ reason: task.reason }) }, signal);
    if (!to) return false;
    const data = { taskId: task.id, from, to: to.status, ...defined({ reason: to.reason }), ...answer };
    await this.#parts.journal.write("troupe.task_state", data, () => task.status === to.status);
    return true;
  }

  /** Returns the messages not yet passed to the agent, and marks them as passed. */
  takeMessages(task: TaskRecord): readonly TaskMessage[] {
    const { passed } = this.#parts.runningTasks.of(task.id);
    const messages = undelivered(task).filter(({ id }) => !passed.has(id));
    for (const { id } of messages) passed.add(id);
    return messages;
  }

  /** Asks the runner to release the task's resources. Abandons it after the grace period. */
  async release(task: TaskRecord): Promise<void> {
    const { runningTasks, options } = this.#parts;
    const running = runningTasks.get(task.id);
    if (!running?.isHolding) return;
    running.isHolding = false;
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

  async #run(task: TaskRecord, running: RunningTask, slot: Promise<void>): Promise<void> {
    const { runningTasks } = this.#parts;
    try {
      await slot;
    } catch {
      return; // stopped while waiting; the code that stopped it logs that
    }
    const runs = await runningTasks.runExclusive(
      task.id,
      async () => !running.isStopping && (task.status === "running" || this.change(task, { kind: "slot_taken" })),
    );
    if (!runs || running.isStopping) return;
    running.passed.clear();
    const end = await this.#runAgent(task, running);
    if (running.isStopping) return;
    const answer = await this.#dataOf(task, end);
    await this.release(task);
    await runningTasks.runExclusive(task.id, async () => {
      if (!running.isStopping) await this.#endRun(task, running, { end, answer });
    });
  }

  async #runAgent(
    task: TaskRecord,
    running: RunningTask,
  ): Promise<AnswerEnd | { kind: "runner_failed"; error: string }> {
    const { options } = this.#parts;
    const messages = this.takeMessages(task);
    running.isHolding = true;
    try {
      const end = await options.runner.answer(task, messages, {
        signal: running.stop.signal,
        activity: (message) => {
          running.activity = { message: message.slice(0, 200), timestamp: options.stamp.now() };
        },
        mcpTask: (known) => {
          running.mcpTask = { ...known, updatedAt: options.stamp.now() };
          options.onChange();
        },
      });
      return end.kind === "answered" && end.response.trim() === "" ? { kind: "empty" } : end;
    } catch (error) {
      if (running.stop.signal.aborted) return { kind: "aborted" };
      options.onDefect?.(error);
      return {
        kind: "runner_failed",
        error: error instanceof Error ? `${error.name}: ${error.message}` : String(error),
      };
    }
  }

  async #dataOf(task: TaskRecord, end: AnswerEnd | { kind: "runner_failed"; error: string }): Promise<Answer> {
    const error = "error" in end ? end.error : end.kind === "limit" ? end.message : undefined;
    const response = "response" in end ? (end.response ?? "") : "";
    const answerNumber =
      end.kind === "aborted" || end.kind === "runner_failed" ? {} : { turn: task.answers.length + 1 };
    const limit = end.kind === "limit" && { limit: end.limit };
    return {
      ...answerNumber,
      ...(response !== "" && (await this.#storeAnswer(response))),
      ...defined({ error }),
      ...limit,
    };
  }

  /** Stores a large answer in a file. If that fails, the answer goes into the log: answers are never truncated. */
  async #storeAnswer(response: string): Promise<Answer> {
    if (response.length <= LARGE_CHARACTERS) return { response };
    try {
      return { responseFile: await this.#parts.options.storeLarge(response) };
    } catch {
      return { response };
    }
  }

  async #endRun(
    task: TaskRecord,
    running: RunningTask,
    { end, answer }: { end: AnswerEnd | { kind: "runner_failed"; error: string }; answer: Answer },
  ): Promise<void> {
    if (end.kind === "runner_failed") {
      await this.#end(task, { kind: "runner_failed" }, answer);
      return;
    }
    if (end.kind !== "failed" && end.kind !== "aborted") await this.#confirmPassed(task, running);
    const hasNewMessages = task.messages.some(({ id }) => !running.passed.has(id));
    running.isWaking = hasNewMessages;
    const continues = (task.spec.multiTurn && !this.#hasEndedAncestor(task)) || hasNewMessages;
    const signal = { kind: "answer_ended", outcome: end.kind, continues } as const;
    if (continues) await this.change(task, signal, answer);
    else await this.#end(task, signal, answer);
    if (hasNewMessages) await this.wake(task);
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
    if (parent === undefined || !this.#hasEndedAncestor(parent)) return;
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
    await runningTasks.runExclusive(task.id, () => this.change(task, { kind: "parent_ended" }));
  }

  /** Whether the agent that started it, or any ancestor, has ended. */
  #hasEndedAncestor({ parentId }: TaskRecord): boolean {
    const parent = parentId === undefined ? undefined : this.#parts.fold.get(parentId);
    return parent !== undefined && (isFinal(parent.status) || this.#hasEndedAncestor(parent));
  }

  /** Marks the passed messages as delivered: an agent that has answered has received them. */
  async #confirmPassed(task: TaskRecord, running: RunningTask): Promise<void> {
    const messageIds = task.messages.flatMap(({ id }) => (running.passed.has(id) ? [id] : []));
    if (messageIds.length === 0) return;
    const data = { taskId: task.id, messageIds };
    const isGone = (): boolean => !task.messages.some(({ id }) => messageIds.includes(id));
    await this.#parts.journal.write("troupe.task_message_delivered", data, isGone);
  }
}
