/** Folds the agents that work for the main one: tasks, sidekicks, coordinated workers, and those of other servers. */

import type { EventData } from "../protocol/event.ts";
import { type AgentDraft, agentOf, type FoldStep, isBusy, newAgent, type ViewDraft } from "./draft.ts";
import { closeAgent } from "./fold-attention.ts";
import { addChild } from "./fold-tools.ts";
import { lastLineOf } from "./output-text.ts";
import { clip } from "./own-text.ts";
import { pushBlock, takeBlocks } from "./push-block.ts";
import type { AgentStatus } from "./view.ts";

const MAX_PROMPT = 1_000;
const MAX_RESULT = 2_000;
const MAX_ERROR = 1_000;
const MAX_LINE = 200;
const MAX_STEPS = 50;
/** Agents that are known at once. Beyond it the oldest that ended are dropped; their cost stays in their parents. */
const MAX_AGENTS = 1_000;

export function foldAgent(step: FoldStep) {
  const { event, view } = step;
  switch (event.type) {
    case "troupe.task_created":
      return foldTaskCreated(step, event.data);
    case "troupe.task_state":
      return stateChanged(step, event.data);
    case "troupe.task_promoted": {
      const agent = view.agents.get(event.data.taskId);
      if (agent) agent.isAwaited = false;
      return;
    }
    case "troupe.task_removed":
      return foldTaskRemoved(view, event.data.taskId);
    case "troupe.task_message": {
      const { taskId, messageId, content, from } = event.data;
      if (view.queue.some((queued) => queued.messageId === messageId)) return;
      const message = { messageId, text: content, mode: "immediate", agentId: taskId, attachments: 0 } as const;
      view.queue = [...view.queue, { ...message, at: step.at, source: from }];
      return;
    }
    case "troupe.task_message_delivered": {
      const { messageIds } = event.data;
      view.queue = view.queue.filter(({ messageId }) => !messageIds.includes(messageId));
      return;
    }
    case "subagent.started":
      return foldStarted(step, event.data);
    case "subagent.completed":
    case "subagent.failed":
      return foldEnded(step);
    case "troupe.subagent_step":
      return workerStep(step, event.data);
    case "troupe.sidekick_triggered":
      return sidekick(step, event.data);
    case "troupe.sidekick_ended":
      return sidekickEnded(step, event.data);
    default:
  }
}

function foldTaskCreated(step: FoldStep, data: EventData<"troupe.task_created">) {
  const { view, at } = step;
  if (view.agents.has(data.taskId)) return;
  const parent = agentOf(view, data.parentId);
  const agent = newAgent({
    id: data.taskId,
    kind: data.kind,
    name: data.agentName,
    displayName: data.agentDisplayName,
    description: data.description,
    prompt: clip(data.prompt, MAX_PROMPT),
    parentId: data.parentId,
    depth: parent ? parent.depth + 1 : data.depth,
    status: "queued",
    toolCallId: data.toolCallId,
    isAwaited: data.mode === "sync",
    model: data.model,
    worktree: ownTree(data),
    factoryRunId: data.factoryRunId,
    limits: data.limits,
    at,
  });
  add(view, agent);
  if (parent) addChild(parent, data.toolCallId, data.taskId);
}

/** The event names the folder of all work trees, or the tree of the agent's parent. */
function ownTree({ worktree, taskId }: EventData<"troupe.task_created">): string | undefined {
  return worktree !== undefined && /[\\/]worktrees$/.test(worktree) ? `${worktree}/${taskId}` : worktree;
}

function add(view: ViewDraft, agent: AgentDraft) {
  view.agents.set(agent.id, agent);
  if (view.agents.size <= MAX_AGENTS) return;
  const parents = new Set([...view.agents.values()].map(({ parentId }) => parentId));
  for (const one of view.agents.values()) {
    if (view.agents.size <= MAX_AGENTS * 0.9) return;
    if (isOver(one.status) && !parents.has(one.id)) drop(view, one);
  }
}

function drop(view: ViewDraft, agent: AgentDraft) {
  takeBlocks(view, agent);
  view.agents.delete(agent.id);
  view.droppedAgents++;
}

const isOver = (status: AgentStatus): boolean => !isBusy({ status }) && status !== "idle";

/** A removed task is still shown until the limit is reached; only its messages are forgotten. */
function foldTaskRemoved(view: ViewDraft, taskId: string) {
  view.queue = view.queue.filter(({ agentId }) => agentId !== taskId);
}

function stateChanged(step: FoldStep, data: EventData<"troupe.task_state">) {
  const { view, at } = step;
  const agent = view.agents.get(data.taskId);
  if (!agent) return;
  const { from, to, reason, error, response } = data;
  const wasBusy = from === "queued" || from === "running";
  agent.status = to;
  agent.reason = reason;
  agent.error = error && clip(error, MAX_ERROR);
  agent.modelWait = undefined;
  if (response !== undefined) agent.result = clip(response, MAX_RESULT);
  if (isBusy(agent)) return resume(agent, { at, isNew: !wasBusy || to === "running" });
  becameIdle(view, agent, at);
  // The card of a call that waited for it shows its answer. An agent that was idle has done nothing since.
  if (wasBusy && !agent.isAwaited) announce(step, agent);
}

