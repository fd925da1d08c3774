import type { ToolLimits } from "../../commands/command.ts";
import type { StopGate } from "../../commands/gate.ts";
import type { Json } from "../../lib/json.ts";
import type { TraceContext } from "../../lib/trace-context.ts";
import type { GivenAttachment } from "../../protocol/define-event.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { Attachment, Emit, EventData, SessionEvent } from "../../protocol/event.ts";

type UserMessage = EventData<"user.message">;

/** Something the agent is told though nobody typed it. */
export type Notice = EventData<"system.notification">;

/** A message on its way to the agent. */
export interface Incoming {
  readonly messageId: string;
  readonly content: string;
  readonly attachments?: readonly Attachment[];
  /** `immediate` reaches a working agent before its next model call; `enqueue` waits for its turn. */
  readonly mode: "enqueue" | "immediate";
  /** What people see in its place. */
  readonly displayPrompt?: string;
  /** Who said it, when it was not a person. */
  readonly source?: string;
  /** The mode its sender meant it for. */
  readonly agentMode?: NonNullable<UserMessage["agentMode"]>;
  /** For the answer to this message alone. It does not outlive the process, but for `kept`. */
  readonly answering?: TurnRules;
  /** Set for a message of an earlier process: the rules to make anew. */
  readonly rules?: KeptRules;
  /** Set when it is a notice that woke the agent: then there is no message of a user. */
  readonly notice?: Notice;
}

/** Structured output, in the words of the wire. */
export interface ResponseFormat {
  readonly type: "json_schema";
  readonly jsonSchema: {
    readonly name: string;
    readonly schema: Json;
    readonly description?: string;
    readonly strict?: boolean;
  };
}

/** The rules of a command in the form that the log stores. */
export type KeptRules = NonNullable<EventData<"troupe.message_queued">["rules"]>;

/** How one message is to be answered. */
export interface TurnRules {
  /** Limits the tools of the main agent. */
  readonly tools?: ToolLimits;
  /** Agents that may be started for it, though no model may choose them by itself. */
  readonly agents?: readonly string[];
  /** Sent with each request to the model of the main agent. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The form that the text of the answer must have. */
  readonly responseFormat?: ResponseFormat;
  /** The trace that its sender works in. */
  readonly trace?: TraceContext;
  /** Asked before the agent stops. */
  readonly gate?: { readonly name: string; readonly ask: StopGate };
  /** Tools, agents and gate for the log, so that they hold after a crash too. */
  readonly kept?: KeptRules;
}

export interface SendOptions {
  readonly displayPrompt?: string;
  readonly source?: string;
  readonly answering?: TurnRules;
  readonly prompt: string;
  readonly attachments?: readonly GivenAttachment[];
  readonly mode?: Incoming["mode"];
  readonly agentMode?: NonNullable<UserMessage["agentMode"]>;
}

interface PendingNotice {
  readonly notice: Notice;
  /** Whether an idle agent is woken by it. */
  readonly wakes: boolean;
  /** Asked right before it is said; false when it need not be said any more. */
  take(): boolean;
}

/** Messages that wait: first in, first out; steering that came too late moves to the front. */
export class PendingMessages {
  readonly #queue: Incoming[] = [];
  #steering: Incoming[] = [];
  #notices: PendingNotice[] = [];
  #joined: string[] = [];
  /** While paused, messages of the queue wait although the agent is free. Steering and notices do not. */
  isPaused = false;

  /** Messages that were accepted in an earlier life of the session and never answered wait again. */
  static restored(events: readonly SessionEvent[]): PendingMessages {
    const inbox = new PendingMessages();
    const waiting = new Map<string, Incoming>();
    for (const event of events) {
      if (event.type === "troupe.message_queued") waiting.set(event.data.messageId, event.data);
      if (event.type === "user.message" && event.data.interactionId) waiting.delete(event.data.interactionId);
      // Nothing waits when a session is rewound: what seems to was answered in what is out of view.
      if (event.type === "troupe.rewound") waiting.clear();
      if (event.type === "troupe.message_withdrawn") waiting.delete(event.data.messageId);
    }
    for (const message of waiting.values()) inbox.enqueue(message);
    return inbox;
  }

