import { validCut } from "../context/compact-cut.ts";
import { addSayings, beginning, noSayings, type UserMessages } from "../context/compact-message.ts";
import { defined } from "../lib/defined.ts";
import type { Attachment, EventData, SessionEvent } from "../protocol/event.ts";
import type { AssistantMessage, Message, Reasoning, ToolCall, ToolMessage } from "../protocol/message.ts";
import { isShown } from "./attachments.ts";

/** A message as stored in the log. Images are still references, which are read when a request is built. */
export interface ConversationEntry {
  readonly message: Message;
  readonly assets: readonly Asset[];
  /**
   * The text of the user or agent that it works for; absent for messages of hooks, skills and notices in the user's
   * role.
   */
  readonly said?: string;
}

/** Binary data in a separate file. */
export interface Asset {
  readonly assetId: string;
  readonly mimeType: string;
  /** A description of the data. */
  readonly description?: string;
}

/** A call that waits for its result. */
export interface UnansweredCall {
  readonly call: ToolCall;
  started: boolean;
  /** It was made before the conversation was cleared: it gets an end event, but no message. */
  isGone: boolean;
}

/**
 * The complete state of a conversation as plain data. A restored conversation continues as if it had read the events
 * itself.
 */
export interface ConversationState {
  readonly entries: readonly ConversationEntry[];
  readonly open: readonly UnansweredCall[];
  readonly said: UserMessages;
  readonly openTurn?: string;
  readonly isTurnGone: boolean;
  readonly system?: string;
}

/**
 * One agent's view of a log, updated event by event, so that a turn costs only what it adds. Reading the same log again
 * gives the same messages.
 */
export class Conversation {
  #entries: ConversationEntry[] = [];
  readonly #open = new Map<string, UnansweredCall>();
  /** Users' messages that compactions removed. */
  #userMessages: UserMessages = noSayings;
  #version = 0;
  #startVersion = 0;
  #openTurn: string | undefined;
  /** The conversation was cleared during this turn: the rest of the turn is not added. */
  #isTurnGone = false;
  #system: string | undefined;

