import type { ToolLimits } from "../../commands/command.ts";
import type { StopGate } from "../../commands/gate.ts";
import { defined } from "../../lib/defined.ts";
import type { Json } from "../../lib/json.ts";
import type { TraceContext } from "../../lib/trace-context.ts";
import type { GivenAttachment } from "../../protocol/define-event.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { Attachment, Emit, EventData, SessionEvent } from "../../protocol/event.ts";

type UserMessage = EventData<"user.message">;

/** A message to the agent that no user typed. */
export type SystemNotice = EventData<"system.notification">;

/** A message on its way to the agent. */
export interface PendingMessage {
  readonly messageId: string;
  readonly content: string;
  readonly attachments?: readonly Attachment[];
  /** `immediate` reaches a working agent before its next model call; `enqueue` waits until the earlier ones are answered. */
  readonly mode: "enqueue" | "immediate";
  /** Shown to users instead of the content. */
  readonly displayPrompt?: string;
  /** The sender, if it is not a user. */
  readonly source?: string;
  /** The mode that the sender intended. */
  readonly agentMode?: NonNullable<UserMessage["agentMode"]>;
  /** Rules for the answer to this message only. Except for `stored`, they do not outlive the process. */
  readonly rules?: AnswerRules;
  /** Set for a message of an earlier process: the rules to rebuild. */
  readonly storedRules?: StoredRules;
  /** Set for a notice that woke the agent: there is no user message then. */
  readonly notice?: SystemNotice;
}

/** Structured output, in the wire's format. */
export interface AnswerFormat {
  readonly type: "json_schema";
  readonly jsonSchema: {
    readonly name: string;
    readonly schema: Json;
    readonly description?: string;
    readonly strict?: boolean;
  };
}

/** The rules of a command in the form that the log stores. */
export type StoredRules = NonNullable<EventData<"troupe.message_queued">["rules"]>;

/** Rules for answering one message. */
export interface AnswerRules {
  /** Limits the main agent's tools. */
  readonly tools?: ToolLimits;
  /** Agents that may be started for it, even if models cannot choose them. */
  readonly agents?: readonly string[];
  /** Sent with each model request of the main agent. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The required form of the answer's text. */
  readonly responseFormat?: AnswerFormat;
  /** The sender's trace. */
  readonly trace?: TraceContext;
  /** Called before the agent stops. */
  readonly gate?: { readonly name: string; readonly ask: StopGate };
  /** Tools, agents and gate as stored in the log, so that they also apply after a crash. */
  readonly stored?: StoredRules;
}

export interface SendOptions {
  readonly displayPrompt?: string;
  readonly source?: string;
  readonly answering?: AnswerRules;
  readonly prompt: string;
  readonly attachments?: readonly GivenAttachment[];
  readonly mode?: PendingMessage["mode"];
  readonly agentMode?: NonNullable<UserMessage["agentMode"]>;
}

interface PendingNotice {
  readonly notice: SystemNotice;
  /** Whether it wakes an idle agent. */
  readonly wakes: boolean;
  /** Called right before it is emitted. Returns false if it is no longer needed. */
  take(): boolean;
}

/** Waiting messages, first in, first out. Steering messages that arrived too late go to the front. */
export class PendingMessages {
  readonly #queue: PendingMessage[] = [];
  #steering: PendingMessage[] = [];
  #notices: PendingNotice[] = [];
  #joined: string[] = [];
  /** While paused, queued messages wait even if the agent is idle. Steering and notices do not. */
  isPaused = false;

  /** Restores messages that an earlier process accepted and did not answer. */
  static restored(events: readonly SessionEvent[]): PendingMessages {
    const pending = new PendingMessages();
    const waiting = new Map<string, PendingMessage>();
    for (const event of events) {
      if (event.type === "troupe.message_queued") {
        const { rules: storedRules, ...message } = event.data;
        waiting.set(message.messageId, { ...message, ...defined({ storedRules }) });
      }
      if (event.type === "user.message" && event.data.interactionId) waiting.delete(event.data.interactionId);
      // A session is rewound only when nothing waits: messages that seem to wait were answered in the hidden events.
      if (event.type === "troupe.rewound") waiting.clear();
      if (event.type === "troupe.message_withdrawn") waiting.delete(event.data.messageId);
    }
    for (const message of waiting.values()) pending.enqueue(message);
    return pending;
  }