  get size(): number {
    const waking = this.#notices.filter(({ wakes }) => wakes).length;
    return (this.isPaused ? 0 : this.#queue.length) + this.#steering.length + waking;
  }

  /** Messages of people that wait for their turn, and those that a working agent will read next. */
  get waiting(): { readonly queued: readonly Incoming[]; readonly steering: readonly Incoming[] } {
    return { queued: [...this.#queue], steering: [...this.#steering] };
  }

  /** Removes a message that no agent has read yet. Returns false when there is none. */
  withdraw(messageId: string): boolean {
    const [lane, place] = this.#find(messageId);
    if (place >= 0) lane.splice(place, 1);
    return place >= 0;
  }

  #find(messageId: string): [lane: Incoming[], place: number] {
    const lane = this.#steering.some((message) => message.messageId === messageId) ? this.#steering : this.#queue;
    return [lane, lane.findIndex((message) => message.messageId === messageId)];
  }

  /** Returns whether a message of the queue has another position now. */
  move(messageId: string, position: number): boolean {
    const from = this.#queue.findIndex((message) => message.messageId === messageId);
    const to = Math.max(0, Math.min(Math.trunc(position), this.#queue.length - 1));
    if (from < 0 || from === to) return false;
    this.#queue.splice(to, 0, ...this.#queue.splice(from, 1));
    return true;
  }

  /** Replaces the message of the same id. Returns false when it does not wait any more. */
  replace(message: Incoming): boolean {
    const [lane, place] = this.#find(message.messageId);
    if (place >= 0) lane[place] = message;
    return place >= 0;
  }

  /** Moves a message from the queue to what a working agent reads next. */
  promote(messageId: string): boolean {
    const place = this.#queue.findIndex((message) => message.messageId === messageId);
    this.#steering.push(...(place < 0 ? [] : this.#queue.splice(place, 1)));
    return place >= 0;
  }

  /** Nobody is told any more what was not told yet. */
  forgetNotices(): void {
    this.#notices = [];
  }

  enqueue(message: Incoming): void {
    this.#queue.push(message);
  }

  steer(message: Incoming): void {
    this.#steering.push(message);
  }

  /** Before all that waits. */
  steerFirst(message: Incoming): void {
    this.#steering.unshift(message);
  }

  /** One that does not wake the agent is read with whatever it reads next. */
  notify(notice: Notice, { wakes = true, take = () => true }: Partial<Omit<PendingNotice, "notice">> = {}): void {
    this.#notices.push({ notice, wakes, take });
  }

  /** Says what came in while the agent worked: notices first, since a person's words may be about them. */
  async deliver(emit: Emit, hear: (prompt: UserMessage) => Promise<readonly UserMessage[]>): Promise<void> {
    await this.deliverNotices(emit);
    for (let next = this.#steering.shift(); next; next = this.#steering.shift()) {
      this.#joined.push(next.messageId);
      for (const said of await hear(userMessage(next, "steering"))) await emit("user.message", said);
    }
  }

  /** Emits the notices that wait. Those that could not be emitted wait for the next time. */
  async deliverNotices(emit: Emit): Promise<void> {
    for (let next = this.#notices.shift(); next; next = this.#notices.shift()) {
      if (next.take()) await emit("system.notification", next.notice);
    }
  }

  /** Ids of messages that joined the run under way since this was last asked: they share its outcome. */
  takeJoined(): readonly string[] {
    const joined = this.#joined;
    this.#joined = [];
    return joined;
  }

  /** It could not be taken up after all: it is the next one again. */
  putBack(message: Incoming): void {
    this.#queue.unshift(message);
  }

  #takeWaking(): Notice | undefined {
    for (;;) {
      const place = this.#notices.findIndex(({ wakes }) => wakes);
      const [next] = place < 0 ? [] : this.#notices.splice(place, 1);
      if (!next || next.take()) return next?.notice;
    }
  }

  /** Steering that came too late goes before the queue. */
  #takeQueued(): Incoming | undefined {
    this.#queue.unshift(...this.#steering);
    this.#steering = [];
    return this.#queue.shift();
  }

  /** The next message to answer; a notice, when no message waits. */
  takeNext(noticeId: () => string): Incoming | undefined {
    const next = this.isPaused ? this.#steering.shift() : this.#takeQueued();
    if (next) return next;
    const notice = this.#takeWaking();
    return notice && { messageId: noticeId(), content: notice.content, mode: "enqueue", notice };
  }
}

export function userMessage(
  message: Incoming,
  delivery: NonNullable<EventData<"user.message">["delivery"]>,
): EventData<"user.message"> {
  const { content, displayPrompt, source, attachments, agentMode, messageId: interactionId } = message;
  const isShownAsIs = displayPrompt === undefined || displayPrompt === content;
  return {
    ...(isShownAsIs ? { content } : { content: displayPrompt, transformedContent: content }),
    delivery,
    interactionId,
    messageId: interactionId,
    ...(source !== undefined && { source }),
    ...(attachments && { attachments: [...attachments] }),
    ...(agentMode !== undefined && { agentMode }),
  };
}

/** A prompt larger than this belongs in a file. */
const MAX_MESSAGE_CHARACTERS = 16 * 1024 * 1024;

/** A message as it came, with its attachments as they are kept. */
export function incoming(messageId: string, options: SendOptions, attachments: readonly Attachment[]): Incoming {
  const { prompt, mode = "enqueue", displayPrompt, source, agentMode, answering } = options;
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
    ...(displayPrompt !== undefined && { displayPrompt }),
    ...(source !== undefined && { source }),
    ...(agentMode !== undefined && { agentMode }),
    ...(answering && { answering }),
  };
}

export function queuedMessage({
  attachments,
  notice: _,
  answering,
  rules = answering?.kept,
  ...message
}: Incoming): EventData<"troupe.message_queued"> {
  return { ...message, ...(attachments && { attachments: [...attachments] }), ...(rules && { rules }) };
}
