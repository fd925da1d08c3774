/** Reads the event stream as a browser does. */
import type { SessionEvent } from "../../src/protocol/event.ts";
import type { WebStage } from "./stage.ts";

interface Received {
  readonly kind: string;
  readonly id: number;
  readonly data: {
    readonly events?: readonly SessionEvent[];
    readonly rows?: readonly { readonly id: string }[];
    readonly problem?: string;
  };
}

export interface TestStream extends AsyncDisposable {
  readonly all: Received[];
  /** Stored events, in the order of their arrival. */
  events(): SessionEvent[];
  last(): number;
  until(isThere: (stream: TestStream) => boolean): Promise<void>;
}

export async function readStream(stage: WebStage, query: string, lastEventId?: number): Promise<TestStream> {
  const stop = new AbortController();
  const response = await fetch(`${stage.origin}/events?${query}`, {
    signal: stop.signal,
    headers: {
      ...(await stage.login()),
      ...(lastEventId !== undefined && { "last-event-id": String(lastEventId) }),
    },
  });
  const all: Received[] = [];
  const waiting = new Set<() => void>();
  const reading = (async () => {
    let text = "";
    for await (const piece of response.body ?? []) {
      text += Buffer.from(piece).toString("utf8");
      for (let end = text.indexOf("\n\n"); end !== -1; end = text.indexOf("\n\n")) {
        const fields = new Map(
          text
            .slice(0, end)
            .split("\n")
            .map((line) => [line.slice(0, line.indexOf(": ")), line.slice(line.indexOf(": ") + 2)]),
        );
        text = text.slice(end + 2);
        const data = fields.get("data");
        if (data !== undefined)
          all.push({ kind: fields.get("event") ?? "", id: Number(fields.get("id") ?? -1), data: JSON.parse(data) });
      }
      for (const look of waiting) look();
    }
  })().catch(() => undefined);
  const stream: TestStream = {
    all,
    events: () => all.flatMap(({ data }) => data.events ?? []).filter(({ ephemeral }) => ephemeral !== true),
    last: () => all.findLast(({ kind }) => kind === "events")?.id ?? 0,
    until: (isThere) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error(`Not received: ${JSON.stringify(all).slice(-2_000)}`)), 30_000);
        const look = (): void => {
          if (!isThere(stream)) return;
          clearTimeout(timer);
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
    async [Symbol.asyncDispose]() {
      stop.abort();
      await reading;
    },
  };
  return stream;
}
