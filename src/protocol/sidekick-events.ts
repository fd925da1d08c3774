/** Agents that start by themselves beside the main one, and what they leave in its inbox. */
import * as z from "zod";
import { barrier, count, event, text } from "./define-event.ts";

export const sidekickEvents = [
  /** Something happened for which the sidekick starts; one that is at work is told of it instead. */
  event("troupe.sidekick_triggered", () =>
    z.object({
      name: text,
      trigger: z.enum(["user.message", "session.context_changed"]),
      /** The event that did it. */
      triggerId: text,
      model: text.exactOptional(),
    }),
  ),
  event("troupe.sidekick_ended", () =>
    z.object({
      name: text,
      /** `superseded`: something newer happened. `interrupted`: its process ended. */
      reason: z.enum(["finished", "superseded", "stopped", "limit", "error", "interrupted"]),
      sent: count,
      error: text.exactOptional(),
    }),
  ),
  /** Stored before its sender is told that it was sent, and the main agent is notified of it. */
  event(
    "troupe.inbox_entry",
    () =>
      z.object({
        entryId: text,
        senderName: text,
        senderType: text,
        summary: text,
        content: text,
        triggerId: text.exactOptional(),
      }),
    barrier,
  ),
] as const;
