/** Events that the wire does not define, with the prefix `troupe.`. */
import * as z from "zod";
import { Attachment, barrier, count, ephemeral, event, JsonValue, Tokens, text } from "./define-event.ts";

export const ownEvents = [
  /**
   * The working folder of a session on a worker was pushed, so that another worker can continue with its files. The last
   * one counts. `leftBehind`: paths that did not travel.
   */
  event("troupe.workspace_kept", () =>
    z.object({
      ref: text,
      commit: text,
      branch: text.exactOptional(),
      leftBehind: z.array(text),
      leftBehindCount: count,
    }),
  ),
  /** The usage and cost of one model call. Stored, so that totals survive a kill. `costUsd` null = price unknown. */
  event("troupe.usage", () =>
    Tokens.extend({
      turnId: text,
      provider: text,
      model: text,
      /** Web searches that the provider made. Absent if it made none. */
      webSearches: count.exactOptional(),
      costUsd: count.nullable(),
      durationMs: count,
      /** Requests sent for this call. Their sum over a log is the number of requests that the session sent. */
      attempts: count,
      estimated: z.boolean().exactOptional(),
      /** Only in snapshots: the number of calls that this event replaces. */
      calls: count.exactOptional(),
    }),
  ),
  /**
   * The state of one agent, which replaces the events that led to it. It exists in snapshots and in memory only: it is
   * in no log, and listeners never receive it.
   */
  event("troupe.agent_state", () =>
    z.object({
      /** Absent for an agent that has ended. */
      conversation: JsonValue.exactOptional(),
      task: z
        .object({
          toolCalls: count,
          model: text.exactOptional(),
          latestIntent: text.exactOptional(),
          recentActivity: z.array(z.object({ message: text, timestamp: count })),
        })
        .exactOptional(),
      /** Counts of events that are no longer in the list. */
      dropped: z.object({ turns: count, userMessages: count, ofPerson: count }),
    }),
  ),
  /** Text of a reply that broke off and was requested again. Stored for users, never sent to the model. */
  event("troupe.partial_message", () => z.object({ turnId: text, messageId: text, content: text, reason: text })),
  /** A message accepted while the agent was busy. From here on it is durable until it is answered. */
  event(
    "troupe.message_queued",
    () =>
      z.object({
        messageId: text,
        content: text,
        mode: z.enum(["enqueue", "immediate"]),
        displayPrompt: text.exactOptional(),
        source: text.exactOptional(),
        attachments: z.array(Attachment).exactOptional(),
        agentMode: z.enum(["interactive", "plan", "autopilot", "shell"]).exactOptional(),
        /** The rules of the command that made the message: its only tools, its agents, and its completion gate. */
        rules: z
          .object({
            tools: z.array(text).exactOptional(),
            agents: z.array(text).exactOptional(),
            gate: z
              .union([
                z.object({ kind: z.literal("research"), reportPath: text }),
                z.object({ kind: z.literal("fleet") }),
              ])
              .exactOptional(),
          })
          .exactOptional(),
      }),
    barrier,
  ),
  /** A hook changed the arguments of a call before it ran. The model sees the changed call. */
  event("troupe.call_changed", () => z.object({ toolCallId: text, arguments: JsonValue })),
  /**
   * A call waits for the response to a question that is sent to clients but not stored. This event identifies it after a
   * restart.
   */
  event("troupe.question", () =>
    z.object({ requestId: text, kind: z.enum(["user_input", "exit_plan_mode"]), toolCallId: text }),
  ),
  /** A model or its settings were chosen for the session. This event restores the choice on resume. */
  event("troupe.model_chosen", () =>
    z.object({
      reference: text,
      reasoningEffort: text.exactOptional(),
      reasoningSummary: z.enum(["none", "concise", "detailed"]).exactOptional(),
    }),
  ),
  event("troupe.message_withdrawn", () => z.object({ messageId: text }), barrier),
  /** A model call failed and is retried after a delay. */
  event(
    "troupe.retry",
    () => z.object({ attempt: count, delayMs: count, reason: text, statusCode: count.exactOptional() }),
    ephemeral,
  ),
  /** A model call is held back before it is sent: by a rate limit, an outage, or too many concurrent calls. */
  event(
    "troupe.model_wait",
    () =>
      z.object({
        reason: z.enum(["rate_limit", "outage", "concurrency"]),
        /** Number of calls that are held back, including this one. */
        waiting: count,
        /** Time until the next try. Absent while that depends on other calls. */
        delayMs: count.exactOptional(),
      }),
    ephemeral,
  ),
  /** A call waits for a file that another agent is changing, or no longer waits (`isOver`). */
  event(
    "troupe.lock_wait",
    () => z.object({ toolCallId: text, path: text, holder: text, isOver: z.boolean() }),
    ephemeral,
  ),
  /** A limit the user set ended the work. */
  event(
    "troupe.limit_reached",
    () => z.object({ limit: z.enum(["turns", "tokens", "cost"]), allowed: count, used: count, message: text }),
    barrier,
  ),
  /** An access was allowed or denied, with the rule and the reason. */
  event(
    "troupe.permission",
    () =>
      z.object({
        toolCallId: text,
        toolName: text,
        kind: text,
        decision: z.enum(["allowed", "denied"]),
        by: text,
        reason: text,
        rule: text.exactOptional(),
      }),
    barrier,
  ),
  /** The current step of a coordinated worker. */
  event("troupe.subagent_step", () =>
    z.object({ stepId: text, title: text, status: text, note: text.exactOptional() }),
  ),
  /** Damage that was found in this log on open: the lost part, and the file that holds its bytes. */
  event(
    "troupe.log_damage",
    () =>
      z.object({
        damage: z.array(
          z.object({
            kind: text,
            line: count,
            offset: count,
            bytes: count,
            message: text,
            savedTo: text.exactOptional(),
          }),
        ),
      }),
    barrier,
  ),
  /** The memory of the session: the store of the facts and their number. */
  event("troupe.memory_recalled", () =>
    z.object({ store: z.enum(["local", "repository-file", "service", "injected"]), count }),
  ),
  /** The result of a consolidation of the context board. Its change can be undone by its number. */
  event(
    "troupe.consolidation",
    () =>
      z.object({
        outcome: z.enum(["applied", "unchanged", "refused", "dropped"]),
        change: count.exactOptional(),
        /** The session that the learnings come from. */
        sessionId: text,
        added: z.array(text),
        replaced: z.array(text),
        pruned: z.array(text),
        /** The entries among these that were removed to make room. */
        prunedByRule: z.array(text),
        reason: text.exactOptional(),
      }),
    barrier,
  ),
  /** Whether a process was started to consolidate the board when the session ended, and if not, why. */
  event(
    "troupe.shutdown_consolidation",
    () =>
      z.object({
        outcome: z.enum(["spawned", "below_min_turns", "detached_child", "failed"]),
        pid: count.exactOptional(),
        reason: text.exactOptional(),
      }),
    barrier,
  ),
  /**
   * A rewind: the log is read as if it ended before `upToEventId`. With `restores`, it is read as before that other
   * rewind. Hidden events stay in the log. See `src/store/log/rewound.ts`.
   */
  event(
    "troupe.rewound",
    () =>
      z.object({
        upToEventId: text,
        /** The last event that stays. */
        lastEventId: text.exactOptional(),
        eventsRemoved: count,
        restores: text.exactOptional(),
        /** The files that it restores, by the name under which `checkpoints/` has the changes. */
        files: text.exactOptional(),
        /** Prompts that were due or cancelled since then are not scheduled again. */
        endedSchedules: z.array(count).exactOptional(),
      }),
    barrier,
  ),
  /** `auto`: a generated title. A name that the user chose takes precedence. */
  event("troupe.session_named", () => z.object({ name: text, auto: z.boolean().exactOptional() })),
] as const;
