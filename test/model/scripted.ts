import type { Stamp } from "../../src/lib/stamp.ts";
import { ModelError, type ModelErrorDetails } from "../../src/model/model-error.ts";
import { defineProvider, type ModelEvent, type ModelRequest, type Provider } from "../../src/model/provider.ts";

export const request: ModelRequest = { model: "m", system: "", messages: [], tools: [], stream: true };

export function modelError(kind: ModelErrorDetails["kind"], details: Partial<ModelErrorDetails> = {}): ModelError {
  return new ModelError(`acme: ${kind}`, { kind, provider: "acme", ...details });
}

export const done: readonly ModelEvent[] = [
  { type: "text", delta: "ok" },
  { type: "end", stop: "done" },
];

export function failing(error: ModelError, ...before: ModelEvent[]): readonly ModelEvent[] {
  return [...before, { type: "end", stop: "error", error }];
}

export interface Scripted extends Provider {
  /** When each request began, on the clock given. */
  readonly starts: number[];
}

/** Answers request n with `answer(n, now)`, counted from 1, after `latencyMs` on the clock. */
export function scripted(
  stamp: Stamp,
  answer: (request: number, now: number) => readonly ModelEvent[],
  latencyMs = 0,
): Scripted {
  const starts: number[] = [];
  const provider = defineProvider({
    id: "acme",
    async *stream(_request, signal) {
      const now = stamp.monotonic();
      starts.push(now);
      const events = answer(starts.length, now);
      if (latencyMs > 0) await stamp.sleep(latencyMs, signal);
      yield* events;
    },
  });
  return { ...provider, starts };
}

export async function collect(stream: AsyncIterable<ModelEvent>): Promise<ModelEvent[]> {
  const events: ModelEvent[] = [];
  for await (const event of stream) events.push(event);
  return events;
}
