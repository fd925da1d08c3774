/** Model requests that a client forwards; see `../../model-tunnel/model-tunnel.ts`. */
import * as z from "zod";
import { type MethodTable, method, noParams } from "../method.ts";

const requestId = z.string();

export const modelTunnelMethods: MethodTable = {
  "llmInference.setProvider": method(noParams, (_, { hub, connection }) => {
    hub.tunnel.hold(connection);
    return { success: true };
  }),
  "llmInference.httpResponseStart": method(
    () =>
      z.object({
        requestId,
        /** 101: the WebSocket is open. */
        status: z.int().min(101).max(599),
        statusText: z.string().optional(),
        headers: z.record(z.string(), z.array(z.string())).default({}),
      }),
    ({ requestId: id, ...head }, { hub }) => ({ accepted: hub.tunnel.begin(id, head) }),
  ),
  "llmInference.httpResponseChunk": method(
    () =>
      z.object({
        requestId,
        data: z.string().default(""),
        binary: z.boolean().optional(),
        end: z.boolean().optional(),
        error: z.object({ message: z.string() }).optional(),
      }),
    async ({ requestId: id, ...part }, { hub }) => ({ accepted: await hub.tunnel.add(id, part) }),
  ),
};
