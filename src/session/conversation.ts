import { validCut } from "../context/compact-cut.ts";
import { addSayings, beginning, noSayings, type Sayings } from "../context/compact-message.ts";
import type { Attachment, EventData, SessionEvent } from "../protocol/event.ts";
import type { AssistantMessage, Message, Reasoning, ToolCall, ToolMessage } from "../protocol/message.ts";
import { isShown } from "./attachments.ts";

/** A message as the log has it: pictures are still references, read only when a request is built. */
export interface Entry {
  readonly message: Message;
  readonly assets: readonly Asset[];
  /** The words of whoever the agent works for; absent for what hooks, skills and notices say in the user's role. */
  readonly said?: string;
}

/** Bytes in a file of their own. */
export interface Asset {
  readonly assetId: string;
  readonly mimeType: string;
  /** What is said of it. */
  readonly description?: string;
}

/** A call that waits for its result. */
export interface OpenCall {
  readonly call: ToolCall;
  started: boolean;
  /** It was made before the conversation was cleared: it gets its end, and nobody reads that. */
  isGone: boolean;
}

/** Everything a conversation knows, as plain data: restored, it goes on as if it had read the events itself. */
export interface ConversationState {
  readonly entries: readonly Entry[];
  readonly open: readonly OpenCall[];
  readonly said: Sayings;
  readonly openTurn?: string;
  readonly isTurnGone: boolean;
  readonly system?: string;
}

/**
 * One agent's view of a log, kept up to date event by event, so that a turn costs what it adds and nothing for what
 * came before. Reading the same log back gives the same messages.
 */
export class Conversation {
  #entries: Entry[] = [];
  readonly #open = new Map<string, OpenCall>();
  /** Messages of users that compactions removed. */
  #said: Sayings = noSayings;
  #version = 0;
  #epoch = 0;
  #openTurn: string | undefined;
  /** The conversation was cleared in the middle of this turn: the rest of it belongs to what is gone. */
  #isTurnGone = false;
  #system: string | undefined;

