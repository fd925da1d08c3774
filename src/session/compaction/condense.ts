/**
 * Condenses events to those that still matter. Every fold over the result gives the same state as over the whole list,
 * also when more events follow.
 * The conversation of each agent becomes one `troupe.agent_state`; events that only led to it are dropped. Snapshots
 * store the result, and an open session holds it in memory. The log itself stays complete.
 *
 * Rules for adding a fold:
 * - Types that are not named here are kept. A new fold over a type in `NEEDED_WHILE_CALLS_OPEN` or in `remains` must be added to the
 * rules.
 * - Increase `CONDENSE_RULES` if the rules or the shape of the state change. Older snapshots are then ignored.
 */
import { defined } from "../../lib/defined.ts";
import { addUsage } from "../../model/provider.ts";
import type { EventData, EventOf, SessionEvent } from "../../protocol/event.ts";
import { isAsked } from "../../protocol/message.ts";
import type { SnapshotRules } from "../../store/log/snapshot.ts";
import { TaskFold } from "../../tasks/task-fold.ts";
import { isFinal } from "../../tasks/task-state.ts";
import { isSidekickId } from "../agents/sidekick-id.ts";
import { roundedUsd } from "../budget/reservations.ts";
import { Conversation } from "../conversation.ts";
import { lastOutcome } from "../cut-off.ts";

const CONDENSE_RULES = 2;

/** The rules by which the store makes snapshots. */
export const snapshotRules: SnapshotRules = {
  version: CONDENSE_RULES,
  condense,
  condenseRemoved,
  isMilestone: isCompaction,
};

/** Whether the event is a successful compaction. Most events before it can be dropped. */
export function isCompaction(event: SessionEvent): boolean {
  return event.type === "session.compaction_complete" && event.data.success;
}

/** Events of an agent that matter only while one of its calls is open. */
const NEEDED_WHILE_CALLS_OPEN: ReadonlySet<string> = new Set([
  ...["assistant.message", "assistant.turn_end", "assistant.reasoning", "assistant.intent", "abort"],
  ...["troupe.call_changed", "troupe.partial_message", "troupe.permission", "troupe.question", "troupe.agent_state"],
  ...["permission.requested", "permission.completed", "external_tool.requested", "external_tool.completed"],
  ...["user_input.requested", "user_input.completed", "elicitation.requested", "elicitation.completed"],
  ...["hook.start", "hook.end", "session.compaction_start", "session.shutdown", "session.warning"],
]);

/** Notifications that the folds of tasks and of the inbox need. */
const NOTICES: ReadonlySet<string> = new Set(["agent_completed", "agent_idle", "new_inbox_message"]);
const READ_INBOX = "read_inbox";

/** Returns the same list if there is nothing to drop. */
export function condense(events: readonly SessionEvent[]): readonly SessionEvent[] {
  if (events.length < 3) return events;
  const last = events.length - 1;
  const facts = factsOf(events, last);
  const dropped = tallyOf(events);
  const kept: SessionEvent[] = [];
  for (const [index, event] of events.entries()) {
    const agent = facts.agents.get(event.agentId);
    const isLive = index >= last || !agent || index >= agent.keepFromIndex;
    if (isLive && event.type !== "troupe.agent_state") kept.push(event);
    else if (!isLive) kept.push(...remains(event, index, facts));
  }
  const end = kept.pop() as SessionEvent;
  const remaining = tallyOf(kept.concat(end));
  const condensed = [...withUsageMerged(kept), ...states(facts, end, { before: dropped, remaining }), end];
  return condensed.length < events.length ? condensed : events;
}

/** Returns the events hidden by a rewind that still count: usage, log damage and checkpoint numbers. */
function condenseRemoved(events: readonly SessionEvent[]): readonly SessionEvent[] {
  const kept = events.filter(({ type }) => OUT_OF_VIEW.has(type)).map((event) => withoutSummary(event));
  return withUsageMerged(kept);
}

const OUT_OF_VIEW: ReadonlySet<string> = new Set(["troupe.usage", "troupe.log_damage", "session.compaction_complete"]);

export interface ConversationCounts {
  /** Turns of all agents. */
  readonly turns: number;
  /** Messages in the user's role to the main agent. */
  readonly userMessages: number;
  /** Messages that a user wrote. */
  readonly ofPerson: number;
}

