/** Canvases, which clients show beside the conversation. Other clients or the agent open them. */
import * as z from "zod";
import { ephemeral, event, JsonValue, text } from "./define-event.ts";

const whose = { instanceId: text, extensionId: text, canvasId: text };

const Action = z.object({ name: text, description: text.exactOptional(), inputSchema: JsonValue.exactOptional() });

const Declared = z.object({
  extensionId: text,
  extensionName: text.exactOptional(),
  canvasId: text,
  displayName: text,
  description: text,
  icon: text.exactOptional(),
  inputSchema: JsonValue.exactOptional(),
  actions: z.array(Action).exactOptional(),
});

export const OpenCanvas = z.object({
  ...whose,
  extensionName: text.exactOptional(),
  icon: text.exactOptional(),
  title: text.exactOptional(),
  status: text.exactOptional(),
  url: text.exactOptional(),
  input: JsonValue.exactOptional(),
});

export const canvasEvents = [
  event("session.canvas.registry_changed", () => z.object({ canvases: z.array(Declared) }), ephemeral),
  event("session.canvas.opened", () => OpenCanvas, ephemeral),
  event("session.canvas.closed", () => z.object(whose), ephemeral),
  /** Its client disconnected and may return; `session.canvas.opened` follows then. */
  event("session.canvas.unavailable", () => z.object(whose), ephemeral),
  /** The data to reopen it in a resumed session, until `session.canvas.removed`. */
  event("session.canvas.recorded", () =>
    z.object({ ...whose, title: text.exactOptional(), input: JsonValue.exactOptional() }),
  ),
  event("session.canvas.removed", () => z.object(whose)),
] as const;
