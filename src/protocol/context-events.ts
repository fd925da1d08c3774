/** The context usage of an agent, and the steps that reduce it. */
import * as z from "zod";
import { barrier, count, ephemeral, event, text } from "./define-event.ts";

const Trigger = z.enum(["threshold", "context_limit_retry", "manual", "memory_pressure", "model_switch"]);
export type CompactionTrigger = z.infer<typeof Trigger>;

const breakdown = {
  systemTokens: count.exactOptional(),
  conversationTokens: count.exactOptional(),
  toolDefinitionsTokens: count.exactOptional(),
};

export const contextEvents = [
  event(
    "session.usage_info",
    () =>
      z.object({
        currentTokens: count,
        messagesLength: count,
        tokenLimit: count,
        ...breakdown,
        isInitial: z.boolean().exactOptional(),
      }),
    ephemeral,
  ),
  event("session.compaction_start", () =>
    z.object({
      ...breakdown,
      currentTokens: count.exactOptional(),
      tokenLimit: count.exactOptional(),
      model: text.exactOptional(),
      trigger: Trigger.exactOptional(),
    }),
  ),
  /**
   * With `success`, the first `messagesRemoved + 1` messages of the conversation become one message. It consists of the
   * user's messages among them and of `summaryContent`. This event contains all data needed for that.
   */
  event(
    "session.compaction_complete",
    () =>
      z.object({
        success: z.boolean(),
        error: text.exactOptional(),
        statusCode: count.exactOptional(),
        trigger: Trigger.exactOptional(),
        customInstructions: text.exactOptional(),
        preCompactionTokens: count.exactOptional(),
        postCompactionTokens: count.exactOptional(),
        preCompactionMessagesLength: count.exactOptional(),
        messagesRemoved: count.exactOptional(),
        tokensRemoved: count.exactOptional(),
        summaryContent: text.exactOptional(),
        checkpointNumber: count.exactOptional(),
        checkpointPath: text.exactOptional(),
        requestId: text.exactOptional(),
        ...breakdown,
        tokenLimit: count.exactOptional(),
        compactionTokensUsed: z
          .object({
            inputTokens: count.exactOptional(),
            outputTokens: count.exactOptional(),
            cacheReadTokens: count.exactOptional(),
            cacheWriteTokens: count.exactOptional(),
            duration: count.exactOptional(),
            model: text.exactOptional(),
          })
          .exactOptional(),
      }),
    barrier,
  ),
  /** The main agent starts afresh: earlier messages stay in the log, but its model no longer sees them. */
  event(
    "session.context_cleared",
    () => z.object({ messagesCleared: count, initialMessage: text.exactOptional() }),
    barrier,
  ),
  /** History was rewound to before an event. */
  event("session.snapshot_rewind", () => z.object({ upToEventId: text, eventsRemoved: count }), ephemeral),
  /** Parts of a request were dropped to make it fit. The conversation itself is unchanged. */
  event("session.truncation", () =>
    z.object({
      performedBy: text,
      tokenLimit: count,
      preTruncationTokensInMessages: count,
      preTruncationMessagesLength: count,
      postTruncationTokensInMessages: count,
      postTruncationMessagesLength: count,
      tokensRemovedDuringTruncation: count,
      messagesRemovedDuringTruncation: count,
    }),
  ),
] as const;
