/** What editors send, as far as it is read; the rest of a message is left alone. */
import * as z from "zod";

const KeyValue = z.object({ name: z.string(), value: z.string() });

const ServerEntry = z.union([
  z.object({
    type: z.enum(["http", "sse"]),
    name: z.string(),
    url: z.string(),
    headers: z.array(KeyValue).default([]),
  }),
  z.object({
    name: z.string(),
    command: z.string(),
    args: z.array(z.string()).default([]),
    env: z.array(KeyValue).default([]),
  }),
]);
export type ServerEntry = z.infer<typeof ServerEntry>;

const Block = z.union([
  z.object({ type: z.literal("text"), text: z.string() }),
  z.object({ type: z.literal("image"), data: z.string(), mimeType: z.string() }),
  z.object({ type: z.literal("resource_link"), uri: z.string(), name: z.string() }),
  z.object({
    type: z.literal("resource"),
    resource: z.object({ uri: z.string(), text: z.string().optional() }),
  }),
]);
export type Block = z.infer<typeof Block>;

export const initializeParams = () => z.looseObject({ protocolVersion: z.number() });
export const sessionParams = () => z.looseObject({ sessionId: z.string() });
export const newParams = () => z.looseObject({ cwd: z.string(), mcpServers: z.array(ServerEntry).default([]) });
export const loadParams = () => newParams().extend({ sessionId: z.string() });
export const promptParams = () => sessionParams().extend({ prompt: z.array(Block).min(1) });
export const modeParams = () => sessionParams().extend({ modeId: z.enum(["interactive", "plan", "autopilot"]) });

export interface Place {
  readonly cwd: string;
  readonly mcpServers: readonly ServerEntry[];
}
