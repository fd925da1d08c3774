/** Sidekicks, which start by themselves beside the main agent, and their entries in its inbox. */
import * as z from "zod";
import { barrier, count, event, text } from "./define-event.ts";

export const sidekickEvents = [
  /** A trigger for the sidekick occurred. It starts, or is notified if it is already running. */
  event("troupe.sidekick_triggered", () =>
    z.object({
      name: text,
      trigger: z.enum(["user.message", "session.context_changed"]),
      /** The event that triggered it. */
      triggerId: text,
      model: text.exactOptional(),
    }),
  ),
  event("troupe.sidekick_ended", () =>
    z.object({
      name: text,
      /** `superseded`: a newer trigger occurred. `interrupted`: its process ended. */
      reason: z.enum(["finished", "superseded", "stopped", "limit", "error", "interrupted"]),
      sent: count,
      error: text.exactOptional(),
    }),
  ),
  /** Stored before its sender receives the confirmation and before the main agent is notified. */
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
