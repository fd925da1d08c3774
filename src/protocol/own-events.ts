/** Events that the wire does not know: ours alone, with the prefix `troupe.`. */
import * as z from "zod";
import { Attachment, barrier, count, ephemeral, event, JsonValue, Tokens, text } from "./define-event.ts";

export const ownEvents = [
  /** What one model call used and cost; kept, so that totals survive a kill. `costUsd` null = price unknown. */
  event("troupe.usage", () =>
    Tokens.extend({
      turnId: text,
      provider: text,
      model: text,
      /** Web searches that the provider made; absent when it made none. */
      webSearches: count.exactOptional(),
      costUsd: count.nullable(),
      durationMs: count,
      /** Requests sent for this call. Their sum over a log is the number of requests that the session sent. */
      attempts: count,
      estimated: z.boolean().exactOptional(),
      /** Only in snapshots: the number of calls that this event stands for. */
      calls: count.exactOptional(),
    }),
  ),
  /**
   * The state of one agent, in place of the events that led to it. It exists in snapshots and in memory only: no log has
   * it, and no listener is told of it.
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
      /** Counts of events that are not in the list any more. */
      dropped: z.object({ turns: count, userMessages: count, ofPerson: count }),
    }),
  ),
  /** Text of a reply that broke off and was asked for again; kept for people, never shown to the model. */
  event("troupe.partial_message", () => z.object({ turnId: text, messageId: text, content: text, reason: text })),
  /** A message accepted while the agent was busy: from here on it is not lost, whenever its turn comes. */
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
        /** The rules of the command that made the message: its only tools, its agents, and what it must have done. */
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
  /** A hook changed what a call asks for, before it ran: the model sees the call as it was run. */
  event("troupe.call_changed", () => z.object({ toolCallId: text, arguments: JsonValue })),
  /** A call waits for the answer to a question that is told to clients and not kept: how to find it again. */
  event("troupe.question", () =>
    z.object({ requestId: text, kind: z.enum(["user_input", "exit_plan_mode"]), toolCallId: text }),
  ),
  /** A model was chosen for the session, or another way to use it: how to find it again. */
  event("troupe.model_chosen", () =>
    z.object({
      reference: text,
      reasoningEffort: text.exactOptional(),
      reasoningSummary: z.enum(["none", "concise", "detailed"]).exactOptional(),
    }),
  ),
  event("troupe.message_withdrawn", () => z.object({ messageId: text }), barrier),
  /** A model call failed and is tried again after a wait, for those who watch. */
  event(
    "troupe.retry",
    () => z.object({ attempt: count, delayMs: count, reason: text, statusCode: count.exactOptional() }),
    ephemeral,
  ),
  /** A model call is held back before it is sent: by a rate limit, an outage, or too many calls at the same time. */
  event(
    "troupe.model_wait",
    () =>
      z.object({
        reason: z.enum(["rate_limit", "outage", "concurrency"]),
        /** Calls that are held back, this one included. */
        waiting: count,
        /** Until the next try; absent while that depends on other calls. */
        delayMs: count.exactOptional(),
      }),
    ephemeral,
  ),
  /** A call waits for a file that another agent is changing, or no longer does (`isOver`). */
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
  /** What a call wanted to touch was allowed or denied, by what, and why. */
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
  /** What a coordinated worker is at, for those who watch. */
  event("troupe.subagent_step", () =>
    z.object({ stepId: text, title: text, status: text, note: text.exactOptional() }),
  ),
  /** Damage found in this log on open: what was lost, and where its bytes were put. */
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
  /** The memory that the session has: the store of the facts and their number. */
  event("troupe.memory_recalled", () =>
    z.object({ store: z.enum(["local", "repository-file", "service", "injected"]), count }),
  ),
  /** What became of a consolidation of the context board: its change can be taken back by its number. */
  event(
    "troupe.consolidation",
    () =>
      z.object({
        outcome: z.enum(["applied", "unchanged", "refused", "dropped"]),
        change: count.exactOptional(),
        /** Whose learnings they are. */
        sessionId: text,
        added: z.array(text),
        replaced: z.array(text),
        pruned: z.array(text),
        /** Of these, what had to go to make room. */
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
  /** `auto`: a title that somebody found for it; a person's name for it beats it. */
  /**
   * From here on the log reads as if nothing had been said from `upToEventId` on; with `restores`, as it read before
   * that other rewind. What is out of view stays in the log. See `src/store/log/rewound.ts`.
   */
  event(
    "troupe.rewound",
    () =>
      z.object({
        upToEventId: text,
        /** The last one that stays. */
        lastEventId: text.exactOptional(),
        eventsRemoved: count,
        restores: text.exactOptional(),
        /** The files it brings back, by the name under which `checkpoints/` has the changes. */
        files: text.exactOptional(),
        /** Prompts that were due or cancelled since are not scheduled again. */
        endedSchedules: z.array(count).exactOptional(),
      }),
    barrier,
  ),
  event("troupe.session_named", () => z.object({ name: text, auto: z.boolean().exactOptional() })),
] as const;
