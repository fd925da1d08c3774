import { defined } from "../../lib/defined.ts";
import type { GivenAttachment } from "../../protocol/define-event.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { Attachment, Emit } from "../../protocol/event.ts";
import { type PendingMessage, type PendingMessages, queuedMessage, type SendOptions } from "./pending-messages.ts";

interface QueueEditorParts {
  readonly pending: PendingMessages;
  readonly emit: Emit;
  /** Accepts a message at the end of the queue. */
  enqueue(options: SendOptions): Promise<PendingMessage>;
  /** Stores attachments with the session. */
  storeAttachments(given: readonly GivenAttachment[]): Promise<readonly Attachment[]>;
  isWorking(): boolean;
  /** Called when a message may have become answerable. */
  wake(): void;
}

interface SteeringAddition {
  readonly prompt: string;
  readonly displayPrompt: string;
  readonly attachments: readonly GivenAttachment[];
}

/**
 * Edits waiting messages. Texts and new messages are in the log before a change resolves. The order is not stored: a
 * reopened session has the order of arrival.
 */
export class QueueEditor {
  readonly #parts: QueueEditorParts;

  constructor(parts: QueueEditorParts) {
    this.#parts = parts;
  }

  /** Moves a message. Returns whether its position has changed. A position outside the queue means its nearest end. */
  move(messageId: string, position: number): boolean {
    const isMoved = this.#parts.pending.move(messageId, position);
    if (isMoved) this.#changed();
    return isMoved;
  }

  async insert(options: SendOptions, position: number): Promise<string> {
    const { messageId } = await this.#parts.enqueue({ ...options, mode: "enqueue" });
    this.move(messageId, position);
    return messageId;
  }

  /** Inserts a copy right after the message. Throws if it is not waiting. */
  async duplicate(messageId: string): Promise<string> {
    const { pending } = this.#parts;
    const message = this.#waiting(messageId);
    const { content: prompt, displayPrompt, source, agentMode, rules, attachments } = message;
    const copy = {
      prompt,
      ...defined({ displayPrompt, source, agentMode, answering: rules }),
    };
    const made = await this.#parts.enqueue({ ...copy, ...(attachments && { attachments: [...attachments] }) });
    this.move(made.messageId, pending.waiting.queued.findIndex((one) => one.messageId === messageId) + 1);
    return made.messageId;
  }

  /** Changes the text. Returns false if the message is no longer waiting. */
  async update(
    messageId: string,
    { prompt, displayPrompt }: { prompt: string; displayPrompt?: string },
  ): Promise<boolean> {
    const known = this.#parts.pending.waiting.queued.find((one) => one.messageId === messageId);
    if (!known) return false;
    const { displayPrompt: _, ...rest } = known;
    return this.#replace({ ...rest, content: prompt, ...defined({ displayPrompt }) });
  }

  /**
   * Appends to a message that a working agent reads next. Returns false if its text is not `expected` or the agent has
   * already read it.
   */
  async append(messageId: string, expected: string, more: SteeringAddition): Promise<boolean> {
    const attachments = more.attachments.length > 0 ? await this.#parts.storeAttachments(more.attachments) : [];
    const known = this.#parts.pending.waiting.steering.find((one) => one.messageId === messageId);
    if (known?.content !== expected) return false;
    const shown = known.displayPrompt ?? known.content;
    return this.#replace({
      ...known,
      content: `${known.content}\n\n${more.prompt}`,
      ...((known.displayPrompt !== undefined || more.displayPrompt !== more.prompt) && {
        displayPrompt: `${shown}\n\n${more.displayPrompt}`,
      }),
      ...(attachments.length > 0 && { attachments: [...(known.attachments ?? []), ...attachments] }),
    });
  }

  async #replace(message: PendingMessage): Promise<boolean> {
    const { pending, emit } = this.#parts;
    // Update memory first: an agent that reads the message during the write gets the new text.
    const isChanged = pending.replace(message);
    if (!isChanged) return false;
    await emit("troupe.message_queued", queuedMessage(message));
    this.#changed();
    return true;
  }

  /** Lets a working agent read the message before its next model call. Returns false if no agent is working. */
  sendNow(messageId: string): boolean {
    if (!this.#parts.isWorking()) return false;
    const isSteered = this.#parts.pending.promote(messageId);
    if (isSteered) this.#changed();
    return isSteered;
  }

  /**
   * Pauses or resumes the queue. While paused, messages wait even if the agent is idle. Throws if it is already paused.
   */
  setPaused(isPaused: boolean): void {
    const { pending } = this.#parts;
    if (isPaused && pending.isPaused)
      throw new TroupeError("usage", "queue_already_paused: the queue is paused already.");
    pending.isPaused = isPaused;
    if (!isPaused) this.#parts.wake();
  }

  #waiting(messageId: string): PendingMessage {
    const message = this.#parts.pending.waiting.queued.find((one) => one.messageId === messageId);
    if (!message) throw new TroupeError("usage", `There is no message ${messageId} in the queue.`);
    return message;
  }

  #changed(): void {
    void this.#parts.emit("pending_messages.modified", {});
  }
}
