/**
 * Intercepts task messages before the library sees them. The library rejects results of the kind `task` (the extension
 * of 2026-07-28). It also drops progress handlers once a call is answered; for a call made as a task that is at its
 * start.
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
  /** The key under which a task passes through the library; no server can know it. */
  readonly #key = `troupe/${randomUUID()}`;
  readonly #watchers = new Map<string, (progress: TaskProgress) => void>();

  /** Call this once, when the library listens. */
  listen(transport: Transport): void {
    const pass = transport.onmessage;
    transport.onmessage = (message, extra) => {
      if (this.#isTaken(message)) return;
      pass?.(this.#carried(message) as typeof message, extra);
    };
  }

  /** Returns a token to send with a call, and reports its progress until stopped. */
  watch(onProgress: (progress: TaskProgress) => void): { readonly token: string; stop(): void } {
    const token = `troupe-${randomUUID()}`;
    this.#watchers.set(token, onProgress);
    return { token, stop: () => void this.#watchers.delete(token) };
  }

  /** Returns the task that a server created from a call, if any. */
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

  /** Passes a task on as a result without content, which the library accepts. */
  #carried(message: unknown): unknown {
    if (!isObject(message) || !isObject(message.result) || message.result.resultType !== "task") return message;
    const { resultType: _, _meta, ...task } = message.result;
    const meta = { ...(isObject(_meta) && _meta), [this.#key]: task };
    return { ...message, result: { resultType: "complete", content: [], _meta: meta } };
  }
}
