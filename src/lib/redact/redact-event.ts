/** Redacts secrets in events when they are created: before the log, the index, clients and the screen. */
import { isObject } from "../json.ts";
import type { Redactor } from "./redact.ts";
import type { HeldText } from "./redact-stream.ts";

/**
 * Members that other code compares byte by byte and that users do not read: ids, kinds, times, model names. In their
 * protocol position, text that only looks like a secret stays unchanged. In data of a tool or a client it is redacted.
 * Known secret values are always redacted.
 */
const EXACT = new Set([
  ...["type", "kind", "role", "mode", "timestamp", "startTime", "resumeTime", "mimeType", "locationKey", "toolName"],
  ...["model", "provider", "selectedModel", "newModel", "previousModel", "currentModel", "reasoningEffort"],
  ...["reasoningWireField", "producer", "copilotVersion", "headCommit"],
]);
/** Data of a provider for its own use; a change would make it invalid. */
const SEALED = new Set(["reasoningOpaque", "encryptedContent"]);
const EXACT_ID = /^id$|Ids?$/;
/** Members with arbitrary content. */
const FREE = new Set(["arguments", "args", "content", "requestedSchema", "result", "properties", "structuredContent"]);
const MEDIA = /^(?:image|audio|video)\//;
const MAX_DEPTH = 64;

/** Returns the data of one event without secrets; the same object if there were none. */
export function redactEventData<T>(redactor: Redactor, type: string, data: T): T {
  return redactMember(redactor, data, { isFree: type.endsWith(".custom"), depth: 0 }) as T;
}

function redactMember(redactor: Redactor, value: unknown, position: { isFree: boolean; depth: number }): unknown {
  if (position.isFree || !(Array.isArray(value) || isObject(value)) || position.depth >= MAX_DEPTH)
    return redactor.json(value);
  const inner = { isFree: false, depth: position.depth + 1 };
  if (Array.isArray(value)) {
    const items = value.map((item) => redactMember(redactor, item, inner));
    return items.some((item, index) => item !== value[index]) ? items : value;
  }
  let changed = false;
  const members = Object.entries(value).map(([key, member]): [string, unknown] => {
    const isMedia = key === "data" && typeof value.mimeType === "string" && MEDIA.test(value.mimeType);
    if (typeof member === "string" && SEALED.has(key)) return [key, member];
    if (typeof member === "string" && (EXACT.has(key) || EXACT_ID.test(key) || isMedia)) {
      const shown = redactor.knownValues(member);
      changed ||= shown !== member;
      return [key, shown];
    }
    const isFree = FREE.has(key) && typeof member !== "string" && !isResult(key, member);
    const shown = redactMember(redactor, member, { ...inner, isFree });
    changed ||= shown !== member;
    return [key, shown];
  });
  return changed ? Object.fromEntries(members) : value;
}

/** The result of a tool call has members of the protocol; its `content` is text. */
function isResult(key: string, member: unknown): boolean {
  return key === "result" && isObject(member) && (typeof member.content === "string" || "kind" in member);
}

/** Events that carry a text in pieces, with the members that hold the piece and the id of its text. */
const PIECES: Readonly<Record<string, { piece: string; owner: string }>> = {
  "assistant.message_delta": { piece: "deltaContent", owner: "messageId" },
  "assistant.reasoning_delta": { piece: "deltaContent", owner: "reasoningId" },
  "assistant.tool_call_delta": { piece: "inputDelta", owner: "toolCallId" },
  "tool.execution_partial_result": { piece: "partialOutput", owner: "toolCallId" },
};
/** The piece events that end when one of these arrives. */
const ENDS: Readonly<Record<string, readonly string[]>> = {
  "assistant.message": ["assistant.message_delta", "assistant.reasoning_delta", "assistant.tool_call_delta"],
  "troupe.partial_message": ["assistant.message_delta", "assistant.reasoning_delta", "assistant.tool_call_delta"],
  "assistant.turn_end": ["assistant.message_delta", "assistant.reasoning_delta", "assistant.tool_call_delta"],
  "tool.execution_complete": ["tool.execution_partial_result"],
};
const MAX_STREAMS = 256;

interface RedactedEvent {
  readonly type: string;
  readonly data: object;
}

export interface EventRedactor {
  /**
   * Returns the events to emit instead of this one, in order: held pieces that are complete now, then the event itself.
   * Returns nothing for a piece that must be held.
   */
  pass(agentId: string | undefined, type: string, data: object): RedactedEvent[];
}

/** Stores the ends of unfinished texts, so each session needs its own. */
export function createEventRedactor(redactor: Redactor): EventRedactor {
  const streams = new Map<string, { type: string; agentId: string | undefined; data: object; text: HeldText }>();

  const finish = (key: string): RedactedEvent[] => {
    const stream = streams.get(key);
    streams.delete(key);
    const rest = stream?.text.end() ?? "";
    if (stream === undefined || rest === "") return [];
    return [{ type: stream.type, data: { ...stream.data, [PIECES[stream.type]?.piece ?? ""]: rest } }];
  };

  const passPiece = (agentId: string | undefined, type: string, data: object): RedactedEvent[] => {
    const { piece, owner } = PIECES[type] ?? { piece: "", owner: "" };
    const members: Record<string, unknown> = { ...data };
    const key = `${agentId ?? ""}\n${type}\n${String(members[owner])}`;
    const text = streams.get(key)?.text ?? redactor.stream();
    const overflow = streams.size >= MAX_STREAMS && !streams.has(key) ? finish([...streams.keys()][0] ?? "") : [];
    streams.set(key, { type, agentId, data, text });
    const said = text.push(String(members[piece] ?? ""));
    return said === "" ? overflow : [...overflow, { type, data: { ...data, [piece]: said } }];
  };

  return {
    pass(agentId, type, data) {
      if (Object.hasOwn(PIECES, type)) return passPiece(agentId, type, data);
      const ending = Object.hasOwn(ENDS, type) ? (ENDS[type] ?? []) : [];
      const toolCallId = "toolCallId" in data ? data.toolCallId : undefined;
      const over = [...streams].filter(
        ([key, stream]) =>
          stream.agentId === agentId &&
          ending.includes(stream.type) &&
          (toolCallId === undefined || key.endsWith(`\n${String(toolCallId)}`)),
      );
      return [...over.flatMap(([key]) => finish(key)), { type, data: redactEventData(redactor, type, data) }];
    },
  };
}
