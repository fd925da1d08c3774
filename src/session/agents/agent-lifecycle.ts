/**
 * Lifecycle events of agents for clients of the wire: `subagent.started`, and `subagent.completed` or
 * `subagent.failed`.
 *
 * One pair covers all messages that the agent answers until it ends, its work fails, or the session closes. An agent
 * that continues afterwards has another pair. For an agent selected by its definition, `subagent.selected` precedes
 * the pair and `subagent.deselected` follows it.
 */
import { defined } from "../../lib/defined.ts";
import type { Emit, EventOf, SessionEvent } from "../../protocol/event.ts";
import type { TaskRecord, TaskUsage } from "../../tasks/task-record.ts";
import { isFinal } from "../../tasks/task-state.ts";

interface OpenLifecycle {
  isSelected: boolean;
  began: EventOf<"subagent.started"> | undefined;
  /** The time of the agent's latest event. */
  last: string;
  /** The agent's totals before `subagent.started`. */
  before: Totals;
}

interface Totals {
  readonly tokens: number;
  readonly toolCalls: number;
  readonly activeMs: number;
}

const nothing: Totals = { tokens: 0, toolCalls: 0, activeMs: 0 };

/** The definition's facts about the agent of a task. */
export interface AgentFacts {
  readonly description: string;
  /** The definition's tools; null means all. Absent for tasks without an agent definition. */
  readonly tools?: readonly string[] | null;
}

export interface AgentLifecycleParts {
  /** Returns an emit function for the agent. It waits while the log cannot be written. */
  emitOf(agentId: string): Emit;
  factsOf(task: TaskRecord): AgentFacts;
  /** Returns the usage of the agent and its descendants. */
  usageOf(task: TaskRecord): TaskUsage;
}

export class AgentLifecycle {
  readonly #parts: AgentLifecycleParts;
  readonly #open = new Map<string, OpenLifecycle>();
  readonly #pending = new Set<Promise<unknown>>();

  constructor(parts: AgentLifecycleParts) {
    this.#parts = parts;
  }

  /** Applies an event of the agent, from the log or new. */
  apply(agentId: string, event: SessionEvent): void {
    const { type, timestamp } = event;
    if (type === "subagent.selected") this.#of(agentId, timestamp).isSelected = true;
    if (type === "subagent.started") this.#of(agentId, timestamp).began = event;
    const life = this.#open.get(agentId);
    if (!life) return;
    if (type === "subagent.completed" || type === "subagent.failed") life.began = undefined;
    else if (type === "subagent.deselected") life.isSelected = false;
    else life.last = timestamp;
    if (!life.began && !life.isSelected) this.#open.delete(agentId);
  }

  /** Clears all state before the log is folded again. */
  clear(): void {
    this.#open.clear();
  }

  /** Emits the start, unless an earlier one has no end yet. */
  async begin(task: TaskRecord): Promise<void> {
    const { id, spec, mode, parentId } = task;
    if (this.#open.get(id)?.began) return;
    const { description, tools } = this.#parts.factsOf(task);
    const { toolCallId, agentName, agentDisplayName, model, factoryRunId } = spec;
    const emit = this.#parts.emitOf(id);
    const before = this.#totalsOf(task);
    if (tools !== undefined) {
      void emit("subagent.selected", { agentName, agentDisplayName, tools: tools && [...tools] });
    }
    const started = emit("subagent.started", {
      toolCallId,
      agentName,
      agentDisplayName,
      agentDescription: description,
      agentType: agentName,
      executionMode: mode,
      ...defined({ parentId }),
      ...(model && { model }),
      ...defined({ factoryRunId }),
    });
    const life = this.#open.get(id);
    if (life) life.before = before;
    await started;
  }

  /** Emits the end if the new state requires it. It is logged before any event that waits for it. */
  onState(task: TaskRecord): void {
    if (isFinal(task.status) || (task.status === "idle" && task.reason !== "finished")) this.#end(task.id, task);
  }

  /** Emits the missing ends, except those of agents that work without this process. Resolves when all ends are in the log. */
  async endAll(taskOf: (id: string) => TaskRecord | undefined): Promise<void> {
    for (const id of [...this.#open.keys()]) {
      const task = taskOf(id);
      if (task?.status !== "running" || task.spec.placement === undefined) this.#end(id, task);
    }
    await Promise.allSettled(this.#pending);
  }

  #end(id: string, task: TaskRecord | undefined): void {
    const life = this.#open.get(id);
    if (!life) return;
    const emit = this.#parts.emitOf(id);
    if (life.began) {
      const { toolCallId, agentName, agentDisplayName, model } = life.began.data;
      const who = { toolCallId, agentName, agentDisplayName, ...defined({ model }) };
      const data = { ...who, ...(task && this.#spent(task, life)) };
      const error = task && failureOf(task);
      const isCancelled = !task || task.status === "cancelled" || task.reason === "interrupted";
      if (error !== undefined) this.#track(emit("subagent.failed", { ...data, error }));
      else this.#track(emit("subagent.completed", { ...data, ...(isCancelled && { cancelled: true }) }));
    }
    if (life.isSelected) this.#track(emit("subagent.deselected", {}));
  }

  #spent(task: TaskRecord, { before, began, last }: OpenLifecycle) {
    const { tokens, toolCalls, activeMs } = this.#totalsOf(task);
    const active = activeMs - before.activeMs;
    const known = Date.parse(last) - Date.parse(began?.timestamp ?? last);
    // After a crash the log has the time of the agent's last event, but not the time at which its process ended.
    const durationMs = task.reason === "interrupted" ? Math.min(active, known) : active;
    return {
      durationMs: Math.max(0, Math.round(durationMs)) || 0,
      totalTokens: Math.max(0, tokens - before.tokens),
      totalToolCalls: Math.max(0, toolCalls - before.toolCalls),
    };
  }

  #totalsOf(task: TaskRecord): Totals {
    const { inputTokens, outputTokens, toolCalls } = this.#parts.usageOf(task);
    return { tokens: inputTokens + outputTokens, toolCalls, activeMs: task.activeMs };
  }

  #track(emitted: Promise<void>): void {
    this.#pending.add(emitted);
    const done = (): void => void this.#pending.delete(emitted);
    emitted.then(done, done);
  }

  #of(agentId: string, timestamp: string): OpenLifecycle {
    const known = this.#open.get(agentId);
    if (known) return known;
    const life: OpenLifecycle = { isSelected: false, began: undefined, last: timestamp, before: nothing };
    this.#open.set(agentId, life);
    return life;
  }
}

/** Returns the error of an agent that ended without a finished answer; undefined otherwise. */
function failureOf({ status, reason, error }: TaskRecord): string | undefined {
  const isOver = status === "failed" || status === "idle";
  if (!isOver || reason === undefined || reason === "finished" || reason === "interrupted") return undefined;
  return error ?? failures[reason];
}

const failures: Readonly<Record<"empty" | "limit" | "error" | "stopped" | "invalid_output", string>> = {
  empty: "The agent ended without an answer.",
  limit: "The agent was stopped by a limit before it was done.",
  error: "The agent failed.",
  stopped: "The agent was stopped before it was done.",
  invalid_output: "The agent gave an answer that does not fit its schema.",
};