function resume(agent: AgentDraft, { at, isNew }: { at: number; isNew: boolean }) {
  agent.isPast = false;
  agent.endedAt = undefined;
  if (isNew) agent.startedAt = at;
  if (agent.status === "running") agent.spentBefore = agent.spent;
}

function becameIdle(view: ViewDraft, agent: AgentDraft, at: number) {
  agent.endedAt ??= at;
  agent.streaming = undefined;
  agent.tools.clear();
  agent.intent = "";
  agent.compactingSince = undefined;
  if (isOver(agent.status)) {
    closeAgent(view, agent.id);
    foldTaskRemoved(view, agent.id);
  }
}

/** Tells the agent that started it. */
function announce(step: FoldStep, child: AgentDraft) {
  const { status } = child;
  const parent = agentOf(step.view, child.parentId);
  if (!parent || status === "queued" || status === "running") return;
  const { reason, result = "", error, startedAt, endedAt = startedAt } = child;
  pushBlock(
    step,
    {
      kind: "agent",
      childId: child.id,
      name: child.displayName,
      status,
      reason,
      durationMs: endedAt - startedAt,
      result,
      error,
    },
    { agent: parent },
  );
}

/** Servers without task states tell of agents by these events alone. */
function foldStarted(step: FoldStep, data: EventData<"subagent.started">) {
  const { view, at, event } = step;
  const id = event.agentId ?? data.toolCallId;
  const known = view.agents.get(id);
  if (known?.isTracked) return;
  if (known) {
    known.status = "running";
    return resume(known, { at, isNew: true });
  }
  const parent = agentOf(view, data.parentId);
  const agent = newAgent({
    id,
    kind: "agent",
    name: data.agentName,
    displayName: data.agentDisplayName,
    description: data.agentDescription,
    parentId: data.parentId,
    depth: (parent?.depth ?? 0) + 1,
    status: "running",
    toolCallId: data.toolCallId,
    isAwaited: data.executionMode === "sync",
    model: data.model,
    factoryRunId: data.factoryRunId,
    at,
  });
  agent.isTracked = false;
  add(view, agent);
  if (parent) addChild(parent, data.toolCallId, id);
}

function foldEnded(step: FoldStep) {
  const { view, event, at } = step;
  if (event.type !== "subagent.completed" && event.type !== "subagent.failed") return;
  const agent = view.agents.get(event.agentId ?? event.data.toolCallId);
  // An agent with task states can be idle between two messages, or outlive its process.
  if (!agent || agent.isTracked) return;
  agent.status = event.type === "subagent.failed" ? "failed" : event.data.cancelled ? "cancelled" : "completed";
  agent.error = event.type === "subagent.failed" ? clip(event.data.error, MAX_ERROR) : undefined;
  becameIdle(view, agent, at);
  if (!agent.isAwaited) announce(step, agent);
}

/** With this step a worker reports its result. */
const RESULT = "result";

function workerStep({ view, agent }: FoldStep, data: EventData<"troupe.subagent_step">) {
  if (!agent) return;
  const coordinator = agentOf(view, agent.parentId);
  const card = agent.card ?? {
    title: agent.description || agent.displayName,
    group: coordinator?.messages ?? 0,
    steps: new Map(),
    result: undefined,
  };
  const steps = new Map(card.steps).set(data.stepId, data);
  if (steps.size > MAX_STEPS) {
    const [oldest] = steps.keys();
    if (oldest !== undefined) steps.delete(oldest);
  }
  const result = data.stepId === RESULT ? { status: data.status, summary: data.note ?? "" } : card.result;
  agent.card = { ...card, steps, result };
  const line = lastLineOf(data.note ?? "");
  if (line !== "") agent.lastOutput = clip(line, MAX_LINE);
}

function sidekick(step: FoldStep, { name, model }: EventData<"troupe.sidekick_triggered">) {
  const { view, at, event } = step;
  const { agentId } = event;
  if (agentId === undefined) return;
  const known = view.agents.get(agentId);
  if (known) {
    known.status = "running";
    return resume(known, { at, isNew: true });
  }
  const about = { id: agentId, kind: "sidekick", name, status: "running", depth: 1, model } as const;
  add(view, newAgent({ ...about, at }));
}

function sidekickEnded({ view, at, event }: FoldStep, data: EventData<"troupe.sidekick_ended">) {
  const agent = view.agents.get(event.agentId ?? "");
  if (!agent) return;
  const { reason, error } = data;
  agent.status =
    reason === "finished" ? "completed" : reason === "error" || reason === "limit" ? "failed" : "cancelled";
  agent.error = error && clip(error, MAX_ERROR);
  becameIdle(view, agent, at);
}
