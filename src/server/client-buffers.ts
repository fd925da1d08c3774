import * as z from "zod";
import type { SessionProgram } from "../runtime/session-request.ts";
import type { ClientConnection } from "./connection.ts";

type TextBuffers = NonNullable<SessionProgram["buffers"]>;

const ANSWER_MS = 10_000;
const Held = z.object({ text: z.string().nullish() });
const Written = z.object({ written: z.boolean() });

/**
 * Reads unsaved editor texts from the session's client. Without a client, or without its answer, the file on disk is
 * used.
 */
export function clientBuffers(sessionId: string, holder: () => ClientConnection | undefined): TextBuffers {
  const ask = async <T>(method: string, params: object, how: { schema: z.ZodType<T>; signal: AbortSignal }) => {
    const { schema, signal } = how;
    const asking = holder()?.ask(method, { sessionId, ...params }, { signal, timeoutMs: ANSWER_MS });
    return asking?.then(schema.parse).catch(() => signal.throwIfAborted());
  };
  return {
    get isOffered() {
      return holder() !== undefined;
    },
    read: async (path, signal) => (await ask("textBuffer.read", { path }, { schema: Held, signal }))?.text ?? undefined,
    write: async (path, text, signal) =>
      (await ask("textBuffer.write", { path, text }, { schema: Written, signal }))?.written ?? false,
  };
}
