import { deferred } from "../../lib/deferred.ts";
import { stoppable } from "../../lib/node/stoppable.ts";
import type { PendingTurn } from "../../loop/run.ts";
import type { GivenAttachment } from "../../protocol/define-event.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { Attachment, Emit } from "../../protocol/event.ts";
import { storeAttachments } from "../attachments.ts";
import { pauseAfter } from "../budget/queue-pause.ts";
import type { ModeState } from "../modes/mode-state.ts";
import type { SessionOptions } from "../session-options.ts";
import type { AnswerRunner, Outcome, SenderCallbacks } from "./answer-runner.ts";
import { IdleMonitor } from "./idle-monitor.ts";
import { OutcomeWaiters } from "./outcome-waiters.ts";
import {
  type PendingMessage,
  type PendingMessages,
  pendingMessage,
  type SendOptions,
  type SystemNotice,
} from "./pending-messages.ts";
import { QueueEditor } from "./queue-editor.ts";

interface MessageQueueParts {
  readonly sessionId: string;
  readonly options: Pick<SessionOptions, "stamp" | "log" | "waitForAgentsMs">;
  readonly pending: PendingMessages;
  readonly runner: AnswerRunner;
  readonly emit: Emit;
  readonly modes: Pick<ModeState, "current" | "resting">;
  /** Aborts when the session is closed. */
  readonly closed: AbortSignal;
  /** Whether background agents may still send notices. */
  areAgentsBusy(): boolean;
}

/** Accepts messages and answers them one at a time until none is left. */
export class MessageQueue {
  readonly #parts: MessageQueueParts;
  readonly #idleMonitor = new IdleMonitor();
  readonly #outcomeWaiters = new OutcomeWaiters();
  #working: Promise<void> | undefined;
  #abort = stoppable();
  #isClosing = false;
  /** The turn of an earlier process that is to be resumed. */
  pendingTurn: PendingTurn | undefined;

