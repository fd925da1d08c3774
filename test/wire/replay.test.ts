/** Data that a provider wants back with the next request survives the log and goes back to that provider alone. */
import { describe, expect, test } from "vitest";
import { openaiChat } from "../../src/model/wire/openai/openai-chat.ts";
import { dialectAt } from "./dialect-at.ts";
import { roundTrip } from "./round-trip.ts";
import { endOf, placeSaying, request, sse } from "./support.ts";

const chunk = (delta: object, finish_reason: string | null = null): object => ({
  choices: [{ index: 0, delta, finish_reason }],
});
const call = (index: number, id: string, more: object = {}): object => ({
  tool_calls: [{ index, id, type: "function", function: { name: "view", arguments: "{}" }, ...more }],
});
const signature = { google: { thought_signature: "c2lnbmF0dXJl" } };

describe("Gemini", () => {
  const baseUrl = "https://generativelanguage.googleapis.com/v1beta/openai";
  const place = { id: "gemini", baseUrl, ...dialectAt(baseUrl) };
  const asked = { model: "gemini-3.8-flash" };
  const stream = sse(
    chunk(call(0, "c1", { extra_content: signature })),
    chunk(call(1, "c2")),
    chunk({ role: "assistant" }, "tool_calls"),
  );

  test("Gemini gets the thought signature of a call back on that call", async () => {
    const { next } = await roundTrip({ wire: openaiChat, stream, place, asked });
    expect(next.messages).toMatchObject([
      {},
      {},
      { tool_calls: [{ id: "c1", extra_content: signature }, { id: "c2" }] },
      { tool_call_id: "c1" },
      { tool_call_id: "c2" },
    ]);
    expect(JSON.stringify(next).split("extra_content")).toHaveLength(2);
  });

  test("Gemini gets the signature of a text back on the message", async () => {
    const text = sse(chunk({ content: "Hello." }), chunk({ content: "", extra_content: signature }, "stop"));
    const { next } = await roundTrip({ wire: openaiChat, stream: text, place, asked });
    expect(next.messages).toMatchObject([{}, {}, { role: "assistant", content: "Hello.", extra_content: signature }]);
  });

  test("Gemini gets a substitute for the signature of calls that another model made", async () => {
    const foreign = sse(chunk(call(0, "c1")), chunk(call(1, "c2")), chunk({}, "tool_calls"));
    const { next } = await roundTrip({
      ...{ wire: openaiChat, stream: foreign, asked },
      ...{ place: { id: "other" }, second: { place } },
    });
    const skip = { google: { thought_signature: "skip_thought_signature_validator" } };
    expect(next.messages).toMatchObject([{}, {}, { tool_calls: [{ extra_content: skip }, { id: "c2" }] }, {}, {}]);
    expect(JSON.stringify(next).split("extra_content")).toHaveLength(2);
    const older = { model: "gemini-2.5-flash" };
    const { next: plain } = await roundTrip({ wire: openaiChat, stream: foreign, place, asked: older });
    expect(JSON.stringify(plain)).not.toContain("extra_content");
  });

  test("Gemini's signatures are not sent to another provider", async () => {
    const second = { place: { id: "other", baseUrl: "https://api.example.com/v1", chatDialect: { hosts: [] } } };
    const { next } = await roundTrip({ wire: openaiChat, stream, place, asked, second });
    expect(JSON.stringify(next)).not.toContain("extra_content");
    expect(JSON.stringify(next)).not.toContain("c2lnbmF0dXJl");
  });

  test("Gemini gets a signature back that stands on a message with calls", async () => {
    const signed = { google: { thought: true, ...signature.google } };
    const older = sse(chunk({ ...call(0, "c1"), extra_content: signed }), chunk({}, "tool_calls"));
    const { next } = await roundTrip({ wire: openaiChat, stream: older, place, asked });
    expect(next.messages).toMatchObject([{}, {}, { extra_content: signature, tool_calls: [{ id: "c1" }] }, {}]);
    expect(JSON.stringify(next)).not.toContain("skip_thought_signature_validator");
  });

  test("Gemini's answer is shown as an answer although it is marked as a thought", async () => {
    const signed = { google: { thought: true, ...signature.google } };
    const stream = JSON.stringify({
      choices: [{ message: { content: "It is noon.", extra_content: signed }, finish_reason: "stop" }],
    });
    const { message } = await roundTrip({ wire: openaiChat, stream, place, asked });
    expect(message.content).toBe("It is noon.");
    expect(message.reasoning?.text).toBeUndefined();
  });

  test.each([
    ["an unmarked answer", [chunk({ content: "Four." })]],
    ["the end of the thought in the same chunk", [chunk({ content: "</thought>Four." })]],
    [
      "a marked end",
      [chunk({ content: "</thought>Fo", extra_content: { google: { thought: true } } }), chunk({ content: "ur." })],
    ],
  ])("Gemini's thought summaries are shown as reasoning, before %s", async (_name, answer) => {
    const thoughts = sse(
      chunk({ content: "<thought>Let me ", extra_content: { google: { thought: true } } }),
      chunk({ content: "see.", extra_content: { google: { thought: true } } }),
      ...answer,
      chunk({}, "stop"),
    );
    const { message, next } = await roundTrip({ wire: openaiChat, stream: thoughts, place, asked });
    expect(message).toMatchObject({ content: "Four.", reasoning: { text: "Let me see." } });
    expect(JSON.stringify(next)).not.toContain("thought>");
  });
});

