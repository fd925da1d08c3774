/**
 * Notifies each parent exactly once each time one of its tasks becomes idle or ends: by a notice, or by a call that
 * reads the task first.
 * A notice is confirmed in the log when the parent's model has answered, because only then is it certain that it was
 * sent.
 */
import { defined } from "../lib/defined.ts";
import type { SessionEvent } from "../protocol/event.ts";
import type { TaskJournal } from "./journal.ts";
import { noticeOf, type TaskNotice } from "./notices.ts";
import type { Reader, RegistryPorts } from "./ports.ts";
import type { RunningTasks } from "./running-tasks.ts";
import { hasDueNotice, type TaskFold } from "./task-fold.ts";
import type { NoticeDue, TaskRecord } from "./task-record.ts";
import { isFinal } from "./task-state.ts";

export interface NotificationParts {
  readonly options: RegistryPorts;
  readonly fold: TaskFold;
  readonly journal: TaskJournal;
  readonly runningTasks: RunningTasks;
}

export class Notifications {
  readonly #parts: NotificationParts;
  /** Notices passed to the session. */
  readonly #passedOn = new WeakSet<NoticeDue>();
  /** Notices that are being emitted. They are no longer due, even before they are in the log. */
  readonly #emitting = new WeakSet<NoticeDue>();
  /** The number of the parent's calls that wait to read each task. */
  readonly #readers = new Map<string, number>();
  /** Tasks with a notice that is emitted but not yet confirmed. */
  readonly #unconfirmed = new Set<string>();
  /** Messages that are in an agent's conversation but not yet confirmed, by agent. */
  readonly #unconfirmedMessages = new Map<string, string[]>();
  /** Tasks whose next notice does not wake an idle parent. */
  readonly #notWaking = new Set<string>();
  #isOpen = false;

  constructor(parts: NotificationParts) {
    this.#parts = parts;
    this.reset();
  }