  constructor(parts: MessageQueueParts) {
    this.#parts = parts;
    const { pending, emit } = parts;
    this.editor = new QueueEditor({
      pending,
      emit,
      enqueue: (options) => this.accept(options),
      storeAttachments: (given) => this.#storeAttachments(given),
      isWorking: () => this.isWorking,
      wake: () => {
        if (!this.#isClosing && pending.size > 0) this.#working ??= this.#work();
        this.#idleMonitor.wake();
      },
    });
  }

  /** True from the acceptance of a message until the session is idle. */
  get isWorking(): boolean {
    return this.#working !== undefined;
  }

  /** True while waiting messages or running agents will wake the main agent. */
  get isPending(): boolean {
    return this.#parts.pending.size > 0 || this.#parts.areAgentsBusy();
  }

  /** Aborts when the session is closed. */
  get closed(): AbortSignal {
    return this.#parts.closed;
  }

  /** Changes to waiting messages. */
  readonly editor: QueueEditor;

  get waiting(): PendingMessages["waiting"] {
    return this.#parts.pending.waiting;
  }

  /** Withdraws a waiting message. Its outcome is `aborted`. Returns false if it is not waiting. */
  async withdraw(messageId: string): Promise<boolean> {
    const { pending, emit } = this.#parts;
    if (!pending.withdraw(messageId)) return false;
    this.#outcomeWaiters.resolve([messageId]);
    void emit("pending_messages.modified", {});
    await emit("troupe.message_withdrawn", { messageId });
    return true;
  }

  /** Resolves when nothing is running. */
  async whenIdle(): Promise<void> {
    await this.#working;
  }

  /** Makes an idle session check for work. */
  wake(): void {
    this.#idleMonitor.wake();
  }

  /** Aborts the current answer. Waiting messages are answered next. */
  abort(): void {
    this.#abort.abort();
  }

  /** Stops accepting messages and starting work. */
  refuse(): void {
    this.#isClosing = true;
  }

  /** Accepts a message. When this resolves, it is on disk and will be answered. `onOutcome` receives the outcome. */
  async accept(options: SendOptions, onOutcome?: (outcome: Outcome) => void): Promise<PendingMessage> {
    if (this.#isClosing) throw this.#closedError();
    const { pending, runner, emit } = this.#parts;
    const attachments = options.attachments?.length ? await this.#storeAttachments(options.attachments) : [];
    const { current } = this.#parts.modes;
    const inMode = current === "interactive" ? options : { agentMode: current, ...options };
    const message = pendingMessage(this.#parts.options.stamp.id("message"), inMode, attachments);
    void emit("pending_messages.modified", {});
    // Behind others it is stored and acknowledged at once: its sender does not wait for their answers.
    if (this.#working || this.pendingTurn || pending.size > 0 || pending.isPaused) {
      await runner.storeQueued(message);
      this.#outcomeWaiters.wait(message.messageId, onOutcome);
      if (message.mode === "immediate") pending.steer(message);
      else pending.enqueue(message);
      this.#idleMonitor.wake();
      // The session may have become idle during the write. A closed session answers it once it is resumed and works again.
      if (!this.#isClosing) this.#working ??= pending.size > 0 ? this.#work() : undefined;
      else this.#outcomeWaiters.resolve([message.messageId]);
      return message;
    }
    const accepted = deferred<void>();
    this.#outcomeWaiters.wait(message.messageId, onOutcome);
    pending.enqueue(message);
    this.#working = this.#work({ messageId: message.messageId, accepted: accepted.resolve, refused: accepted.reject });
    await accepted.promise;
    return message;
  }

  /**
   * Clears the conversation and continues with this prompt: before the next model call, or at once if nothing is
   * running. When this resolves, the conversation is cleared and the prompt will be answered.
   */
  async startAfresh(prompt: string, messagesCleared: number): Promise<void> {
    if (this.#isClosing) throw this.#closedError();
    const { pending, runner, emit, options } = this.#parts;
    const message = pendingMessage(options.stamp.id("message"), { prompt, mode: "immediate" }, []);
    void emit("pending_messages.modified", {});
    await runner.repair();
    // One write: both events are stored, or neither.
    const cleared = emit("session.context_cleared", { messagesCleared, initialMessage: prompt });
    await runner.storeQueued(message);
    await cleared;
    pending.steerFirst(message);
    this.#idleMonitor.wake();
    if (!this.#isClosing) this.#working ??= this.#work();
  }

  /** Stores attachments before the message that refers to them. */
  async #storeAttachments(given: readonly GivenAttachment[]): Promise<readonly Attachment[]> {
    const attachments = await storeAttachments(given, this.#parts.options.log);
    if (this.#isClosing) throw this.#closedError();
    return attachments;
  }

  /** Runs `work` while nothing is answered; new messages wait. Returns undefined if something is already running. */
  async alone<T>(work: () => Promise<T>): Promise<T | undefined> {
    const { pending } = this.#parts;
    if (this.#working || this.pendingTurn || this.#isClosing || pending.size > 0) return undefined;
    const done = deferred<void>();
    this.#working = done.promise;
    try {
      return await work();
    } finally {
      this.#working = !this.#isClosing && pending.size > 0 ? this.#work() : undefined;
      done.resolve();
    }
  }

  /** Sends the agent a notice that no user typed: before its next model call, or by waking an idle agent. */
  notify(notice: SystemNotice, options: { wakes?: boolean; take?: () => boolean } = {}): void {
    if (this.#isClosing) return;
    this.#parts.pending.notify(notice, options);
    if (options.wakes !== false) this.#working ??= this.#work();
    this.#idleMonitor.wake();
  }

  /** Resumes the pending work of an earlier process, if there is any, before any message is answered. */
  resume(): void {
    if (this.pendingTurn && !this.#isClosing) this.#working ??= this.#work();
  }

  /** Answers messages until none is left. Never rejects: a failure is an outcome and an event. */
  async #work(first?: SenderCallbacks): Promise<void> {
    const { pending, runner, emit } = this.#parts;
    let outcome: Outcome | undefined;
    /** Messages whose answer may continue: results of background agents arrive in later turns. */
    const open: string[] = [];
    const resolveOpen = (): void => this.#outcomeWaiters.resolve(open.splice(0), outcome);
    const { pendingTurn } = this;
    this.pendingTurn = undefined;
    if (pendingTurn) {
      this.#abort = stoppable();
      outcome = await runner.answer(pendingTurn, this.#abort.signal);
    }
    do {
      for (let next = this.#next(); next; next = this.#next()) {
        if (!next.notice) resolveOpen();
        this.#abort = stoppable();
        const acceptance = next.messageId === first?.messageId ? first : undefined;
        outcome = await runner.answer(next, this.#abort.signal, acceptance);
        open.push(next.messageId, ...pending.takeJoined());
        if (outcome.kind !== "done") resolveOpen();
        if (outcome.kind === "failed") break; // waiting messages stay queued until the next message
        if (pending.size > 0) await this.#pauseAfter(outcome);
      }
      const aborted = outcome?.kind === "aborted" ? { aborted: true } : {};
      await runner.emitCost();
      void emit("assistant.idle", aborted);
      if (outcome?.kind !== "failed" && (await this.#waitForWork())) continue;
      resolveOpen();
      void emit("session.idle", { ...aborted, ...this.#parts.modes.resting });
    } while (outcome?.kind !== "failed" && !this.#isClosing && pending.size > 0);
    if (outcome?.kind === "failed" || this.#isClosing) this.#outcomeWaiters.resolveAll(outcome);
    first?.refused(this.#closedError()); // no effect if it was accepted
    this.#working = undefined;
  }

  #next(): PendingMessage | undefined {
    const { pending, options } = this.#parts;
    return this.#isClosing ? undefined : pending.takeNext(() => options.stamp.id("message"));
  }

  async #pauseAfter(outcome: Outcome): Promise<void> {
    this.#abort = stoppable();
    const { pending, emit, options } = this.#parts;
    await pauseAfter(outcome, { waiting: pending.size, emit, stamp: options.stamp, signal: this.#abort.signal });
  }

  /**
   * Waits while background agents are busy. Returns true if there is something to answer before the session is idle.
   */
  async #waitForWork(): Promise<boolean> {
    const { pending, options, areAgentsBusy: isBusy } = this.#parts;
    const { stamp, waitForAgentsMs: limitMs } = options;
    const hasWork = (): boolean => this.#isClosing || pending.size > 0;
    await this.#idleMonitor.waitForAgents({ hasWork, isBusy, stamp, limitMs });
    return !this.#isClosing && pending.size > 0;
  }

  #closedError(): TroupeError {
    return new TroupeError("failed", `Session ${this.#parts.sessionId} is closed.`);
  }
}
