/**
 * Runs an agent as a session of its own, on any worker. The log of this session has its messages, its answers and what it
 * used; the log of its own session has the rest.
 *
 * An answer can be cut off anywhere and attached to again: `troupe.task_sent` is stored before work is submitted,
 * `troupe.task_returned` when it has ended, and the messages of the work are those that have no answer yet.
 */
import type { AgentDefinition } from "../../agents/agent.ts";
import type { LoopOutcome } from "../../loop/loop.ts";
import type { LimitReached } from "../../loop/run.ts";
import type { Emit, EventData } from "../../protocol/event.ts";
import { DETACHED } from "../../tasks/ports.ts";
import type { SentWork, TaskRecord } from "../../tasks/task-record.ts";
import type { Limits } from "../budget/budget.ts";
import type { Conversation } from "../conversation.ts";

/** The way to other workers. */
export interface RemoteAgents {
  /** Returns the reason why the agent has to run here, or undefined. */
  refusal(definition: AgentDefinition): Promise<string | undefined>;
  /** Submits the work. Submitting it again has no effect. */
  submit(work: RemoteWork): Promise<void>;
  /** Waits until the work has ended, however long that takes. Rejects when the signal aborts. */
  ended(work: SentWork, signal: AbortSignal): Promise<RemoteEnd>;
  /** Asks for the end of the work, whether it runs or waits. */
  stop(workId: string): Promise<void>;
  /** Returns what the work has used so far. */
  usedSoFar(work: SentWork): Promise<Pick<RemoteEnd, "usage" | "seq">>;
  /** Returns the id of an agent's session. */
  sessionOf(taskId: string): string;
}

export interface RemoteWork {
  readonly task: TaskRecord;
  readonly definition: AgentDefinition;
  readonly sent: SentWork;
  readonly prompt: string;
}

export interface RemoteEnd
  extends Pick<EventData<"troupe.task_returned">, "outcome" | "message" | "changes" | "usage" | "seq"> {
  readonly answer?: string;
}

export interface RemoteAnswer {
  /** Returns the current record. */
  task(): TaskRecord;
  readonly definition: AgentDefinition;
  readonly port: RemoteAgents;
  readonly conversation: Conversation;
  readonly emit: Emit;
  /** Reserves a part of the budgets that apply to the agent, until `usageCounted`. `known`: what an earlier process reserved. */
  reserve(known: Limits | undefined): Limits | LimitReached;
  usageCounted(): void;
  /** Returns how many agents may still be started for this message. */
  remainingAgents(): number;
}

export interface RemoteAnswerPorts {
  /** Aborts when the agent is stopped, or when this process detaches from it. */
  readonly signal: AbortSignal;
  /** Puts messages that have arrived into the conversation. */
  deliver(): Promise<void>;
  beforeStopping(): Promise<"stop" | "continue">;
}

/** A remote agent may start 1/8 of the agents that may still be started. */
const REMAINING_AGENTS_DIVISOR = 8;
/** Time that a stopped agent has to end, so that all its usage is counted. After that, only the usage reported so far is
 * counted. */
const STOP_MS = 1_500;

export async function runRemotely(answer: RemoteAnswer, ports: RemoteAnswerPorts): Promise<LoopOutcome> {
  for (;;) {
    const end = await runWork(answer, ports.signal);
    if ("kind" in end) return end;
    await ports.deliver();
    if (unanswered(answer.conversation) !== "") continue;
    if ((await ports.beforeStopping()) === "stop") return { kind: "done", answer: end.answer };
  }
}

/** Submits one piece of work, or attaches to the one that was submitted. Returns its answer, or the outcome. */
async function runWork(answer: RemoteAnswer, signal: AbortSignal): Promise<LoopOutcome | { readonly answer: string }> {
  const { conversation, port, definition } = answer;
  const prompt = unanswered(conversation);
  const { sent: last } = answer.task();
  const earlier = last?.isPast ? undefined : last;
  // It ended just before this process attached to it.
  if (earlier?.returned && (prompt === "" || earlier.returned.outcome !== "done"))
    return outcomeOf(earlier.returned, lastAnswer(conversation));
  const reserved = answer.reserve(earlier && !earlier.returned ? (earlier.allowance ?? {}) : undefined);
  if ("limit" in reserved) return { kind: "limit", reached: reserved };
  try {
    const sent = earlier && !earlier.returned ? earlier : await send(answer, reserved);
    if (prompt !== "") await port.submit({ task: answer.task(), definition, sent, prompt });
    const end = await endOf(answer, sent, signal);
    if (end === undefined) return { kind: "aborted" };
    if (end.answer !== undefined && prompt !== "") {
      const messageId = sent.workId;
      await answer.emit("assistant.message", { messageId, content: end.answer, toolRequests: [] });
    }
    const { answer: _, ...rest } = end;
    await answer.emit("troupe.task_returned", { taskId: answer.task().id, workId: sent.workId, ...rest });
    return outcomeOf(end, end.answer ?? lastAnswer(conversation));
  } finally {
    answer.usageCounted();
  }
}

async function send(answer: RemoteAnswer, allowance: Limits): Promise<SentWork> {
  const { id: taskId, sent: earlier } = answer.task();
  const work = {
    session: answer.port.sessionOf(taskId),
    workId: crypto.randomUUID(),
    agents: Math.floor(answer.remainingAgents() / REMAINING_AGENTS_DIVISOR),
    ...(Object.keys(allowance).length > 0 && { allowance }),
  };
  await answer.emit("troupe.task_sent", { taskId, ...work });
  return { ...work, seq: earlier?.seq ?? 0 };
}

/** Returns undefined if this process detached from the answer, or it was stopped, before the work ended. */
async function endOf({ port }: RemoteAnswer, sent: SentWork, signal: AbortSignal): Promise<RemoteEnd | undefined> {
  try {
    return await port.ended(sent, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
    if (signal.reason === DETACHED) return undefined;
    await port.stop(sent.workId);
    const ended = port.ended(sent, AbortSignal.timeout(STOP_MS));
    return ended.catch(async () => ({ outcome: "aborted" as const, ...(await port.usedSoFar(sent)) }));
  }
}

function outcomeOf({ outcome, message }: NonNullable<SentWork["returned"]>, answer: string) {
  switch (outcome) {
    case "done":
      return { answer };
    case "aborted":
      return { kind: "aborted" } as const;
    case "limit": {
      const reached: LimitReached = {
        limit: "tokens",
        allowed: 0,
        used: 0,
        message: message ?? "A limit was reached.",
      };
      return { kind: "limit", reached } as const;
    }
    case "failed":
      throw new Error(message ?? "The agent's session has failed.");
  }
}

/** Returns the text of the messages that have no answer yet; empty if there are none. */
function unanswered({ entries }: Conversation): string {
  const last = entries.findLastIndex(({ message }) => message.role === "assistant");
  const texts = entries.slice(last + 1).flatMap(({ message }) => (message.role === "user" ? [message.content] : []));
  return texts.join("\n\n");
}

function lastAnswer({ entries }: Conversation): string {
  const last = entries.findLast(({ message }) => message.role === "assistant")?.message;
  return last?.role === "assistant" ? last.content : "";
}
