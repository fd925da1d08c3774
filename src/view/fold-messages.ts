/** Folds what people and models say into transcripts. */

import type { Attachment, EventData, EventOf, SessionEvent } from "../protocol/event.ts";
import { isAsked } from "../protocol/message.ts";
import type { Block } from "./blocks.ts";
import type { AgentDraft, FoldStep, StreamingDraft } from "./draft.ts";
import { feed, newSplitter, partsOf, tailOf } from "./markdown-parts.ts";
import { lastLineOf } from "./output-text.ts";
import { clip } from "./own-text.ts";
import { placeBlock, pushBlock, pushBlocks } from "./push-block.ts";

const MAX_LINE = 200;
/** As the session titles itself. */
const MAX_TITLE = 72;
const MAX_REASONING = 64_000;
const REASONING_TAIL = 4_000;

export function foldMessage(step: FoldStep) {
  const { event } = step;
  switch (event.type) {
    case "user.message":
      return userMessage(step, event.data);
    case "assistant.turn_start":
      return turnStart(step, event.data);
    case "assistant.message_start":
    case "assistant.message_delta":
    case "assistant.reasoning_delta":
    case "assistant.tool_call_delta":
      return delta(step, event);
    case "assistant.message":
      return message(step, event.data);
    case "troupe.partial_message":
      return partialMessage(step, event.data);
    case "assistant.turn_end":
      return turnEnd(step);
    default:
  }
}

function userMessage(step: FoldStep, data: EventData<"user.message">) {
  const { view, agent } = step;
  const { content, delivery, attachments = [], interactionId, messageId = interactionId } = data;
  const source = isAsked(data.source) ? undefined : data.source;
  view.queue = view.queue.filter((queued) => queued.messageId !== interactionId);
  if (!agent) return;
  agent.messages++;
  if (agent === view.main) {
    setRunning(step);
    if (source === undefined) view.session.name ??= clip(content.trim().split("\n", 1)[0] ?? "", MAX_TITLE);
    view.autopilot = {
      ...view.autopilot,
      continues:
        source === "autopilot" ? view.autopilot.continues + 1 : source === undefined ? 0 : view.autopilot.continues,
      ...(source === undefined && { completed: undefined }),
    };
  }
  if (content === "" && attachments.length === 0) return;
  pushBlock(step, { kind: "user", text: content, source, delivery, attachments: attachments.map(nameOf), messageId });
}

function nameOf(attachment: Attachment): string {
  return attachment.type === "github_reference"
    ? `#${attachment.number} ${attachment.title}`
    : (attachment.displayName ?? attachment.type);
}

function turnStart(step: FoldStep, { model }: EventData<"assistant.turn_start">) {
  const { agent, view } = step;
  if (!agent) return;
  agent.modelCalls++;
  agent.streaming = undefined;
  agent.hasCalls = false;
  if (model !== undefined) agent.model = model;
  if (agent === view.main) setRunning(step);
}

/** The main agent has no task states: it runs from a message or a turn on. */
function setRunning({ view, at }: FoldStep) {
  const { main, session } = view;
  session.isIdle = false;
  session.isMainIdle = false;
  if (main.status === "running") return;
  main.status = "running";
  main.startedAt = at;
  main.endedAt = undefined;
  main.spentBefore = main.spent;
}

export function setResting({ view, at }: FoldStep) {
  const { main } = view;
  if (main.status !== "running") return;
  main.status = "idle";
  main.endedAt = at;
}

function turnEnd(step: FoldStep) {
  const { agent, view } = step;
  if (!agent) return;
  agent.streaming = undefined;
  if (agent === view.main && !agent.hasCalls) setResting(step);
}

type Delta = EventOf<
  "assistant.message_start" | "assistant.message_delta" | "assistant.reasoning_delta" | "assistant.tool_call_delta"
>;

