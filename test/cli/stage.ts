import type { EventData, EventType, SessionEvent } from "../../src/protocol/event.ts";

/** One event as a session would say it; who said it is the agent, or nobody for the main one. */
export function said<T extends EventType>(type: T, data: EventData<T>, agentId?: string): SessionEvent {
  const envelope = { id: "e", timestamp: "2026-01-01T00:00:00.000Z", parentId: null };
  return { ...envelope, ...(agentId !== undefined && { agentId }), type, data } as SessionEvent;
}

export const created = (taskId: string, more: Partial<EventData<"troupe.task_created">> = {}): SessionEvent =>
  said("troupe.task_created", {
    taskId,
    toolCallId: `call_${taskId}`,
    kind: "agent",
    agentName: "explore",
    agentDisplayName: "Explore",
    description: "look around",
    prompt: "look",
    mode: "background",
    depth: 1,
    multiTurn: false,
    tools: null,
    ...more,
  });

type State = EventData<"troupe.task_state">;

export const became = (taskId: string, from: State["from"], to: State["to"], more: Partial<State> = {}): SessionEvent =>
  said("troupe.task_state", { taskId, from, to, ...more });

export const running = (taskId: string): SessionEvent[] => [
  became(taskId, "queued", "running"),
  said(
    "subagent.started",
    {
      toolCallId: `call_${taskId}`,
      agentName: "explore",
      agentDisplayName: "Explore",
      agentDescription: "look around",
    },
    taskId,
  ),
];

export const used = (tool: string, args: Record<string, string>, agentId?: string): SessionEvent[] => [
  said("tool.execution_start", { toolCallId: "c", toolName: tool, arguments: args }, agentId),
  said("tool.execution_complete", { toolCallId: "c", success: true }, agentId),
];

export const spent = (inputTokens: number, costUsd: number | null, agentId?: string): SessionEvent =>
  said(
    "troupe.usage",
    {
      turnId: "0",
      provider: "faux",
      model: "faux",
      inputTokens,
      outputTokens: 12,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
      reasoningTokens: 0,
      costUsd,
      durationMs: 1,
      attempts: 1,
    },
    agentId,
  );

export const intends = (content: string, agentId?: string): SessionEvent =>
  said(
    "assistant.message",
    { messageId: "m", content, toolRequests: [{ toolCallId: "c", name: "view", arguments: {} }] },
    agentId,
  );

export const step = (agentId: string, data: EventData<"troupe.subagent_step">): SessionEvent =>
  said("troupe.subagent_step", data, agentId);
