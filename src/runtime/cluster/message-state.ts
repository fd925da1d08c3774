/** Reads from the log of a session how far the message of a piece of work has come. */

import type { SessionEvent } from "../../protocol/event.ts";
import { WORK_SOURCE } from "../../protocol/message.ts";
import { cutOff } from "../../session/cut-off.ts";
import { hasDueNotice, TaskFold } from "../../tasks/task-fold.ts";
import type { TaskRecord } from "../../tasks/task-record.ts";
import { isIdleOrEnded } from "../../tasks/task-state.ts";
import type { WorkRow } from "./work.ts";

/**
 * "interrupted": it has no answer, or agents were at work for it and the main agent does not know how they ended.
 * "waits": it was interrupted or answered while agents on other workers go on for it.
 */
export type MessageState = "new" | "unsent" | "interrupted" | "waits" | { readonly answer: string };

/** The source of the messages of a piece of work. */
export const sourceOf = ({ id }: Pick<WorkRow, "id">): string => `${WORK_SOURCE}${id}`;

export function stateOf(events: readonly SessionEvent[], source: string): MessageState {
  const own = eventsOf(
    events.filter(({ agentId }) => agentId === undefined),
    source,
  );
  if (own.length === 0) return "unsent";
  const isCut = cutOff(own) !== undefined || own.some(isInterruption);
  const answer = answerIn(isCut ? afterInterruption(own) : own);
  const agents = new TaskFold(events).all();
  if (waitsElsewhere(agents, { events, isAnswered: answer !== undefined })) return "waits";
  const started = startedSince(own[0], events);
  const isOpen = agents.some((agent) => started.has(agent.id) && isCutOff(agent));
  return answer === undefined || isOpen ? "interrupted" : answer;
}

/** Returns the agents that were started after this event. */
function startedSince(from: SessionEvent | undefined, events: readonly SessionEvent[]): ReadonlySet<string> {
  const since = events.slice(from ? events.indexOf(from) : 0);
  return new Set(since.flatMap((event) => (event.type === "troupe.task_created" ? [event.data.taskId] : [])));
}

/** Returns what happened for messages of this source: until a message of another one. Work may be retried after that. */
function eventsOf(main: readonly SessionEvent[], source: string): readonly SessionEvent[] {
  let isOwn = false;
  return main.filter((event) => {
    if (event.type === "user.message") isOwn = event.data.source === source;
    return isOwn;
  });
}

/** Whether a call waits for an agent on another worker, or such an agent is to wake the main agent, which has answered. */
function waitsElsewhere(
  agents: readonly TaskRecord[],
  { events, isAnswered }: { readonly events: readonly SessionEvent[]; readonly isAnswered: boolean },
): boolean {
  const ended = new Set<string>();
  for (const { type, agentId, data } of events)
    if (type === "tool.execution_complete" && agentId === undefined) ended.add(data.toolCallId);
  const ofMain = agents.filter(({ spec, parentId }) => spec.placement && parentId === undefined);
  return ofMain.some(({ spec, status }) => !ended.has(spec.toolCallId) || (isAnswered && !isIdleOrEnded(status)));
}

/** Whether the process ended before the agent did, or before the main agent was told. */
function isCutOff(agent: TaskRecord): boolean {
  const { spec, status, reason, parentId } = agent;
  if (spec.placement || spec.kind !== "agent") return false;
  return !isIdleOrEnded(status) || (parentId === undefined && reason !== "stopped" && hasDueNotice(agent));
}

const isInterruption = (event: SessionEvent): boolean =>
  event.type === "session.error" && event.data.errorType === "interrupted";

function afterInterruption(events: readonly SessionEvent[]): readonly SessionEvent[] {
  return events.slice(events.findLastIndex(isInterruption) + 1);
}

/** Returns the answer of the main agent, if the last thing it said is one. What it said when it was stopped is none. */
export function answerIn(events: readonly SessionEvent[]): { answer: string } | undefined {
  if (cutOff(events) !== undefined) return undefined;
  const last = events.findLast(({ type }) => type === "assistant.message" || type === "abort");
  return last?.type === "assistant.message" && (last.data.toolRequests ?? []).length === 0
    ? { answer: last.data.content }
    : undefined;
}
