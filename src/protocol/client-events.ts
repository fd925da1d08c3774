/** Changes to the clients of a session, and requests to them beside `request-events`. */
import * as z from "zod";
import { count, ephemeral, event, text } from "./define-event.ts";

const Command = z.object({ name: text, description: text.exactOptional() });

const PermissionMode = z.enum(["manual", "assisted", "allow-all"]);

export const clientEvents = [
  /** The fields of SDK 1.0.14 and of SDK 1.0.11. */
  event("session.permissions_changed", () =>
    z.object({
      mode: PermissionMode,
      previousMode: PermissionMode,
      allowAllPermissions: z.boolean(),
      previousAllowAllPermissions: z.boolean(),
    }),
  ),
  event("commands.changed", () => z.object({ commands: z.array(Command) }), ephemeral),
  event("command.queued", () => z.object({ requestId: text, command: text }), ephemeral),
  event(
    "command.execute",
    () => z.object({ requestId: text, commandName: text, command: text, args: text }),
    ephemeral,
  ),
  event("command.completed", () => z.object({ requestId: text }), ephemeral),
  event(
    "capabilities.changed",
    () =>
      z.object({
        ui: z
          .object({
            elicitation: z.boolean().exactOptional(),
            mcpApps: z.boolean().exactOptional(),
            canvases: z.boolean().exactOptional(),
          })
          .exactOptional(),
      }),
    ephemeral,
  ),
  event(
    "session_limits_exhausted.requested",
    () => z.object({ requestId: text, maxAiCredits: count, usedAiCredits: count }),
    ephemeral,
  ),
  event(
    "session_limits_exhausted.completed",
    () =>
      z.object({
        requestId: text,
        response: z.object({
          action: z.enum(["add", "set", "unset", "cancel"]),
          additionalAiCredits: count.exactOptional(),
          maxAiCredits: count.exactOptional(),
        }),
      }),
    ephemeral,
  ),
  event("session.session_limits_changed", () =>
    z.object({ sessionLimits: z.object({ maxAiCredits: count.exactOptional() }).nullable() }),
  ),
  /** The session's cost so far, in billionths of a credit. Emitted only if it is known. */
  event("session.usage_checkpoint", () => z.object({ totalNanoAiu: count })),
  event(
    "auto_mode_switch.requested",
    () => z.object({ requestId: text, errorCode: text.exactOptional(), retryAfterSeconds: count.exactOptional() }),
    ephemeral,
  ),
  event(
    "auto_mode_switch.completed",
    () => z.object({ requestId: text, response: z.enum(["yes", "yes_always", "no"]) }),
    ephemeral,
  ),
] as const;
