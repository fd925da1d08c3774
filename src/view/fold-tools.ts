/** Folds tool calls into cards: running in `AgentView.tools`, then a block of the transcript. */

import { isObject } from "../lib/json.ts";
import type { EventData } from "../protocol/event.ts";
import { fileEditTools } from "../protocol/permission.ts";
import type { PlanItem, ToolCard, ToolState } from "./blocks.ts";
import type { AgentDraft, FoldStep } from "./draft.ts";
import { closeCall } from "./fold-attention.ts";
import { appendOutput, diffText, lastLineOf, NO_OUTPUT, outputText } from "./output-text.ts";
import { clip } from "./own-text.ts";
import { pushBlock } from "./push-block.ts";
import { spend } from "./spent.ts";
import { argumentsText, toolTitle } from "./tool-title.ts";

const MAX_LINE = 200;
const MAX_ERROR = 4_000;

export function foldTool(step: FoldStep) {
  const { event, agent } = step;
  if (!agent) return;
  switch (event.type) {
    case "tool.execution_start":
      return start(step, agent, event.data);
    case "tool.user_requested":
      return start(step, agent, event.data, true);
    case "tool.execution_partial_result":
      return change(agent, event.data.toolCallId, (card) => ({
        output: appendOutput(card.output, event.data.partialOutput),
        waitsFor: undefined,
      }));
    case "tool.execution_progress":
      return change(agent, event.data.toolCallId, () => ({ progress: clip(event.data.progressMessage, MAX_LINE) }));
    case "troupe.lock_wait": {
      const { path, holder, isOver, toolCallId } = event.data;
      return change(agent, toolCallId, () => ({ waitsFor: isOver ? undefined : `${path}, held by ${holder}` }));
    }
    case "troupe.call_changed":
      return change(agent, event.data.toolCallId, ({ name }) => ({
        title: toolTitle(name, event.data.arguments),
        arguments: argumentsText(name, event.data.arguments),
      }));
    case "tool.execution_complete":
      return complete(step, agent, event.data);
    default:
  }
}

export function addChild(agent: AgentDraft, toolCallId: string, childId: string) {
  change(agent, toolCallId, ({ children }) => ({ children: [...children, childId] }));
}

function start(
  { at }: FoldStep,
  agent: AgentDraft,
  data: EventData<"tool.execution_start"> | EventData<"tool.user_requested">,
  isUserRequested = false,
) {
  const { toolCallId, toolName, arguments: given } = data;
  const known = agent.tools.get(toolCallId);
  const title = toolTitle(toolName, given);
  const card: ToolCard = {
    toolCallId,
    name: toolName,
    title,
    arguments: argumentsText(toolName, given),
    state: "running",
    startedAt: at,
    endedAt: undefined,
    isUserRequested: isUserRequested || (known?.isUserRequested ?? false),
    isHidden: (isUserRequested && isObject(given) && given.hiddenFromModel === true) || (known?.isHidden ?? false),
    mcpServer: "mcpServerName" in data ? data.mcpServerName : undefined,
    progress: undefined,
    output: NO_OUTPUT,
    diff: undefined,
    exitCode: undefined,
    error: undefined,
    images: [],
    children: known?.children ?? [],
    waitsFor: undefined,
  };
  agent.tools.set(toolCallId, card);
  agent.lastTool = { toolCallId, name: toolName, title, at };
}

function change(agent: AgentDraft, toolCallId: string, how: (card: ToolCard) => Partial<ToolCard>) {
  const card = agent.tools.get(toolCallId);
  if (card) agent.tools.set(toolCallId, { ...card, ...how(card) });
}

function complete(step: FoldStep, agent: AgentDraft, data: EventData<"tool.execution_complete">) {
  const { view, at } = step;
  const { toolCallId, success, result, error, shellExecution, isUserRequested } = data;
  const running = agent.tools.get(toolCallId);
  agent.tools.delete(toolCallId);
  spend(view, agent, { tools: 1 });
  closeCall(view, agent, toolCallId);
  // A denial that ends the answer of the main agent.
  if (error?.code === "rejected") agent.hasCalls = false;
  const text = result?.content ?? error?.message ?? "";
  const line = lastLineOf(text);
  if (line !== "") agent.lastOutput = clip(line, MAX_LINE);
  const name = running?.name ?? "tool";
  if (success && name === "update_todo" && setTodos(step, agent, result?.detailedContent)) return;
  if (name === "ask_user" && running && addAnswer(step, running, success ? text : undefined)) return;
  const card: ToolCard = Object.freeze({
    ...(running ?? unknownCall(toolCallId, at)),
    state: stateOf(data),
    endedAt: at,
    isUserRequested: isUserRequested ?? running?.isUserRequested ?? false,
    progress: undefined,
    output: outputText(text),
    // The detailed result of these tools is a unified diff.
    diff:
      fileEditTools.has(name) && result?.detailedContent !== undefined ? diffText(result.detailedContent) : undefined,
    exitCode: shellExecution?.exitCode,
    error: error && clip(error.message, MAX_ERROR),
    images: result?.binaryResultsForLlm ?? [],
    waitsFor: undefined,
  });
  pushBlock(step, { kind: "tool", card });
}

function unknownCall(toolCallId: string, at: number): ToolCard {
  return {
    toolCallId,
    name: "tool",
    title: "tool",
    arguments: "",
    state: "running",
    startedAt: at,
    endedAt: undefined,
    isUserRequested: false,
    isHidden: false,
    mcpServer: undefined,
    progress: undefined,
    output: NO_OUTPUT,
    diff: undefined,
    exitCode: undefined,
    error: undefined,
    images: [],
    children: [],
    waitsFor: undefined,
  };
}

function stateOf({ success, error }: EventData<"tool.execution_complete">): ToolState {
  if (success) return "done";
  const { code } = error ?? {};
  return code === "denied" || code === "rejected" || code === "interrupted" ? code : "failed";
}

const ITEM = /^[ \t]*(?:[-*+]|\d{1,4}[.)])[ \t]+\[([ xX~/>-])\][ \t]*(.*)$/gm;

/** The list of `update_todo` is Markdown with check boxes. */
function setTodos(step: FoldStep, agent: AgentDraft, markdown: string | undefined): boolean {
  if (markdown === undefined) return false;
  const items = [...markdown.matchAll(ITEM)].map(([, mark = " ", title = ""]): PlanItem => {
    return { title, status: mark === " " ? "open" : mark.toLowerCase() === "x" ? "done" : "in_progress" };
  });
  if (agent === step.view.main) step.view.plan = { ...step.view.plan, items };
  pushBlock(step, { kind: "plan", items });
  return true;
}

function addAnswer(step: FoldStep, call: ToolCard, text: string | undefined): boolean {
  const question = questionOf(call);
  if (question === undefined) return false;
  const answer = text?.replace(/^User (?:responded|selected): /, "");
  pushBlock(step, { kind: "answer", toolCallId: call.toolCallId, question, answer });
  return true;
}

function questionOf({ arguments: given }: ToolCard): string | undefined {
  try {
    const parsed: unknown = JSON.parse(given);
    return isObject(parsed) && typeof parsed.question === "string" ? parsed.question : undefined;
  } catch {
    return undefined;
  }
}