function delta(step: FoldStep, event: SessionEvent & Delta) {
  const { agent } = step;
  if (!agent) return;
  switch (event.type) {
    case "assistant.message_start":
      return void streamingOf(agent, event.data.messageId);
    case "assistant.message_delta": {
      const streaming = streamingOf(agent, event.data.messageId);
      streaming.characters += event.data.deltaContent.length;
      addReasoningBlock(step, agent, streaming);
      const parts = feed(streaming.splitter, event.data.deltaContent);
      for (const markdown of parts) {
        streaming.blocks.push(assistantBlock(step, agent, streaming.messageId, streaming.parts, markdown));
        streaming.parts++;
      }
      streaming.tail = tailOf(streaming.splitter);
      return;
    }
    case "assistant.reasoning_delta": {
      const streaming = streamingOf(agent, event.data.reasoningId);
      streaming.characters += event.data.deltaContent.length;
      if (streaming.reasoning.length < MAX_REASONING) streaming.reasoning += event.data.deltaContent;
      return;
    }
    case "assistant.tool_call_delta": {
      const { toolCallId, toolName = "", inputDelta } = event.data;
      const streaming = agent.streaming ?? streamingOf(agent, "");
      const before = streaming.call?.toolCallId === toolCallId ? streaming.call : undefined;
      const name = before?.name || toolName;
      streaming.call = { toolCallId, name, characters: (before?.characters ?? 0) + inputDelta.length };
    }
  }
}

/** A reply with another id takes the place of one that broke off. */
function streamingOf(agent: AgentDraft, messageId: string): StreamingDraft {
  const { streaming } = agent;
  if (streaming && (streaming.messageId === messageId || streaming.messageId === "")) {
    streaming.messageId = messageId;
    return streaming;
  }
  agent.streaming = {
    messageId,
    blocks: [],
    drainedParts: 0,
    isReasoningDrained: false,
    tail: undefined,
    reasoning: "",
    characters: 0,
    call: undefined,
    splitter: newSplitter(),
    parts: 0,
    hasReasoningBlock: false,
  };
  return agent.streaming;
}

function addReasoningBlock(step: FoldStep, agent: AgentDraft, streaming: StreamingDraft) {
  if (streaming.hasReasoningBlock || streaming.reasoning.trim() === "") return;
  streaming.hasReasoningBlock = true;
  streaming.blocks.push(reasoningBlock(step, agent, streaming.messageId, streaming.reasoning));
}

function reasoningBlock(step: FoldStep, agent: AgentDraft, messageId: string, text: string): Block {
  const kept = text.length <= MAX_REASONING ? text : `…${text.slice(REASONING_TAIL - MAX_REASONING)}`;
  return placeBlock(step, agent, { kind: "reasoning", messageId, text: kept }, `${messageId}:reasoning`);
}

function assistantBlock(
  step: FoldStep,
  agent: AgentDraft,
  messageId: string,
  part: number,
  markdown: ReturnType<typeof feed>[number],
): Block {
  return placeBlock(step, agent, { kind: "assistant", messageId, part, markdown }, `${messageId}:${part}`);
}

function message(step: FoldStep, data: EventData<"assistant.message">) {
  const { agent } = step;
  if (!agent) return;
  const { messageId, content, reasoningText = "", toolRequests = [], model } = data;
  finishMessage(step, agent, { messageId, content, reasoning: reasoningText });
  agent.hasCalls = toolRequests.length > 0;
  if (model !== undefined) agent.model = model;
  if (toolRequests.length > 0) {
    const [first = ""] = content.trim().split("\n", 1);
    if (first !== "") agent.intent = clip(first, MAX_LINE);
  }
}

function partialMessage(step: FoldStep, data: EventData<"troupe.partial_message">) {
  const { agent } = step;
  if (!agent) return;
  const { messageId, content, reason } = data;
  finishMessage(step, agent, { messageId, content, reasoning: "" });
  const text = `The reply broke off: ${reason}`;
  pushBlock(step, { kind: "notice", level: "warning", topic: "partial_message", text, tip: undefined });
}

/** Commits the whole reply, without the parts that were drained while it was written. */
function finishMessage(
  step: FoldStep,
  agent: AgentDraft,
  what: { readonly messageId: string; readonly content: string; readonly reasoning: string },
) {
  const { messageId, content, reasoning } = what;
  const streamed = agent.streaming?.messageId === messageId ? agent.streaming : undefined;
  agent.streaming = undefined;
  const blocks: Block[] = [];
  if (reasoning.trim() !== "" && !streamed?.isReasoningDrained) {
    blocks.push(reasoningBlock(step, agent, messageId, reasoning));
  }
  const parts = partsOf(content);
  for (const [part, markdown] of parts.entries()) {
    if (part < (streamed?.drainedParts ?? 0)) continue;
    blocks.push(assistantBlock(step, agent, messageId, part, markdown));
  }
  pushBlocks(step, agent, blocks);
  const line = lastLineOf(content);
  if (line !== "") agent.lastOutput = clip(line, MAX_LINE);
}
