import { describe, expect, test } from "vitest";
import type { Provider } from "../../src/model/provider.ts";
import type { Endpoint } from "../../src/model/wire/endpoint.ts";
import { openaiChat } from "../../src/model/wire/openai/openai-chat.ts";
import { openaiResponses } from "../../src/model/wire/openai/openai-responses.ts";
import type { Message } from "../../src/protocol/message.ts";
import { dialectAt } from "./dialect-at.ts";
import { collect, placeWith, request } from "./support.ts";

const long = `function-call-${"0123456789-".repeat(6)}`;
const ids = ["abcDEF123", "call_of_another_model", long];

/** The ids of the calls and of their results in a request with these calls in its history. */
async function sentIds(
  wire: (endpoint: Endpoint) => Provider,
  baseUrl: string,
): Promise<{ calls: string[]; results: string[] }> {
  let body = "";
  const endpoint = placeWith(
    (init) => {
      body = String(init.body);
      return new Response("{}");
    },
    { baseUrl, ...dialectAt(baseUrl) },
  );
  const messages: Message[] = [
    ...request.messages,
    { role: "assistant", content: "", calls: ids.map((toolCallId) => ({ toolCallId, name: "view", arguments: {} })) },
    ...ids.map((toolCallId): Message => ({ role: "tool", toolCallId, content: "Done.", isError: false })),
  ];
  await collect(wire(endpoint), { ...request, messages });
  const all = [...body.matchAll(/"(?:id|call_id|tool_call_id)":"([^"]*)"/g)].map(([, id = ""]) => id);
  return { calls: all.slice(0, ids.length), results: all.slice(ids.length) };
}

describe("the ids of calls that another model made", () => {
  test.each([
    ["Mistral, which takes nine letters and digits", openaiChat, "https://api.mistral.ai/v1", /^[a-zA-Z0-9]{9}$/],
    ["OpenAI chat, which takes 40 characters", openaiChat, "https://api.openai.com/v1", /^.{1,40}$/],
    ["the responses wire, which takes 64 characters", openaiResponses, "https://api.openai.com/v1", /^.{1,64}$/],
  ])("call ids of another model are changed to fit %s", async (_name, wire, baseUrl, fits) => {
    const { calls, results } = await sentIds(wire, baseUrl);
    expect(calls).toHaveLength(3);
    expect(calls.filter((id) => !fits.test(id))).toEqual([]);
    expect(new Set(calls).size).toBe(3);
    expect(results).toEqual(calls);
    expect(calls[0]).toBe(ids[0]);
  });

  test("call ids of another model are unchanged for other servers", async () => {
    expect((await sentIds(openaiChat, "https://models.example.com/v1")).calls).toEqual(ids);
  });
});
