/** A model provider that counts its requests by its own clock. */

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

/** Appears in its settings. No row may contain it. */
export const PLANTED_KEY = "sk-planted-key-0123456789abcdef";

export interface CountingProvider {
  /** For `providers.json`: its model is `counted/m`. */
  readonly settings: object;
  /** Arrival times of all requests. */
  readonly arrivals: number[];
  /** Largest number of requests at a time. */
  most: number;
  /** Decides about each request: a number is the status of a refusal. */
  answer: (index: number) => { readonly status?: number; readonly text?: string; readonly delayMs?: number };
  /** Returns the largest number of requests in any window of this length. */
  busiest(windowMs: number): number;
  reset(): void;
  close(): void;
}

/** Speaks the completions wire: each reply has 900 input tokens and 100 output tokens. */
export async function countingProvider(): Promise<CountingProvider> {
  let running = 0;
  const server: Server = createServer((request, response) => {
    request.resume().on("end", async () => {
      if (!request.url?.endsWith("/chat/completions")) return void response.writeHead(404).end();
      provider.most = Math.max(provider.most, ++running);
      const {
        status,
        text = "all done",
        delayMs = 50,
      } = provider.answer(provider.arrivals.push(performance.now()) - 1);
      await new Promise((done) => setTimeout(done, delayMs));
      running--;
      if (status !== undefined) {
        response.writeHead(status, { "retry-after": "1", "content-type": "application/json" });
        return void response.end(JSON.stringify({ error: { message: "slow down" } }));
      }
      response.writeHead(200, { "content-type": "text/event-stream" });
      const chunk = { choices: [{ index: 0, delta: { role: "assistant", content: text }, finish_reason: null }] };
      const usage = { prompt_tokens: 900, completion_tokens: 100, total_tokens: 1_000 };
      const end = { choices: [{ index: 0, delta: {}, finish_reason: "stop" }], usage };
      response.end(`data: ${JSON.stringify(chunk)}\n\ndata: ${JSON.stringify(end)}\n\ndata: [DONE]\n\n`);
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const models = { m: { price: { input: 1, output: 1 }, maxOutputTokens: 1_000 } };
  const provider: CountingProvider = {
    settings: { counted: { baseUrl, apiKey: PLANTED_KEY, models } },
    arrivals: [],
    most: 0,
    answer: () => ({}),
    busiest: (windowMs) =>
      Math.max(
        0,
        ...provider.arrivals.map((from) => provider.arrivals.filter((at) => at >= from && at < from + windowMs).length),
      ),
    reset() {
      provider.arrivals.splice(0);
      provider.most = 0;
      provider.answer = () => ({});
    },
    close: () => void server.close().closeAllConnections(),
  };
  return provider;
}
