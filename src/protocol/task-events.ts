/** Agents that work for the main agent, as the wire tells of them and as the log must know them. */
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
      /** The agent that started it, when it was not the main agent. */
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

  /** A task exists from here on, and will have exactly one end. Stored before anything of it runs. */
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
        /** What it may use; null = everything its parent may. */
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
        outputSchema: z.record(text, JsonValue).exactOptional(),
        reasoningEffort: text.exactOptional(),
        /** It works for this run of a factory, which hears of its end; the main agent does not. */
        factoryRunId: text.exactOptional(),
      }),
    barrier,
  ),
  /** Stored before anyone is told. A result too large for a line is in the session's files. */
  event(
    "troupe.task_state",
    () =>
      z.object({
        taskId: text,
        from: TaskStatus.nullable(),
        to: TaskStatus,
        reason: TaskReason.exactOptional(),
        /** The number of the turn that ended with this, and what it answered. */
        turn: count.exactOptional(),
        response: text.exactOptional(),
        responseFile: text.exactOptional(),
        error: text.exactOptional(),
      }),
    barrier,
  ),
  event("troupe.task_promoted", () => z.object({ taskId: text }), barrier),
  event(
    "troupe.task_message",
    () => z.object({ taskId: text, messageId: text, content: text, from: text.exactOptional() }),
    barrier,
  ),
  /** It stands in a request that the agent's model was sent. */
  event("troupe.task_message_delivered", () => z.object({ taskId: text, messageIds: z.array(text) }), barrier),
  /**
   * The parent has heard of this state, by a notice in a request, or by reading it before. A read names its call: if
   * that call does not succeed in the end, nothing was heard.
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
  event("troupe.task_removed", () => z.object({ taskId: text }), barrier),
] as const;