  /** Calls without a result, in the order they were made. */
  get openCalls(): readonly UnansweredCall[] {
    return [...this.#open.values()];
  }

  /** The id of a turn that has started and not ended. */
  get openTurn(): string | undefined {
    return this.#openTurn;
  }

  /** The system prompt that the model was last shown. */
  get system(): string | undefined {
    return this.#system;
  }

  /** Changes when existing entries change. Holders of a copy must rebuild it. */
  get version(): number {
    return this.#version;
  }

  /** Changes when the start of the conversation changes. Plans made for the earlier start are void. */
  get startVersion(): number {
    return this.#startVersion;
  }

  get entries(): readonly ConversationEntry[] {
    return this.#entries;
  }

  get state(): ConversationState {
    return {
      entries: this.#entries.slice(),
      open: [...this.#open.values()].map((open) => ({ ...open })),
      said: this.#userMessages,
      ...defined({ openTurn: this.#openTurn }),
      isTurnGone: this.#isTurnGone,
      ...defined({ system: this.#system }),
    };
  }

  /**
   * Returns the message that replaces the first messages after a compaction, and their number. Returns undefined if
   * nothing can be removed.
   */
  compacted(data: Compacted): { readonly cut: number; readonly message: Message } | undefined {
    const { messagesRemoved, summaryContent: summary = "", tokenLimit } = data;
    const wanted = messagesRemoved === undefined ? this.#entries.length : messagesRemoved + 1;
    const messages = this.#entries.map(({ message }) => message);
    const cut = validCut(messages, wanted, (toolCallId) => this.#open.has(toolCallId));
    if (cut === 0 || summary.trim() === "") return undefined;
    const userMessages = addSayings(this.#userMessages, userTextsIn(this.#entries.slice(0, cut)));
    return { cut, message: { role: "user", content: beginning({ said: userMessages, summary, tokenLimit }) } };
  }

  apply(event: SessionEvent): void {
    switch (event.type) {
      case "troupe.agent_state":
        this.#restore(event.data.conversation as ConversationState | undefined);
        break;
      case "system.message":
        this.#system = event.data.content;
        break;
      case "user.message":
        if (!this.#isTurnGone) this.#addUserMessage(event.data);
        break;
      case "session.compaction_complete":
        if (event.data.success) this.#compact(event.data);
        break;
      case "session.context_cleared":
        this.#clear();
        break;
      case "system.notification":
        if (!this.#isTurnGone) this.#push({ role: "user", content: event.data.content });
        break;
      case "assistant.turn_start":
        this.#openTurn = event.data.turnId;
        this.#isTurnGone = false;
        break;
      case "assistant.turn_end":
        this.#openTurn = undefined;
        this.#isTurnGone = false;
        break;
      case "assistant.message":
        this.#addReply(assistantMessage(event.data));
        break;
      case "troupe.call_changed":
        this.#changeCall(event.data);
        break;
      case "tool.execution_start": {
        const open = this.#open.get(event.data.toolCallId);
        if (open) open.started = true;
        break;
      }
      case "tool.execution_complete":
        if (!event.data.isUserRequested) this.#addResult(event.data); // else not for the model, whatever its id
        break;
      default:
    }
  }

  #addUserMessage({ content, transformedContent, attachments = [], source }: EventData<"user.message">): void {
    const assets = attachments.flatMap((attachment) => (attachment.type === "blob" ? assetOf(attachment) : []));
    const shown = transformedContent ?? content;
    // A user's text as typed. Text of other senders names its sender only in the form that the model saw.
    const said = source === undefined ? content || shown : shown;
    const message: Message = { role: "user", content: shown };
    this.#entries.push({ message, assets, ...(!NOT_OF_USERS.test(source ?? "") && { said }) });
  }

  #addReply(message: ReturnType<typeof assistantMessage>): void {
    const isGone = this.#isTurnGone;
    for (const call of message.calls) this.#open.set(call.toolCallId, { call, started: false, isGone });
    // Most wires reject a reply with neither text nor calls.
    if (!isGone && (message.content !== "" || message.calls.length > 0)) this.#push(message);
  }

  #addResult({ toolCallId, success, result, error }: EventData<"tool.execution_complete">): void {
    const open = this.#open.get(toolCallId);
    this.#open.delete(toolCallId);
    if (!open || open.isGone) return; // already answered (the first result counts), or cleared
    const content = result?.content ?? error?.message ?? "";
    const assets = result?.binaryResultsForLlm?.filter(({ type }) => type === "image") ?? [];
    this.#answer({ role: "tool", toolCallId, content, isError: !success }, assets);
  }

  /** Clears all state before the log is folded again. */
  reset(): void {
    this.#clear();
    this.#open.clear();
    this.#openTurn = undefined;
    this.#isTurnGone = false;
    this.#system = undefined;
  }

  /** Restores the state. An agent that has ended has none, because it is not asked again. */
  #restore(state: ConversationState | undefined): void {
    this.reset();
    if (!state) return;
    this.#entries = [...state.entries];
    for (const open of state.open) this.#open.set(open.call.toolCallId, { ...open });
    this.#userMessages = state.said;
    this.#openTurn = state.openTurn;
    this.#isTurnGone = state.isTurnGone;
    this.#system = state.system;
  }

  /** Clears the conversation, including the rest of the current turn. */
  #clear(): void {
    this.#entries = [];
    this.#userMessages = noSayings;
    for (const open of this.#open.values()) open.isGone = true;
    this.#isTurnGone = this.#openTurn !== undefined;
    this.#version++;
    this.#startVersion++;
  }

  /** Applies a compaction. Creates a new list, so that current readers of the old one can finish. */
  #compact(data: Compacted): void {
    const made = this.compacted(data);
    if (!made) return;
    this.#userMessages = addSayings(this.#userMessages, userTextsIn(this.#entries.slice(0, made.cut)));
    this.#entries = [{ message: made.message, assets: [] }, ...this.#entries.slice(made.cut)];
    this.#version++;
    this.#startVersion++;
  }

  /**
   * Inserts a result after its reply, in the order of the calls. The order in which calls end varies, and a different
   * request would miss the provider's cache.
   */
  #answer(message: ToolMessage, assets: ConversationEntry["assets"]): void {
    const orderOf = (toolCallId: string, entry = this.#entries[asked]): number =>
      entry?.message.role === "assistant"
        ? entry.message.calls.findIndex((call) => call.toolCallId === toolCallId)
        : -1;
    const asked = this.#entries.findLastIndex((entry) => orderOf(message.toolCallId, entry) >= 0);
    const order = orderOf(message.toolCallId);
    let index = asked + 1;
    for (let next = this.#entries[index]?.message; next?.role === "tool"; next = this.#entries[index]?.message) {
      if (orderOf(next.toolCallId) > order) break;
      index++;
    }
    if (index < this.#entries.length) this.#version++;
    this.#entries.splice(index, 0, { message, assets });
  }

  /** Replaces the arguments of a call by those it ran with, so that the result matches them. */
  #changeCall({ toolCallId, arguments: given }: EventData<"troupe.call_changed">): void {
    const asks = ({ message }: ConversationEntry): boolean =>
      message.role === "assistant" && message.calls.some((call) => call.toolCallId === toolCallId);
    const index = this.#entries.findLastIndex(asks);
    const entry = this.#entries[index];
    if (entry?.message.role !== "assistant") return;
    const calls = entry.message.calls.map((call) =>
      call.toolCallId === toolCallId ? { ...call, arguments: given } : call,
    );
    this.#entries[index] = { ...entry, message: { ...entry.message, calls } };
    this.#version++;
  }

  #push(message: Message, assets: ConversationEntry["assets"] = []): void {
    this.#entries.push({ message, assets });
  }
}

function assetOf({ assetId, mimeType, displayName }: Extract<Attachment, { type: "blob" }>): Asset[] {
  if (assetId === undefined || !isShown(mimeType)) return [];
  return [{ assetId, mimeType, ...defined({ description: displayName }) }];
}

/** Sources of messages that troupe itself sends in the user's role. */
const NOT_OF_USERS = /^(?:hook-|gate-|skill-|agent-skills$|output-schema$|autopilot$|session-limits$|system$)/;

type Compacted = Pick<EventData<"session.compaction_complete">, "messagesRemoved" | "summaryContent" | "tokenLimit">;

const userTextsIn = (entries: readonly ConversationEntry[]): string[] =>
  entries.flatMap(({ said }) => (said === undefined ? [] : [said]));

function assistantMessage(data: Extract<SessionEvent, { type: "assistant.message" }>["data"]): AssistantMessage {
  const reasoning: Reasoning = {
    ...defined({ text: data.reasoningText, opaque: data.reasoningOpaque, wireField: data.reasoningWireField }),
  };
  return {
    role: "assistant",
    content: data.content,
    calls: (data.toolRequests ?? []).map(({ toolCallId, name, arguments: given }) => ({
      toolCallId,
      name,
      arguments: given ?? {},
    })),
    ...(Object.keys(reasoning).length > 0 && { reasoning }),
  };
}
