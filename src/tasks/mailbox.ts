import { defined } from "../lib/defined.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { MessageReceipt } from "../tools/agents/task-port.ts";
import type { TaskRecord } from "./task-record.ts";
import type { TaskRunParts, TaskRuns } from "./task-runs.ts";
import { isFinal } from "./task-state.ts";

const MAX_MESSAGE_CHARACTERS = 1_000_000;
const MAX_UNREAD_MESSAGES = 100;

/** Accepts messages to agents. An accepted message is in the log, and an idle agent wakes up for it. */
export class Mailbox {
  readonly #parts: TaskRunParts;
  readonly #taskRuns: TaskRuns;

  constructor(parts: TaskRunParts, taskRuns: TaskRuns) {
    this.#parts = parts;
    this.#taskRuns = taskRuns;
  }

  async accept(task: TaskRecord, content: string, from: string | undefined): Promise<MessageReceipt> {
    const { journal, runningTasks } = this.#parts;
    const { id } = task;
    // Fail at once instead of waiting for the log together with other decisions.
    if (journal.trouble !== undefined) return refused(id, `The session's log cannot be written: ${journal.trouble}`);
    return runningTasks.runExclusive(id, async () => {
      const reason = this.#refusal(task, content) ?? (await this.#store(task, content, from));
      if (reason !== undefined) return refused(id, reason);
      return task.status === "idle" ? this.#wake(task) : { id, outcome: "queued" };
    });
  }

  /** Returns the reason why this message cannot be accepted, or undefined. */
  #refusal({ id, status, messages }: TaskRecord, content: string): string | undefined {
    const { runningTasks, options, slots } = this.#parts;
    const { whenFull, maxConcurrency } = options.limits;
    if (isFinal(status)) return `Agent "${id}" has ended (${status}). Start a new one for further work.`;
    if (runningTasks.get(id)?.isStopping) return `Agent "${id}" is being stopped.`;
    if (content.trim() === "") return "The message is empty.";
    if (content.length > MAX_MESSAGE_CHARACTERS)
      return "The message is too long. Put it into a file and name the file.";
    if (messages.length >= MAX_UNREAD_MESSAGES) return `Agent "${id}" has ${messages.length} unread messages already.`;
    if (status !== "idle" || whenFull === "queue" || !slots.isFull) return undefined;
    return `The maximum number of concurrent agents (${maxConcurrency}) is reached, and agent "${id}" stays idle. Try again when one has ended.`;
  }

  /** Stores the message. Returns the reason if that fails. */
  async #store({ id: taskId }: TaskRecord, content: string, from: string | undefined): Promise<string | undefined> {
    const { journal, options } = this.#parts;
    const messageId = options.stamp.id("message");
    try {
      await journal.offer(
        "troupe.task_message",
        { taskId, messageId, content, ...defined({ from }) },
        (event) => event.type === "troupe.task_message" && event.data.messageId === messageId,
      );
      return undefined;
    } catch (error) {
      if (error instanceof TroupeError) return error.message;
      throw error;
    }
  }

  #wake(task: TaskRecord): MessageReceipt {
    const { journal, runningTasks, options, slots } = this.#parts;
    const outcome = slots.isFull ? "queued" : "delivered";
    runningTasks.of(task.id).isWaking = true;
    runningTasks
      .runExclusive(task.id, () => this.#taskRuns.wake(task))
      .catch((error: unknown) => {
        if (!journal.isClosed) options.onDefect?.(error);
      });
    return { id: task.id, outcome };
  }
}

export const refused = (id: string, error: string): MessageReceipt => ({ id, outcome: "refused", error });
