import type { SessionEvent } from "../protocol/event.ts";
import type { AssistantMessage, Message, Reasoning, ToolCall, ToolMessage } from "../protocol/message.ts";

/** A message as the log has it: pictures are still references, read only when a request is built. */
type Entry = { message: Message; assets: readonly { assetId: string; mimeType: string }[] };

/** A call that waits for its result. */
export interface OpenCall {
  readonly call: ToolCall;
  started: boolean;
}

/**
 * One agent's view of a log, kept up to date event by event, so that a turn costs what it adds and nothing for what
 * came before. Reading the same log back gives the same messages.
 */
export class Conversation {
  readonly #entries: Entry[] = [];
  readonly #open = new Map<string, OpenCall>();
  #version = 0;
  #openTurn: string | undefined;
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

  get entries(): readonly Entry[] {
    return this.#entries;
  }

  apply(event: SessionEvent): void {
    switch (event.type) {
      case "system.message":
        this.#system = event.data.content;
        break;
      case "user.message": {
        const { content, transformedContent, attachments = [] } = event.data;
        const assets = attachments.flatMap((attachment) =>
          attachment.type === "blob" && attachment.assetId !== undefined
            ? [{ assetId: attachment.assetId, mimeType: attachment.mimeType }]
            : [],
        );
        this.#push({ role: "user", content: transformedContent ?? content }, assets);
        break;
      }
      case "system.notification":
        this.#push({ role: "user", content: event.data.content });
        break;
      case "assistant.turn_start":
        this.#openTurn = event.data.turnId;
        break;
      case "assistant.turn_end":
        this.#openTurn = undefined;
        break;
      case "assistant.message": {
        const message = assistantMessage(event.data);
        for (const call of message.calls) this.#open.set(call.toolCallId, { call, started: false });
        // A reply with neither words nor calls would be refused by most wires.
        if (message.content !== "" || message.calls.length > 0) this.#push(message);
        break;
      }
      case "tool.execution_start": {
        const open = this.#open.get(event.data.toolCallId);
        if (open) open.started = true;
        break;
      }
      case "tool.execution_complete": {
        const { toolCallId, success, result, error } = event.data;
        if (!this.#open.delete(toolCallId)) break; // answered already: the first answer stands
        const content = result?.content ?? error?.message ?? "";
        const assets = result?.binaryResultsForLlm ?? [];
        this.#answer({ role: "tool", toolCallId, content, isError: !success }, assets);
        break;
      }
      default:
    }
  }

  /** Forgets everything, to be told it anew. */
  reset(): void {
    this.#entries.length = 0;
    this.#open.clear();
    this.#openTurn = undefined;
    this.#system = undefined;
    this.#version++;
  }

  /** Wires want a result right behind the reply that asked for it. Nearly always that is the end of the list. */
  #answer(message: ToolMessage, assets: Entry["assets"]): void {
    const asked = this.#entries.findLastIndex(
      (entry) =>
        entry.message.role === "assistant" &&
        entry.message.calls.some((call) => call.toolCallId === message.toolCallId),
    );
    let place = asked + 1;
    while (this.#entries[place]?.message.role === "tool") place++;
    if (place < this.#entries.length) this.#version++;
    this.#entries.splice(place, 0, { message, assets });
  }

  #push(message: Message, assets: Entry["assets"] = []): void {
    this.#entries.push({ message, assets });
  }
}

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
