/**
 * Messages about tasks that the library keeps to itself: it refuses results of the kind `task` (the extension of
 * 2026-07-28), and forgets who waits for progress once a call is answered, which for a call made as a task is at its
 * beginning. They are read before the library sees them.
 */
import { randomUUID } from "node:crypto";
import type { Transport } from "@modelcontextprotocol/client";
import { isObject } from "../../../lib/json.ts";
import { cleanLine } from "../bounds.ts";

export interface TaskProgress {
  readonly progress: number;
  readonly total?: number;
  readonly message?: string;
}

export class TaskMessages {
  /** Under which a task travels through the library; no server can know it. */
  readonly #key = `troupe/${randomUUID()}`;
  readonly #watchers = new Map<string, (progress: TaskProgress) => void>();

  /** To be called once, when the library listens. */
  listen(transport: Transport): void {
    const pass = transport.onmessage;
    transport.onmessage = (message, extra) => {
      if (this.#isTaken(message)) return;
      pass?.(this.#carried(message) as typeof message, extra);
    };
  }

  /** A token to send with a call, and what it reports until it is no longer watched. */
  watch(onProgress: (progress: TaskProgress) => void): { readonly token: string; stop(): void } {
    const token = `troupe-${randomUUID()}`;
    this.#watchers.set(token, onProgress);
    return { token, stop: () => void this.#watchers.delete(token) };
  }

  /** The task that a server made of a call, if it did. */
  taskIn(result: unknown): Readonly<Record<string, unknown>> | undefined {
    const task = isObject(result) && isObject(result._meta) ? result._meta[this.#key] : undefined;
    return isObject(task) ? task : undefined;
  }

  #isTaken(message: unknown): boolean {
    if (!isObject(message) || message.method !== "notifications/progress" || !isObject(message.params)) return false;
    const { progressToken, progress, total, message: words } = message.params;
    const watcher = typeof progressToken === "string" ? this.#watchers.get(progressToken) : undefined;
    if (!watcher) return false;
    if (typeof progress === "number" && Number.isFinite(progress)) {
      watcher({
        progress,
        ...(typeof total === "number" && Number.isFinite(total) && { total }),
        ...(typeof words === "string" && { message: cleanLine(words) }),
      });
    }
    return true;
  }

  /** A task is handed on as a result without content, which the library lets through. */
  #carried(message: unknown): unknown {
    if (!isObject(message) || !isObject(message.result) || message.result.resultType !== "task") return message;
    const { resultType: _, _meta, ...task } = message.result;
    const meta = { ...(isObject(_meta) && _meta), [this.#key]: task };
    return { ...message, result: { resultType: "complete", content: [], _meta: meta } };
  }
}
