/** Folds events into a view, one after the other. The same events give the same view, in any process. */
import type { EventData, SessionEvent } from "../protocol/event.ts";
import type { Block, PlanItem } from "./blocks.ts";
import { copied } from "./copy.ts";
import { type AgentDraft, agentOf, type FoldStep, newView, type ViewDraft } from "./draft.ts";
import { foldAgent } from "./fold-agents.ts";
import { foldAttention } from "./fold-attention.ts";
import { foldMessage } from "./fold-messages.ts";
import { foldNotice } from "./fold-notices.ts";
import { foldSession } from "./fold-session.ts";
import { foldTool } from "./fold-tools.ts";
import { takeBlocks } from "./push-block.ts";
import { addUsage } from "./spent.ts";
import type { AgentView, View } from "./view.ts";

const folds = [foldSession, foldAgent, foldMessage, foldTool, foldAttention, foldNotice];

/** A view as plain data, to fold on from later or elsewhere. Opaque: `SessionView.restored` reads it. */
export interface ViewSnapshot {
  readonly view: View;
}

export class SessionView {
  readonly #view: ViewDraft;

  constructor(view: ViewDraft = newView()) {
    this.#view = view;
  }

  /** Takes over a copy of the snapshot. */
  static restored({ view }: ViewSnapshot): SessionView {
    return new SessionView(copied(view as ViewDraft));
  }

  /** The view as of the last event. The object is the same one each time, and changes with the next event. */
  get view(): View {
    return this.#view;
  }

  /** A copy that later events do not change. Blocks are shared, so it costs what is live, not what is in the transcripts. */
  snapshot(): ViewSnapshot {
    return { view: copied(this.#view) };
  }

  /**
   * Events must be given in order, live or from a log. `at` replaces the event's own time. Returns the agent that the event
   * is about: for events of tasks the task, else the agent that emitted it.
   */
  apply(event: SessionEvent, at = Date.parse(event.timestamp)): AgentView | undefined {
    const view = this.#view;
    const agent = agentOf(view, event.agentId);
    const isStored = event.ephemeral !== true;
    if (event.type === "troupe.rewound") foldRewind(view, event);
    if (agent) noteActivity(agent, event, at);
    const step: FoldStep = { view, event, at, agent };
    for (const fold of folds) fold(step);
    foldUse(step);
    if (isStored) {
      view.sequence++;
      view.lastEventId = event.id;
    }
    view.revision++;
    return agentOf(view, subjectOf(event));
  }

  /** The agent that `apply` would return for this event, as it is now. */
  subjectOf(event: SessionEvent): AgentView | undefined {
    return agentOf(this.#view, subjectOf(event));
  }

  /** All agents so far worked for an earlier process; one that starts again does not. */
  markPast(): void {
    for (const agent of this.#view.agents.values()) agent.isPast = true;
    this.#view.revision++;
  }

  /**
   * Takes finished blocks out of the transcript of an agent (default: the main agent), for a surface that has written
   * them to the terminal. Parts of a reply that is still being written are included. Each block is returned once.
   */
  drain(agentId?: string): Block[] {
    const agent = agentOf(this.#view, agentId);
    if (!agent) return [];
    const blocks = takeBlocks(this.#view, agent);
    const { streaming } = agent;
    if (streaming && streaming.blocks.length > 0) {
      for (const block of streaming.blocks) {
        if (block.kind === "reasoning") streaming.isReasoningDrained = true;
        else streaming.drainedParts++;
      }
      blocks.push(...streaming.blocks);
      streaming.blocks = [];
    }
    return blocks;
  }

  /** Sets the plan from rows of the table `todos`, which is not in the log. No rows leave the plan as it is. */
  setTodos(rows: readonly TodoRow[]): void {
    if (rows.length === 0) return;
    this.#view.plan = { ...this.#view.plan, items: rows.map(planItemOf) };
    this.#view.revision++;
  }
}

export interface TodoRow {
  readonly title: string;
  readonly status: string;
}

function planItemOf({ title, status }: TodoRow): PlanItem {
  const known = (["in_progress", "done", "blocked"] as const).find((one) => one === status);
  return { title, status: known ?? "open" };
}

function subjectOf(event: SessionEvent): string | undefined {
  switch (event.type) {
    case "troupe.task_created":
    case "troupe.task_state":
    case "troupe.task_promoted":
    case "troupe.task_message":
      return event.data.taskId;
    case "subagent.started":
    case "subagent.completed":
    case "subagent.failed":
      return event.agentId ?? event.data.toolCallId;
    default:
      return event.agentId;
  }
}

/** Waits of the model end with the next event of the agent. */
function noteActivity(agent: AgentDraft, event: SessionEvent, at: number): void {
  agent.lastAt = at;
  if (event.type !== "model.call_failure" && event.type !== "session.usage_info") agent.modelWait = undefined;
}

function foldUse({ view, event, agent, at }: FoldStep): void {
  switch (event.type) {
    case "troupe.usage":
      if (agent) addUsage(view, agent, event.data);
      if (agent && agent !== view.main) agent.model = event.data.model;
      return;
    case "session.usage_info":
      if (agent) agent.context = contextOf(event.data);
      return;
    case "troupe.retry": {
      if (!agent) return;
      const { attempt, delayMs, reason, statusCode } = event.data;
      const kind = statusCode === 429 ? "rate_limit" : "retry";
      agent.modelWait = { kind, reason, until: at + delayMs, attempt, statusCode };
      return;
    }
    case "troupe.model_wait": {
      if (!agent) return;
      const { reason, delayMs } = event.data;
      const until = delayMs === undefined ? undefined : at + delayMs;
      agent.modelWait = { kind: reason, reason: heldBack[reason], until, attempt: undefined, statusCode: undefined };
      return;
    }
    default:
  }
}

const heldBack: Readonly<Record<EventData<"troupe.model_wait">["reason"], string>> = {
  rate_limit: "rate limited",
  outage: "the provider does not answer",
  concurrency: "other requests go first",
};

function contextOf(data: EventData<"session.usage_info">): AgentView["context"] {
  const { currentTokens, tokenLimit, messagesLength, systemTokens, conversationTokens, toolDefinitionsTokens } = data;
  return {
    currentTokens,
    tokenLimit,
    messages: messagesLength,
    systemTokens,
    conversationTokens,
    toolTokens: toolDefinitionsTokens,
  };
}

/** A log that is read after the rewind has nothing before it that was taken back. */
function foldRewind(view: ViewDraft, event: SessionEvent): void {
  if (event.type !== "troupe.rewound") return;
  view.queue = view.queue.filter(({ agentId }) => agentId !== undefined);
  for (const id of event.data.endedSchedules ?? []) view.schedules.delete(id);
  if (view.lastEventId !== undefined && event.parentId !== view.lastEventId) view.needsReload = true;
}