  get size(): number {
    const waking = this.#notices.filter(({ wakes }) => wakes).length;
    return (this.isPaused ? 0 : this.#queue.length) + this.#steering.length + waking;
  }

  /** Queued messages, and those that a working agent reads next. */
  get waiting(): { readonly queued: readonly PendingMessage[]; readonly steering: readonly PendingMessage[] } {
    return { queued: [...this.#queue], steering: [...this.#steering] };
  }

  /** Removes a message that no agent has read yet. Returns false if there is none. */
  withdraw(messageId: string): boolean {
    const [lane, index] = this.#find(messageId);
    if (index >= 0) lane.splice(index, 1);
    return index >= 0;
  }

  #find(messageId: string): [lane: PendingMessage[], index: number] {
    const lane = this.#steering.some((message) => message.messageId === messageId) ? this.#steering : this.#queue;
    return [lane, lane.findIndex((message) => message.messageId === messageId)];
  }

  /** Moves a queued message. Returns whether its position has changed. */
  move(messageId: string, position: number): boolean {
    const from = this.#queue.findIndex((message) => message.messageId === messageId);
    const to = Math.max(0, Math.min(Math.trunc(position), this.#queue.length - 1));
    if (from < 0 || from === to) return false;
    this.#queue.splice(to, 0, ...this.#queue.splice(from, 1));
    return true;
  }

  /** Replaces the message with the same id. Returns false if it is no longer waiting. */
  replace(message: PendingMessage): boolean {
    const [lane, index] = this.#find(message.messageId);
    if (index >= 0) lane[index] = message;
    return index >= 0;
  }

  /** Moves a message from the queue to those that a working agent reads next. */
  promote(messageId: string): boolean {
    const index = this.#queue.findIndex((message) => message.messageId === messageId);
    this.#steering.push(...(index < 0 ? [] : this.#queue.splice(index, 1)));
    return index >= 0;
  }

  /** Drops undelivered notices. */
  forgetNotices(): void {
    this.#notices = [];
  }

  enqueue(message: PendingMessage): void {
    this.#queue.push(message);
  }

  steer(message: PendingMessage): void {
    this.#steering.push(message);
  }

  /** Puts it before all other steering messages. */
  steerFirst(message: PendingMessage): void {
    this.#steering.unshift(message);
  }

  /** Adds a notice. One that does not wake the agent is read with its next input. */
  notify(notice: SystemNotice, { wakes = true, take = () => true }: Partial<Omit<PendingNotice, "notice">> = {}): void {
    this.#notices.push({ notice, wakes, take });
  }

  /** Emits what arrived while the agent worked: notices first, because a user's message may refer to them. */
  async deliver(emit: Emit, hooked: (prompt: UserMessage) => Promise<readonly UserMessage[]>): Promise<void> {
    await this.deliverNotices(emit);
    for (let next = this.#steering.shift(); next; next = this.#steering.shift()) {
      this.#joined.push(next.messageId);
      for (const message of await hooked(userMessage(next, "steering"))) await emit("user.message", message);
    }
  }

  /**
   * Emits the waiting notices. If one cannot be written, the log writes it with its next repair, and the remaining ones
   * wait for the next delivery.
   */
  async deliverNotices(emit: Emit): Promise<void> {
    for (let next = this.#notices.shift(); next; next = this.#notices.shift()) {
      if (next.take()) await emit("system.notification", next.notice);
    }
  }

  /** Returns the ids of messages that joined the current run since the last call. They share its outcome. */
  takeJoined(): readonly string[] {
    const joined = this.#joined;
    this.#joined = [];
    return joined;
  }

  /** Puts back a message that could not be accepted. It is the next one again. */
  putBack(message: PendingMessage): void {
    this.#queue.unshift(message);
  }

  #takeWaking(): SystemNotice | undefined {
    for (;;) {
      const index = this.#notices.findIndex(({ wakes }) => wakes);
      const [next] = index < 0 ? [] : this.#notices.splice(index, 1);
      if (!next || next.take()) return next?.notice;
    }
  }

  /** Steering messages that arrived too late go before the queue. */
  #takeQueued(): PendingMessage | undefined {
    this.#queue.unshift(...this.#steering);
    this.#steering = [];
    return this.#queue.shift();
  }

  /** Returns the next message to answer, or a waking notice if no message waits. */
  takeNext(noticeId: () => string): PendingMessage | undefined {
    const next = this.isPaused ? this.#steering.shift() : this.#takeQueued();
    if (next) return next;
    const notice = this.#takeWaking();
    return notice && { messageId: noticeId(), content: notice.content, mode: "enqueue", notice };
  }
}

export function userMessage(
  message: PendingMessage,
  delivery: NonNullable<EventData<"user.message">["delivery"]>,
): EventData<"user.message"> {
  const { content, displayPrompt, source, attachments, agentMode, messageId: interactionId } = message;
  const isShownAsIs = displayPrompt === undefined || displayPrompt === content;
  return {
    ...(isShownAsIs ? { content } : { content: displayPrompt, transformedContent: content }),
    delivery,
    interactionId,
    messageId: interactionId,
    ...defined({ source }),
    ...(attachments && { attachments: [...attachments] }),
    ...defined({ agentMode }),
  };
}

/** Maximum size of a prompt and its attachments' metadata. */
const MAX_MESSAGE_CHARACTERS = 16 * 1024 * 1024;

/** Builds a message from the sender's options and its stored attachments. Throws a `TroupeError` if it is too large. */
export function pendingMessage(
  messageId: string,
  options: SendOptions,
  attachments: readonly Attachment[],
): PendingMessage {
  const { prompt, mode = "enqueue", displayPrompt, source, agentMode, answering: rules } = options;
  const size = prompt.length + (attachments.length > 0 ? JSON.stringify(attachments).length : 0);
  if (size > MAX_MESSAGE_CHARACTERS) {
    const hint = "Put it into a file and let the prompt name the file.";
    throw new TroupeError("usage", "The message is larger than 16 MiB.", { hint });
  }
  return {
    messageId,
    content: prompt,
    mode,
    ...(attachments.length > 0 && { attachments }),
    ...defined({ displayPrompt, source, agentMode, rules }),
  };
}

export function queuedMessage({
  attachments,
  notice: _,
  rules,
  storedRules = rules?.stored,
  ...message
}: PendingMessage): EventData<"troupe.message_queued"> {
  return { ...message, ...(attachments && { attachments: [...attachments] }), ...defined({ rules: storedRules }) };
}