  /** Calls that no result has answered yet, in the order they were made. */
  get openCalls(): readonly OpenCall[] {
    return [...this.#open.values()];
  }

  /** A turn that was begun and not ended. */
  get openTurn(): string | undefined {
    return this.#openTurn;
  }

  /** The system prompt the model was last shown. */
  get system(): string | undefined {
    return this.#system;
  }

  /** Changes when entries that were there before did: whoever keeps a copy starts afresh. */
  get version(): number {
    return this.#version;
  }

  /** Changes when the beginning of the conversation did: what was planned for it before is void. */
  get epoch(): number {
    return this.#epoch;
  }

  get entries(): readonly Entry[] {
    return this.#entries;
  }

  get state(): ConversationState {
    return {
      entries: this.#entries.slice(),
      open: [...this.#open.values()].map((open) => ({ ...open })),
      said: this.#said,
      ...(this.#openTurn !== undefined && { openTurn: this.#openTurn }),
      isTurnGone: this.#isTurnGone,
      ...(this.#system !== undefined && { system: this.#system }),
    };
  }

  /** The message that a compaction puts in the place of the first ones, and how many those are. */
  compacted(data: Compacted): { readonly cut: number; readonly message: Message } | undefined {
    const { messagesRemoved, summaryContent: summary = "", tokenLimit } = data;
    const wanted = messagesRemoved === undefined ? this.#entries.length : messagesRemoved + 1;
    const messages = this.#entries.map(({ message }) => message);
    const cut = validCut(messages, wanted, (toolCallId) => this.#open.has(toolCallId));
    if (cut === 0 || summary.trim() === "") return undefined;
    const said = addSayings(this.#said, saidIn(this.#entries.slice(0, cut)));
    return { cut, message: { role: "user", content: beginning({ said, summary, tokenLimit }) } };
  }

  apply(event: SessionEvent): void {
    switch (event.type) {
      case "troupe.agent_state":
        this.#restore(event.data.conversation as ConversationState | undefined);
        break;
      case "system.message":
        this.#system = event.data.content;
        break;
      case "user.message": {
        if (this.#isTurnGone) break;
        const { content, transformedContent, attachments = [], source } = event.data;
        const assets = attachments.flatMap((attachment) => (attachment.type === "blob" ? assetOf(attachment) : []));
        const shown = transformedContent ?? content;
        // What a person typed; what others wrote says from whom it is only in the form the model saw.
        const said = source === undefined ? content || shown : shown;
        const message: Message = { role: "user", content: shown };
        this.#entries.push({ message, assets, ...(!NOBODY_SAID.test(source ?? "") && { said }) });
        break;
      }
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
      case "assistant.message": {
        const message = assistantMessage(event.data);
        const isGone = this.#isTurnGone;
        for (const call of message.calls) this.#open.set(call.toolCallId, { call, started: false, isGone });
        if (isGone) break;
        // A reply with neither words nor calls would be refused by most wires.
        if (message.content !== "" || message.calls.length > 0) this.#push(message);
        break;
      }
      case "troupe.call_changed":
        this.#changeCall(event.data);
        break;
      case "tool.execution_start": {
        const open = this.#open.get(event.data.toolCallId);
        if (open) open.started = true;
        break;
      }
      case "tool.execution_complete": {
        const { toolCallId, success, result, error, isUserRequested } = event.data;
        if (isUserRequested) break; // no answer to the model, whatever its id
        const open = this.#open.get(toolCallId);
        this.#open.delete(toolCallId);
        if (!open || open.isGone) break; // answered already: the first answer stands
        const content = result?.content ?? error?.message ?? "";
        const assets = result?.binaryResultsForLlm?.filter(({ type }) => type === "image") ?? [];
        this.#answer({ role: "tool", toolCallId, content, isError: !success }, assets);
        break;
      }
      default:
    }
  }

  /** Forgets everything, to be told it anew. */
  reset(): void {
    this.#clear();
    this.#open.clear();
    this.#openTurn = undefined;
    this.#isTurnGone = false;
    this.#system = undefined;
  }

  /** An agent that has ended has no state: nothing will be asked of it again. */
  #restore(state: ConversationState | undefined): void {
    this.reset();
    if (!state) return;
    this.#entries = [...state.entries];
    for (const open of state.open) this.#open.set(open.call.toolCallId, { ...open });
    this.#said = state.said;
    this.#openTurn = state.openTurn;
    this.#isTurnGone = state.isTurnGone;
    this.#system = state.system;
  }

  /** Nothing that was said so far counts, nor what the turn under way has still to say. */
  #clear(): void {
    this.#entries = [];
    this.#said = noSayings;
    for (const open of this.#open.values()) open.isGone = true;
    this.#isTurnGone = this.#openTurn !== undefined;
    this.#version++;
    this.#epoch++;
  }

  /** A new list, so that whoever is reading the old one reads it to its end. */
  #compact(data: Compacted): void {
    const made = this.compacted(data);
    if (!made) return;
    this.#said = addSayings(this.#said, saidIn(this.#entries.slice(0, made.cut)));
    this.#entries = [{ message: made.message, assets: [] }, ...this.#entries.slice(made.cut)];
    this.#version++;
    this.#epoch++;
  }

  /**
   * Inserts a result behind the reply that asked for it, in the order of its calls: the order in which calls end differs
   * from run to run, and a request that differs misses the provider's cache.
   */
  #answer(message: ToolMessage, assets: Entry["assets"]): void {
    const orderOf = (toolCallId: string, entry = this.#entries[asked]): number =>
      entry?.message.role === "assistant"
        ? entry.message.calls.findIndex((call) => call.toolCallId === toolCallId)
        : -1;
    const asked = this.#entries.findLastIndex((entry) => orderOf(message.toolCallId, entry) >= 0);
    const order = orderOf(message.toolCallId);
    let place = asked + 1;
    for (let next = this.#entries[place]?.message; next?.role === "tool"; next = this.#entries[place]?.message) {
      if (orderOf(next.toolCallId) > order) break;
      place++;
    }
    if (place < this.#entries.length) this.#version++;
    this.#entries.splice(place, 0, { message, assets });
  }

  /** The call as it was run: its answer is an answer to that. */
  #changeCall({ toolCallId, arguments: given }: EventData<"troupe.call_changed">): void {
    const asks = ({ message }: Entry): boolean =>
      message.role === "assistant" && message.calls.some((call) => call.toolCallId === toolCallId);
    const place = this.#entries.findLastIndex(asks);
    const entry = this.#entries[place];
    if (entry?.message.role !== "assistant") return;
    const calls = entry.message.calls.map((call) =>
      call.toolCallId === toolCallId ? { ...call, arguments: given } : call,
    );
    this.#entries[place] = { ...entry, message: { ...entry.message, calls } };
    this.#version++;
  }

  #push(message: Message, assets: Entry["assets"] = []): void {
    this.#entries.push({ message, assets });
  }
}

function assetOf({ assetId, mimeType, displayName }: Extract<Attachment, { type: "blob" }>): Asset[] {
  if (assetId === undefined || !isShown(mimeType)) return [];
  return [{ assetId, mimeType, ...(displayName !== undefined && { description: displayName }) }];
}

/** Sources of messages that parts of troupe say in the user's role. */
const NOBODY_SAID = /^(?:hook-|gate-|skill-|agent-skills$|output-schema$|autopilot$|session-limits$|system$)/;

type Compacted = Pick<EventData<"session.compaction_complete">, "messagesRemoved" | "summaryContent" | "tokenLimit">;

const saidIn = (entries: readonly Entry[]): string[] =>
  entries.flatMap(({ said }) => (said === undefined ? [] : [said]));

function assistantMessage(data: Extract<SessionEvent, { type: "assistant.message" }>["data"]): AssistantMessage {
  const reasoning: Reasoning = {
    ...(data.reasoningText !== undefined && { text: data.reasoningText }),
    ...(data.reasoningOpaque !== undefined && { opaque: data.reasoningOpaque }),
    ...(data.reasoningWireField !== undefined && { wireField: data.reasoningWireField }),
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
