/** Events that follow from others, or from a client's call. Only clients of the server receive them; none is stored. */
import * as z from "zod";
import { Attachment, count, ephemeral, event, text } from "./define-event.ts";

const byServer = () => z.object({ serverName: text });

export const derivedEvents = [
  event(
    "subagent.configured",
    () => z.object({ model: text, multiTurn: z.boolean(), reasoningEffort: text.exactOptional() }),
    ephemeral,
  ),
  event("session.mcp_server_removed", byServer, ephemeral),
  event("session.mcp_server_needs_reconnect", byServer, ephemeral),
  event(
    "session.binary_asset",
    () =>
      z.object({
        assetId: text,
        type: z.enum(["image", "resource"]),
        mimeType: text,
        byteLength: count,
        /** Base64. */
        data: text,
        description: text.exactOptional(),
      }),
    ephemeral,
  ),
  event(
    "ui.ephemeral_query",
    () =>
      z.object({
        requestId: text,
        phase: z.enum(["started", "chunk", "completed", "failed", "aborted"]),
        chunk: text.exactOptional(),
        answer: text.exactOptional(),
        error: text.exactOptional(),
      }),
    ephemeral,
  ),
  event("session.extensions.attachments_pushed", () => z.object({ attachments: z.array(Attachment) }), ephemeral),
  event(
    "session.managed_settings_resolved",
    () =>
      z.object({
        source: z.enum(["none"]),
        serverManaged: z.boolean(),
        deviceManaged: z.boolean(),
        failClosed: z.boolean(),
        bypassPermissionsDisabled: z.boolean(),
        managedKeys: z.array(text),
      }),
    ephemeral,
  ),
] as const;