describe("OpenRouter", () => {
  const place = { id: "openrouter" };
  const text = (more: object): object => ({ type: "reasoning.text", index: 0, format: "anthropic-claude-v1", ...more });
  const sealed = { type: "reasoning.encrypted", data: "c2VhbGVk", id: "c1", format: "google-gemini-v1", index: 1 };
  const stream = sse(
    chunk({ reasoning: "Let me ", reasoning_details: [text({ text: "Let me " })] }),
    chunk({ reasoning: "see.", reasoning_details: [text({ text: "see.", signature: null })] }),
    chunk({ reasoning_details: [text({ signature: "c2ln" })] }),
    chunk({ ...call(0, "c1"), reasoning_details: [sealed] }),
    chunk({}, "tool_calls"),
  );
  const details = [text({ text: "Let me see.", signature: "c2ln" }), sealed];

  test("OpenRouter gets its reasoning details back, merged and in order", async () => {
    const { message, next } = await roundTrip({ wire: openaiChat, stream, place });
    expect(message.reasoning?.text).toBe("Let me see.");
    expect(next.messages).toMatchObject([{}, {}, { reasoning_details: details, tool_calls: [{ id: "c1" }] }, {}]);
    expect(JSON.stringify(next)).not.toContain('"reasoning":');
  });

  test("OpenRouter gets the details of a whole reply back as they came", async () => {
    const whole = {
      choices: [
        {
          message: {
            content: "",
            reasoning_details: [...details, text({ text: "More.", signature: "c2lnMg" })],
            ...call(0, "c1"),
          },
          finish_reason: "tool_calls",
        },
      ],
    };
    const { next } = await roundTrip({ wire: openaiChat, stream: JSON.stringify(whole), place });
    expect(next.messages).toMatchObject([
      {},
      {},
      { reasoning_details: [...details, text({ text: "More.", signature: "c2lnMg" })] },
      {},
    ]);
  });

  test("OpenRouter gets an empty list of details back, which DeepSeek requires", async () => {
    const empty = sse(chunk({ content: "Yes.", reasoning_details: [] }), chunk({}, "stop"));
    const { next } = await roundTrip({ wire: openaiChat, stream: empty, place });
    expect(next.messages).toMatchObject([{}, {}, { role: "assistant", content: "Yes.", reasoning_details: [] }]);
  });

  test("OpenRouter gets no thoughts back whose signature never came", async () => {
    const cut = sse(
      chunk({ reasoning_details: [text({ text: "Half a th" }), { ...sealed, index: 2 }] }),
      chunk({ content: "Yes." }, "length"),
    );
    const { next } = await roundTrip({ wire: openaiChat, stream: cut, place });
    expect(next.messages).toMatchObject([{}, {}, { reasoning_details: [{ ...sealed, index: 2 }] }]);
    expect(JSON.stringify(next)).not.toContain("Half a th");
  });

  test("OpenRouter's details are shown as reasoning where no other field has the text", async () => {
    const only = sse(
      chunk({ reasoning_details: [{ type: "reasoning.summary", summary: "Hm, " }] }),
      chunk({ reasoning_details: [{ type: "reasoning.summary", summary: "yes." }] }),
      chunk({ content: "Yes." }, "stop"),
    );
    const { message } = await roundTrip({ wire: openaiChat, stream: only, place });
    expect(message).toMatchObject({ content: "Yes.", reasoning: { text: "Hm, yes." } });
  });

  test("OpenRouter's details are not sent to another provider", async () => {
    const { next } = await roundTrip({ wire: openaiChat, stream, place, second: { place: { id: "other" } } });
    expect(JSON.stringify(next)).not.toContain("reasoning");
  });

  test("OpenRouter's details cannot fill the memory", async () => {
    const huge = { type: "reasoning.encrypted", data: "x".repeat(1024 * 1024) };
    const pieces = Array.from({ length: 20 }, () => sse(chunk({ reasoning_details: [huge] })));
    expect((await endOf(openaiChat(placeSaying(pieces)))).error?.message).toBe(
      "test: the reasoning of the reply is too long",
    );
  });
});

describe("Mistral", () => {
  const thinking = (text: string): object => ({ type: "thinking", thinking: [{ type: "text", text }] });
  const stream = sse(
    chunk({ role: "assistant", content: [thinking("Two and ")] }),
    chunk({ content: [thinking("two."), { type: "text", text: "It is " }] }),
    chunk({ content: "4." }, "stop"),
  );

  test("Mistral's thinking parts are shown as reasoning and sent back", async () => {
    const { message, next } = await roundTrip({ wire: openaiChat, stream, place: { id: "mistral" } });
    expect(message).toMatchObject({ content: "It is 4.", reasoning: { text: "Two and two." } });
    expect(next.messages).toEqual([
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hello" },
      {
        role: "assistant",
        content: [
          { ...thinking("Two and two."), closed: true },
          { type: "text", text: "It is 4." },
        ],
      },
    ]);
  });

  test("Mistral is the only provider that gets thinking parts", async () => {
    const second = { place: { id: "other" } };
    const { next } = await roundTrip({ wire: openaiChat, stream, place: { id: "mistral" }, second });
    expect(next.messages).toEqual([
      { role: "system", content: request.system },
      ...request.messages,
      { role: "assistant", content: "It is 4." },
    ]);
  });
});
