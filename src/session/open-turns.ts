import type { Emit, SessionEvent } from "../protocol/event.ts";

interface OpenTurn {
  readonly began: Extract<SessionEvent, { type: "subagent.started" }>;
  /** When the agent was last heard of. */
  last: string;
  tokens: number;
  toolCalls: number;
}

/** The turns of agents that began and have no end in the log: a process was killed while they ran. */
export class OpenTurns {
  readonly #turns = new Map<string, OpenTurn>();

  apply(agentId: string, event: SessionEvent): void {
    const { type, timestamp } = event;
    if (type === "subagent.started") {
      this.#turns.set(agentId, { began: event, last: timestamp, tokens: 0, toolCalls: 0 });
    }
    if (type === "subagent.completed" || type === "subagent.failed") this.#turns.delete(agentId);
    const open = this.#turns.get(agentId);
    if (!open) return;
    open.last = timestamp;
    if (type === "tool.execution_start") open.toolCalls++;
    if (type === "troupe.usage") open.tokens += event.data.inputTokens + event.data.outputTokens;
  }

  clear(): void {
    this.#turns.clear();
  }

  /** Ends them in the log as a clean end of the process would have, so that no client shows them as running. */
  async end(emitOf: (agentId: string) => Emit): Promise<void> {
    for (const [id, { began, last, tokens, toolCalls }] of [...this.#turns]) {
      const { toolCallId, agentName, agentDisplayName, model } = began.data;
      await emitOf(id)("subagent.completed", {
        ...{ toolCallId, agentName, agentDisplayName },
        durationMs: Math.max(0, Date.parse(last) - Date.parse(began.timestamp)) || 0,
        totalTokens: tokens,
        totalToolCalls: toolCalls,
        ...(model !== undefined && { model }),
        cancelled: true,
      });
    }
  }
}