/** Counts over all events that the list represents. */
export function tallyOf(events: readonly SessionEvent[]): ConversationCounts {
  let [turns, userMessages, ofPerson] = [0, 0, 0];
  for (const event of events) {
    if (event.type === "troupe.agent_state") {
      turns += event.data.dropped.turns;
      userMessages += event.data.dropped.userMessages;
      ofPerson += event.data.dropped.ofPerson;
    }
    if (event.type === "assistant.turn_start") turns++;
    if (event.type !== "user.message" || event.agentId !== undefined) continue;
    userMessages++;
    if (isAsked(event.data.source)) ofPerson++;
  }
  return { turns, userMessages, ofPerson };
}

interface AgentFacts {
  /** Events of the agent from this index on are kept because one of its calls is open. */
  readonly keepFromIndex: number;
  readonly data: Omit<EventData<"troupe.agent_state">, "dropped">;
}

interface Facts {
  readonly agents: ReadonlyMap<string | undefined, AgentFacts>;
  /** Calls whose end the folds of tasks and of the inbox need: JSON of agent and call. */
  readonly watched: ReadonlySet<string>;
  /** Indexes of events that are kept although others of their type are dropped. */
  readonly chosen: ReadonlySet<number>;
  readonly answered: ReadonlySet<string>;
}

function factsOf(events: readonly SessionEvent[], end: number): Facts {
  const conversations = new Map<string | undefined, Conversation>([[undefined, new Conversation()]]);
  const tasks = new TaskFold();
  const watched = new Set<string>();
  const answered = new Set<string>();
  const asked = new Map<string, number>();
  for (let index = 0; index < end; index++) {
    const event = events[index] as SessionEvent;
    const { agentId } = event;
    tasks.apply(event);
    watch(event, { tasks, watched, answered });
    if (isSidekickId(agentId)) continue;
    const conversation = conversations.get(agentId) ?? new Conversation();
    conversations.set(agentId, conversation);
    conversation.apply(event);
    if (event.type !== "assistant.message") continue;
    for (const { toolCallId } of event.data.toolRequests ?? []) asked.set(callKey(agentId, toolCallId), index);
  }
  const agents = new Map<string | undefined, AgentFacts>();
  for (const [agentId, conversation] of conversations) {
    const indexes = conversation.openCalls.map(({ call }) => asked.get(callKey(agentId, call.toolCallId)) ?? 0);
    agents.set(agentId, { keepFromIndex: Math.min(end, ...indexes), data: stateOf(agentId, conversation, tasks) });
  }
  return { agents, watched, answered, chosen: chosenOf(events, end) };
}

function watch(event: SessionEvent, { tasks, watched, answered }: WatchState): void {
  const { agentId } = event;
  switch (event.type) {
    case "troupe.task_created":
      watched.add(callKey(event.data.parentId, event.data.toolCallId));
      break;
    case "troupe.task_notice_delivered":
      if (event.data.toolCallId !== undefined)
        watched.add(callKey(tasks.get(event.data.taskId)?.parentId, event.data.toolCallId));
      break;
    case "tool.execution_start":
      if (agentId === undefined && event.data.toolName === READ_INBOX)
        watched.add(callKey(agentId, event.data.toolCallId));
      break;
    case "user.message":
      if (event.data.interactionId !== undefined) answered.add(event.data.interactionId);
      break;
    case "troupe.message_withdrawn":
      answered.add(event.data.messageId);
      break;
    default:
  }
}

interface WatchState {
  readonly tasks: TaskFold;
  readonly watched: Set<string>;
  readonly answered: Set<string>;
}

function stateOf(agentId: string | undefined, conversation: Conversation, tasks: TaskFold): AgentFacts["data"] {
  const task = agentId === undefined ? undefined : tasks.get(agentId);
  const { openCalls, openTurn } = conversation;
  const hasEnded = task !== undefined && isFinal(task.status) && openCalls.length === 0 && openTurn === undefined;
  return {
    // Plain data by construction; the event's schema declares it as JSON.
    ...(!hasEnded && {
      conversation: conversation.state as unknown as NonNullable<AgentFacts["data"]["conversation"]>,
    }),
    ...(task && {
      task: {
        toolCalls: task.usage.toolCalls,
        ...defined({ model: task.model, latestIntent: task.latestIntent }),
        recentActivity: [...task.recentActivity],
      },
    }),
  };
}

/**
 * Returns the indexes of events that a fold needs: the first or last of a type, and those that decide the last outcome.
 */
