/** Agents that work for the main agent: the events of the wire, and the records of the log. */
import * as z from "zod";
import { barrier, count, ephemeral, event, JsonValue, text } from "./define-event.ts";

const TaskStatus = z.enum(["queued", "running", "idle", "completed", "failed", "cancelled"]);
const TaskReason = z.enum(["finished", "empty", "limit", "error", "stopped", "interrupted", "invalid_output"]);
const who = { toolCallId: text, agentName: text, agentDisplayName: text, model: text.exactOptional() };
const spent = {
  durationMs: count.exactOptional(),
  totalTokens: count.exactOptional(),
  totalToolCalls: count.exactOptional(),
};

export const taskEvents = [
  event("subagent.started", () =>
    z.object({
      ...who,
      agentDescription: text,
      factoryRunId: text.exactOptional(),
      agentType: text.exactOptional(),
      executionMode: z.enum(["sync", "background"]).exactOptional(),
      /** The agent that started it, if it was not the main agent. */
      parentId: text.exactOptional(),
    }),
  ),
  event("subagent.completed", () => z.object({ ...who, ...spent, cancelled: z.boolean().exactOptional() })),
  event("subagent.failed", () => z.object({ ...who, ...spent, error: text })),
  event("subagent.selected", () =>
    z.object({ agentName: text, agentDisplayName: text, tools: z.array(text).nullable() }),
  ),
  event("subagent.deselected", () => z.object({})),
  event(
    "session.custom_agents_updated",
    () =>
      z.object({
        agents: z.array(
          z.object({
            id: text,
            name: text,
            displayName: text,
            description: text,
            source: text,
            tools: z.array(text).nullable(),
            userInvocable: z.boolean(),
            model: text.exactOptional(),
          }),
        ),
        warnings: z.array(text),
        errors: z.array(text),
      }),
    ephemeral,
  ),
  event("session.background_tasks_changed", () => z.object({}), ephemeral),

  /** A task was created, and will have exactly one end. Stored before any part of it runs. */
  event(
    "troupe.task_created",
    () =>
      z.object({
        taskId: text,
        parentId: text.exactOptional(),
        toolCallId: text,
        kind: z.enum(["agent", "mcp-task"]),
        agentName: text,
        agentDisplayName: text,
        description: text,
        prompt: text,
        mode: z.enum(["sync", "background"]),
        depth: count,
        multiTurn: z.boolean(),
        model: text.exactOptional(),
        /** The tools that it may use; null = all tools of its parent. */
        tools: z.array(text).nullable(),
        /** Shares of its parent's limits. */
        limits: z
          .object({
            turns: count.exactOptional(),
            tokens: count.exactOptional(),
            costUsd: count.exactOptional(),
            durationMs: count.exactOptional(),
          })
          .exactOptional(),
        worktree: text.exactOptional(),
        /** It runs as a session of its own, on any worker. */
        placement: z.literal("elsewhere").exactOptional(),
        outputSchema: z.record(text, JsonValue).exactOptional(),
        reasoningEffort: text.exactOptional(),
        /** It works for this factory run, which is notified of its end instead of the main agent. */
        factoryRunId: text.exactOptional(),
      }),
    barrier,
  ),
  /** Stored before listeners receive it. A result too large for a line is in the session's files. */
  event(
    "troupe.task_state",
    () =>
      z.object({
        taskId: text,
        from: TaskStatus.nullable(),
        to: TaskStatus,
        reason: TaskReason.exactOptional(),
        /** The number of the agent's answer that ended with this state, and its text. */
        turn: count.exactOptional(),
        response: text.exactOptional(),
        responseFile: text.exactOptional(),
        error: text.exactOptional(),
        /** The limit that ended it. `price`: a cost limit could not be enforced because a price was unknown. */
        limit: z.enum(["turns", "tokens", "cost", "price", "failures", "time"]).exactOptional(),
      }),
    barrier,
  ),
  event("troupe.task_promoted", () => z.object({ taskId: text }), barrier),
  event(
    "troupe.task_message",
    () => z.object({ taskId: text, messageId: text, content: text, from: text.exactOptional() }),
    barrier,
  ),
  /** The message is in a request that was sent to the agent's model. */
  event("troupe.task_message_delivered", () => z.object({ taskId: text, messageIds: z.array(text) }), barrier),
  /**
   * The parent has received this state, by a notice in a request or by reading it before. A read names its call: if
   * that call fails in the end, the state counts as not received.
   */
  event(
    "troupe.task_notice_delivered",
    () =>
      z.object({
        taskId: text,
        to: TaskStatus,
        turn: count.exactOptional(),
        by: z.enum(["notice", "read"]),
        toolCallId: text.exactOptional(),
      }),
    barrier,
  ),
  /** Work is handed to the agent's own session. Stored before it is submitted, so that it is submitted once. */
  event(
    "troupe.task_sent",
    () =>
      z.object({
        taskId: text,
        session: text,
        workId: text,
        /** How many agents it may start. They count as started. */
        agents: count,
        /** The part of the limits that the work may use. Reserved until it returns. */
        allowance: z
          .object({ turns: count.exactOptional(), tokens: count.exactOptional(), costUsd: count.exactOptional() })
          .exactOptional(),
      }),
    barrier,
  ),
  /** The work has ended. Its answer is the `assistant.message` of the agent before this event. */
  event(
    "troupe.task_returned",
    () =>
      z.object({
        taskId: text,
        workId: text,
        outcome: z.enum(["done", "aborted", "limit", "failed"]),
        message: text.exactOptional(),
        /** The branch, or the ref of the remote repository, that has what the agent changed. */
        changes: text.exactOptional(),
        /** The number of the last line of the agent's log that `usage` includes. */
        seq: count,
        /** Usage of the agent's session since the work before, its own agents included. */
        usage: z.object({
          calls: count,
          inputTokens: count,
          outputTokens: count,
          cacheReadTokens: count,
          cacheWriteTokens: count,
          reasoningTokens: count,
          costUsd: count.nullable(),
        }),
      }),
    barrier,
  ),
  event("troupe.task_removed", () => z.object({ taskId: text }), barrier),
] as const;
