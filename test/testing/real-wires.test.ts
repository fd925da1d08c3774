/** The wires that speak to real providers, speaking to the model server: both sides must mean the same. */
import { describe, expect, it } from "vitest";
import type { ModelEvent, ModelRequest, Provider } from "../../src/model/provider.ts";
import { anthropicMessages } from "../../src/model/wire/anthropic/anthropic.ts";
import type { Endpoint } from "../../src/model/wire/endpoint.ts";
import { openaiChat } from "../../src/model/wire/openai/openai-chat.ts";
import { openaiResponses } from "../../src/model/wire/openai/openai-responses.ts";
import {
  breaksOff,
  calls,
  callsWithText,
  fails,
  fauxModel,
  type Moves,
  modelServer,
  rateLimited,
  says,
  thinks,
  together,
} from "../../src/testing/index.ts";

const usage = { inputTokens: 100, outputTokens: 20, cacheReadTokens: 30, cacheWriteTokens: 0, reasoningTokens: 0 };

const replies: [string, Moves][] = [
  ["text with usage", says("Grüße 😀", { chunkSize: 2, usage })],
  ["text and calls", together(says("I look."), calls(["view", { path: "a" }], ["grep", { pattern: "ü" }]))],
  ["reasoning and text", thinks("hm", says("so"))],
  ["argument text that is no JSON", callsWithText("view", '{"path":')],
  [
    "a reply cut short by its limit",
    [
      { type: "text", delta: "lo" },
      { type: "end", stop: "length" },
    ],
  ],
  ["a stream that breaks off", breaksOff("half")],
  ["a refused key", fails(401)],
  ["a bad request", fails(400)],
  ["a rate limit", rateLimited(2000)],
  ["a server failure", fails(503)],
  ["a failure of the network", fails("network")],
  ["a failure after some text", together(breaksOff("half"), fails("network"))],
];

const wires: [string, (endpoint: Endpoint) => Provider][] = [
  ["chat completions", (endpoint) => openaiChat(endpoint)],
  ["responses", (endpoint) => openaiResponses(endpoint)],
  ["messages", (endpoint) => anthropicMessages(endpoint)],
];

describe.each(wires)("the %s wire receives from the model server what the faux model says", (_, connect) => {
  it.each(replies)("the model server sends on a wire what the faux model sends: %s", async (_name, moves) => {
    await using server = await modelServer({ steps: [moves] });
    const provider = connect({
      id: "faux",
      baseUrl: server.url.concat("/v1"),
      headers: async () => ({ authorization: "Bearer test" }),
    });
    const heard = await summary(provider);
    const expected = await summary(fauxModel(moves));
    expect(heard).toEqual(expected);
    server.assertSpent();
  });
});

/** What matters of a reply, whatever way it was cut into deltas. */
async function summary(provider: Provider): Promise<object> {
  const request: ModelRequest = {
    model: "m",
    system: "You are troupe.",
    messages: [{ role: "user", content: "go" }],
    tools: [{ name: "view", description: "Views.", parameters: { type: "object", properties: {} } }],
    stream: true,
  };
  const told = { text: "", reasoning: "", calls: [] as unknown[], end: {} };
  for await (const event of provider.stream(request, AbortSignal.timeout(60_000))) {
    if (event.type === "text") told.text += event.delta;
    if (event.type === "reasoning") told.reasoning += event.delta;
    if (event.type === "call") {
      const { toolCallId, name, arguments: args, argumentsError } = event.call;
      told.calls.push(argumentsError === undefined ? { toolCallId, name, args } : { toolCallId, name, bad: true });
    }
    if (event.type === "end") told.end = endOf(event);
  }
  return told;
}

function endOf(end: Extract<ModelEvent, { type: "end" }>): object {
  const { kind, statusCode, retryAfterMs } = end.error ?? {};
  // The messages API cannot leave usage out.
  const used = end.usage && end.usage.inputTokens > 0 ? end.usage : undefined;
  return { stop: end.stop, usage: used, kind, statusCode, retryAfterMs };
}