function chosenOf(events: readonly SessionEvent[], end: number): ReadonlySet<number> {
  const first = new Map<string, number>();
  const last = new Map<string, number>();
  for (let index = 0; index < end; index++) {
    const event = events[index] as SessionEvent;
    const who = event.agentId ?? "";
    if (event.type === "tool.execution_start" || event.type === "assistant.turn_start" || event.type === "user.message")
      if (!first.has(event.type)) first.set(event.type, index);
    if (event.type === "system.message" || event.type === "session.usage_checkpoint")
      last.set(`${event.type} ${who}`, index);
    if (event.type === "skill.invoked") last.set(`skill ${who} ${event.data.name}`, index);
    if (event.type === "session.compaction_complete" && event.data.success) last.set(`compaction ${who}`, index);
    if (event.type !== "user.message" || event.agentId !== undefined || !isAsked(event.data.source)) continue;
    if (!first.has("person")) first.set("person", index);
    last.set("person", index);
  }
  return new Set([...first.values(), ...last.values(), ...lastOutcome(events.slice(0, end)).decidedBy]);
}

/** Returns the event, a shorter version, or nothing. Conversations no longer need it. */
function remains(event: SessionEvent, index: number, facts: Facts): SessionEvent[] {
  const isChosen = facts.chosen.has(index);
  const stays = isChosen ? [event] : [];
  if (NEEDED_WHILE_CALLS_OPEN.has(event.type)) return stays;
  switch (event.type) {
    case "assistant.turn_start":
    case "system.message":
    case "session.usage_checkpoint":
    case "skill.invoked":
      return stays;
    case "tool.execution_start":
    case "tool.execution_complete":
      return facts.watched.has(callKey(event.agentId, event.data.toolCallId)) ? [event] : stays;
    case "system.notification":
      return NOTICES.has(event.data.kind.type) ? [event] : [];
    case "user.message":
      return event.agentId === undefined ? stays : [event];
    case "troupe.message_queued":
      return facts.answered.has(event.data.messageId) ? [] : [event];
    case "troupe.message_withdrawn":
      return [];
    case "session.compaction_complete":
      return isChosen ? [event] : [withoutSummary(event)];
    default:
      return [event];
  }
}

function withoutSummary(event: SessionEvent): SessionEvent {
  if (event.type !== "session.compaction_complete" || event.data.summaryContent === undefined) return event;
  const { summaryContent: _, ...data } = event.data;
  return { ...event, data };
}

/** Merges the usage of an agent's calls per model. The agent's last call stays separate. */
function withUsageMerged(events: readonly SessionEvent[]): readonly SessionEvent[] {
  const lastOf = new Map<string | undefined, SessionEvent>();
  for (const event of events) if (event.type === "troupe.usage") lastOf.set(event.agentId, event);
  const indexes = new Map<string, number>();
  const merged: SessionEvent[] = [];
  for (const event of events) {
    const isSingle =
      event.type !== "troupe.usage" || lastOf.get(event.agentId) === event || isSidekickId(event.agentId);
    const key = isSingle ? "" : JSON.stringify([event.agentId, event.data.provider, event.data.model]);
    const known = isSingle ? undefined : indexes.get(key);
    const before = known === undefined ? undefined : merged[known];
    if (known !== undefined && before?.type === "troupe.usage" && event.type === "troupe.usage") {
      merged[known] = addedUsage(before, event);
      continue;
    }
    if (!isSingle) indexes.set(key, merged.length);
    merged.push(event);
  }
  return merged;
}

function addedUsage(one: EventOf<"troupe.usage">, other: EventOf<"troupe.usage">): SessionEvent {
  const [a, b] = [one.data, other.data];
  const data = {
    ...a,
    ...addUsage(a, b),
    costUsd: a.costUsd === null || b.costUsd === null ? null : roundedUsd(a.costUsd + b.costUsd),
    durationMs: a.durationMs + b.durationMs,
    attempts: a.attempts + b.attempts,
    calls: (a.calls ?? 1) + (b.calls ?? 1),
  };
  return { ...one, data };
}

/**
 * Returns the state events. They go right before the last event, so that the first and last events of a list are real
 * ones.
 */
function states(
  facts: Facts,
  end: SessionEvent,
  tally: { before: ConversationCounts; remaining: ConversationCounts },
): SessionEvent[] {
  const dropped = {
    turns: tally.before.turns - tally.remaining.turns,
    userMessages: tally.before.userMessages - tally.remaining.userMessages,
    ofPerson: tally.before.ofPerson - tally.remaining.ofPerson,
  };
  const nothing = { turns: 0, userMessages: 0, ofPerson: 0 };
  return [...facts.agents].map(([agentId, { data }]) => ({
    id: `state-${agentId ?? "main"}`,
    timestamp: end.timestamp,
    parentId: null,
    ...defined({ agentId }),
    type: "troupe.agent_state" as const,
    data: { ...data, dropped: agentId === undefined ? dropped : nothing },
  }));
}

const callKey = (agentId: string | undefined, toolCallId: string): string => JSON.stringify([agentId, toolCallId]);