  /** Rebuilds the state from the log, for example after a rewind. */
  reset(): void {
    this.#unconfirmed.clear();
    this.#unconfirmedMessages.clear();
    this.#notWaking.clear();
    for (const task of this.#parts.fold.all()) if (task.notice?.state === "emitted") this.#unconfirmed.add(task.id);
  }

  /** Starts passing on notices. Those left over from an earlier process come first and wake no agent. */
  open(): void {
    this.#isOpen = true;
    for (const task of this.#parts.fold.all()) {
      if (this.#isDue(task)) this.suppressWake(task);
      this.offer(task);
    }
  }

  /** Keeps the task's next notice from waking an idle parent, which then reads it with its next input. */
  suppressWake(task: TaskRecord): void {
    this.#notWaking.add(task.id);
  }

  close(): void {
    this.#isOpen = false;
  }

  /** Returns the due notices for this agent (undefined: the main agent), oldest first. */
  due(parentId: string | undefined): readonly TaskNotice[] {
    return this.#parts.fold.childrenOf(parentId).flatMap((task) => (this.#isDue(task) ? this.#notice(task) : []));
  }

  offer(task: TaskRecord): void {
    if (!this.#isOpen || !task.notice || !this.#isDue(task) || this.#passedOn.has(task.notice)) return;
    this.#passedOn.add(task.notice);
    this.#parts.options.onNotice(task.parentId, this.#notice(task));
    this.#notWaking.delete(task.id);
  }

  /** Suppresses notices while a call of the parent waits to read the task. Returns a function that ends this. */
  reading(task: TaskRecord, reader: Reader | undefined): () => void {
    if (!reader || reader.agentId !== task.parentId) return () => undefined;
    this.#readers.set(task.id, (this.#readers.get(task.id) ?? 0) + 1);
    return () => {
      const left = (this.#readers.get(task.id) ?? 1) - 1;
      if (left > 0) this.#readers.set(task.id, left);
      else this.#readers.delete(task.id);
      this.offer(task);
    };
  }

  /**
   * Marks the task's result as read by this call of its parent. If the call is cut off, the notice becomes due again.
   */
  async read(task: TaskRecord, reader: Reader): Promise<void> {
    if (reader.agentId !== task.parentId || task.notice?.state !== "due" || this.#emitting.has(task.notice)) return;
    await this.#confirm(task, { by: "read", toolCallId: reader.toolCallId });
  }

  /** Confirms that the notice was in a request that was sent. */
  async delivered(task: TaskRecord): Promise<void> {
    this.#unconfirmed.delete(task.id);
    const { notice } = task;
    if (!notice || notice.state === "confirmed") return;
    const { by, readBy } = notice;
    await this.#confirm(task, { by, ...defined({ toolCallId: readBy }) });
  }

  /** Handles an event after the fold has applied it. */
  observe(event: SessionEvent, touched: readonly TaskRecord[]): void {
    for (const task of touched) {
      if (task.notice?.state === "emitted") this.#unconfirmed.add(task.id);
      if (task.notice?.state === "emitted" && task.notice.by === "read") this.#inBackground(this.delivered(task));
      // Due again because the call that read it was cut off: an interrupted parent is not woken by what it had asked for.
      if (event.type === "tool.execution_complete" && task.notice?.state === "due") this.suppressWake(task);
      this.offer(task);
    }
    if (event.type === "user.message" && touched[0]) this.#noteMessage(touched[0], event.data.interactionId);
    if (event.type === "assistant.message") this.#confirmRequest(event.agentId);
  }

  #noteMessage(task: TaskRecord, messageId: string | undefined): void {
    if (messageId === undefined || messageId === task.id) return;
    this.#unconfirmedMessages.set(task.id, [...(this.#unconfirmedMessages.get(task.id) ?? []), messageId]);
  }

  /** Confirms everything in this agent's conversation: its model has answered, so it was sent. */
  #confirmRequest(agentId: string | undefined): void {
    for (const id of this.#unconfirmed) {
      const task = this.#parts.fold.get(id);
      if (task?.parentId === agentId && task) this.#inBackground(this.delivered(task));
    }
    const messageIds = agentId === undefined ? undefined : this.#unconfirmedMessages.get(agentId);
    if (agentId === undefined || !messageIds) return;
    this.#unconfirmedMessages.delete(agentId);
    const data = { taskId: agentId, messageIds };
    this.#inBackground(this.#parts.journal.write("troupe.task_message_delivered", data, () => true));
  }

  async #confirm(task: TaskRecord, delivery: { by: "notice" | "read"; toolCallId?: string }): Promise<void> {
    const { journal, runningTasks } = this.#parts;
    const { notice } = task;
    await runningTasks.runExclusive(task.id, async () => {
      // Another call may have read it meanwhile, or the task has resumed.
      if (!notice || task.notice !== notice) return;
      const { to, answerNumber } = notice;
      const isConfirmed = (): boolean => task.notice !== notice;
      await journal.write(
        "troupe.task_notice_delivered",
        { taskId: task.id, to, turn: answerNumber, ...delivery },
        isConfirmed,
      );
    });
  }

  #isDue(task: TaskRecord): boolean {
    const { fold, runningTasks } = this.#parts;
    if (!hasDueNotice(task) || !task.notice || this.#emitting.has(task.notice)) return false;
    if (this.#readers.has(task.id) || runningTasks.get(task.id)?.isWaking) return false;
    const parent = task.parentId === undefined ? undefined : fold.get(task.parentId);
    return !parent || !(isFinal(parent.status) || runningTasks.get(parent.id)?.isStopping);
  }

  #notice(task: TaskRecord): TaskNotice {
    const { notice } = task;
    const take = (): boolean => {
      if (!notice || task.notice !== notice || !this.#isDue(task)) return false;
      this.#emitting.add(notice);
      return true;
    };
    return { ...noticeOf(task), wakes: !this.#notWaking.has(task.id), take };
  }

  #inBackground(work: Promise<void>): void {
    work.catch((error: unknown) => {
      if (!this.#parts.journal.isClosed) this.#parts.options.onDefect?.(error);
    });
  }
}
