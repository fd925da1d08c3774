/**
 * The built-in model for when no other is configured: rules instead of weights, no network, no key. An ordinary
 * provider and a pure function of the request. It parses the results in the history and calls tools for what is
 * missing.
 */
import type { Message } from "../../protocol/message.ts";
import { defineProvider, type ModelEvent, type ModelRequest, type Provider, type Usage } from "../provider.ts";
import { cutQuestion } from "./bounds.ts";
import { needsModel } from "./commands.ts";
import { foreignIn } from "./foreign.ts";
import { isUncertain, isWithinReach, readTask, type Task } from "./intent.ts";
import type { PlannedCall, Scene, UnderstudyStep } from "./plan/plan.ts";
import { planChanges } from "./plan/plan-changes.ts";
import { planData } from "./plan/plan-data.ts";
import { planExplain } from "./plan/plan-explain.ts";
import { planName } from "./plan/plan-name.ts";
import { planOverview } from "./plan/plan-overview.ts";
import { planPart } from "./plan/plan-part.ts";
import { planRefusal } from "./plan/plan-refusal.ts";
import { recap, talk } from "./plan/plan-talk.ts";
import { exchangesIn } from "./project/evidence.ts";
import { promptsIn } from "./prompts.ts";

/** One of these calls is the answer, so tools are called at most one time fewer. */
const MAX_MODEL_CALLS = 8;
const CHARACTERS_PER_TOKEN = 4;
const CHARACTERS_PER_DELTA = 400;

export function understudy(): Provider {
  return defineProvider({
    id: "understudy",
    async *stream(request) {
      yield* play(request, nextStep(request));
    },
  });
}

/** Returns the next step for the user's last prompt. */
export function nextStep(request: ModelRequest): UnderstudyStep {
  const { prompts, since } = promptsIn(request.messages);
  const root = /^- (?:Working folder|Current working directory): (.+)$/m.exec(request.system)?.[1];
  const gitRoot = /^- Git root: (.+)$/m.exec(request.system)?.[1];
  const below = gitRoot !== undefined && root?.startsWith(`${gitRoot}/`) ? root.slice(gitRoot.length + 1) : undefined;
  const turns = since.filter((message) => message.role === "assistant" && message.calls.length > 0).length;
  const scene: Scene = {
    exchanges: exchangesIn(since),
    tools: new Map(request.tools.map((tool) => [tool.name, tool])),
    turnsLeft: MAX_MODEL_CALLS - 1 - turns,
    ...(root === undefined ? {} : { root }),
    ...(below === undefined ? {} : { within: below }),
  };
  const task = readTask(prompts);
  if (task.kind === "recap") return recap(request.messages, prompts);
  const step = follow(task, scene);
  const notice = isUncertain(task) ? foreignIn(cutQuestion(prompts.at(-1) ?? ""))?.notice : undefined;
  return step.kind === "answer" && notice !== undefined ? { ...step, text: `${notice}\n\n${step.text}` } : step;
}

function follow(task: Exclude<Task, { kind: "recap" }>, scene: Scene): UnderstudyStep {
  switch (task.kind) {
    case "overview":
      return planOverview(scene, task.focus);
    case "find":
      return planName(scene, task);
    case "explain":
      return planExplain(scene, task);
    case "part":
      return planPart(scene, task.folder);
    case "changes":
      return planChanges(scene, task.opinion);
    case "data":
      return planData(scene, task);
    case "beyond":
      return planRefusal(scene, task);
    case "command":
      return needsModel(task.name);
    case "greeting":
    case "thanks":
    case "help":
      return talk(task.kind);
  }
}

function* play(request: ModelRequest, step: UnderstudyStep): Generator<ModelEvent> {
  const asked = countCalls(request.messages);
  const calls = step.kind === "calls" ? step.calls : completion(request);
  const text = step.kind === "answer" ? step.text : "";
  for (let start = 0; start < text.length; start += CHARACTERS_PER_DELTA) {
    yield { type: "text", delta: text.slice(start, start + CHARACTERS_PER_DELTA) };
  }
  for (const [index, call] of calls.entries()) {
    const toolCallId = `understudy_${asked + index + 1}`;
    yield { type: "call", call: { toolCallId, name: call.name, arguments: { ...call.arguments } } };
  }
  yield {
    type: "end",
    stop: calls.length > 0 ? "tools" : "done",
    usage: estimate(request, text + JSON.stringify(calls)),
  };
}

/** Marks a task as complete only if an answer was all it needed. */
function completion({ messages, tools }: ModelRequest): readonly PlannedCall[] {
  if (!tools.some((tool) => tool.name === "task_complete")) return [];
  const { prompts } = promptsIn(messages);
  const isDone = isWithinReach(readTask(prompts), prompts.at(-1) ?? "");
  return isDone ? [{ name: "task_complete", arguments: {} }] : [];
}

/** Nothing is billed. The numbers keep a session's usage plausible. */
function estimate(request: ModelRequest, output: string): Usage {
  const input = request.messages.reduce((sum, message) => sum + sizeOf(message), request.system.length);
  return {
    inputTokens: Math.ceil(input / CHARACTERS_PER_TOKEN),
    outputTokens: Math.ceil(output.length / CHARACTERS_PER_TOKEN),
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    reasoningTokens: 0,
  };
}

function sizeOf(message: Message): number {
  return message.content.length + (message.role === "assistant" ? JSON.stringify(message.calls).length : 0);
}

function countCalls(messages: readonly Message[]): number {
  return messages.reduce((sum, message) => sum + (message.role === "assistant" ? message.calls.length : 0), 0);
}
