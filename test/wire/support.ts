import type { ModelError } from "../../src/model/model-error.ts";
import type { ModelEnd, ModelEvent, ModelRequest, Provider } from "../../src/model/provider.ts";
import type { Endpoint } from "../../src/model/wire/endpoint.ts";

export const request: ModelRequest = {
  model: "m-1",
  system: "Be brief.",
  messages: [{ role: "user", content: "Hello" }],
  tools: [],
  stream: true,
};

/** A place whose network is a function of the request's body. */
export function placeWith(
  respond: (init: RequestInit, url: string) => Response | Promise<Response>,
  more?: Partial<Endpoint>,
): Endpoint {
  return {
    id: "test",
    baseUrl: "http://127.0.0.1:9",
    headers: async () => ({ authorization: "Bearer secret-key-123" }),
    fetch: async (url, init) => respond(init ?? {}, String(url)),
    ...more,
  };
}

/** A place that answers every request with these bytes, in these pieces. */
export function placeSaying(pieces: Iterable<string | Uint8Array>, more?: Partial<Endpoint>): Endpoint {
  return placeWith(() => new Response(streamOf(pieces)), more);
}

export function streamOf(pieces: Iterable<string | Uint8Array>, then?: "stall" | "break"): ReadableStream<Uint8Array> {
  const iterator = pieces[Symbol.iterator]();
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>({
    pull(controller) {
      const { done, value } = iterator.next();
      if (!done) controller.enqueue(typeof value === "string" ? encoder.encode(value) : value);
      else if (then === "break") controller.error(Object.assign(new TypeError("terminated"), { code: "ECONNRESET" }));
      else if (then === undefined) controller.close();
      else return new Promise(() => {});
      return undefined;
    },
  });
}

/** Keeps the body of each request and answers with `reply`. */
export function recorder(reply: () => Response) {
  const bodies: unknown[] = [];
  const texts: string[] = [];
  const urls: string[] = [];
  const headers: Record<string, string>[] = [];
  const endpoint = placeWith((init, url) => {
    texts.push(String(init.body));
    bodies.push(JSON.parse(String(init.body)));
    urls.push(url);
    headers.push(Object.fromEntries(new Headers(init.headers)));
    return reply();
  });
  return { place: endpoint, bodies, texts, urls, headers };
}

export async function collect(
  provider: Provider,
  asked: ModelRequest = request,
  signal?: AbortSignal,
): Promise<ModelEvent[]> {
  const events: ModelEvent[] = [];
  for await (const event of provider.stream(asked, signal ?? new AbortController().signal)) events.push(event);
  return events;
}

export async function endOf(provider: Provider, asked: ModelRequest = request): Promise<ModelEnd> {
  const events = await collect(provider, asked);
  const last = events.at(-1);
  if (last?.type !== "end") throw new Error("no end");
  return last;
}

export async function errorOf(provider: Provider, asked: ModelRequest = request): Promise<ModelError> {
  const { error } = await endOf(provider, asked);
  if (!error) throw new Error("no error");
  return error;
}

/** Deltas that follow each other say the same however they are cut. */
export function joined(events: readonly ModelEvent[]): ModelEvent[] {
  const whole: ModelEvent[] = [];
  for (const event of events) {
    const last = whole.at(-1);
    const continues =
      (last?.type === "text" && event.type === "text") ||
      (last?.type === "reasoning" && event.type === "reasoning") ||
      (last?.type === "call_delta" && event.type === "call_delta" && last.toolCallId === event.toolCallId);
    if (continues) whole[whole.length - 1] = { ...last, delta: last.delta + event.delta };
    else whole.push(event);
  }
  return whole;
}

export function sse(...events: readonly object[]): string {
  return events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
}

/** With the `event:` line that Anthropic and the responses wire send. */
export function namedSse(...events: readonly { type: string }[]): string {
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
}
