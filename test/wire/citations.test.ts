import { describe, expect, test } from "vitest";
import { anthropicMessages } from "../../src/model/wire/anthropic/anthropic.ts";
import { openaiChat } from "../../src/model/wire/openai/openai-chat.ts";
import { openaiResponses } from "../../src/model/wire/openai/openai-responses.ts";
import { Citations } from "../../src/protocol/citations.ts";
import { endOf, namedSse, placeSaying, sse } from "./support.ts";

const a = "https://example.com/a";
const b = "https://example.com/b";
const openai = (id: number, more: object): object => ({ id: `source-${id}`, provider: "openai", ...more });

describe("citations", () => {
  test("citations of the chat wire are read with numbers that count characters, not code units", async () => {
    const annotation = (fields: object): object => ({ type: "url_citation", url_citation: fields });
    const stream = sse(
      { choices: [{ delta: { content: "👋 Hello" } }] },
      {
        choices: [
          { delta: { annotations: [annotation({ url: a, title: "A", content: "Hi", start_index: 2, end_index: 7 })] } },
        ],
      },
      {
        choices: [
          { delta: { annotations: [annotation({ url: a, start_index: 0, end_index: 1 })] }, finish_reason: "stop" },
        ],
      },
    );
    const { citations } = await endOf(openaiChat(placeSaying([stream])));
    expect(citations).toEqual({
      sources: [openai(1, { title: "A", url: a })],
      spans: [
        { startIndex: 3, endIndex: 8, references: [{ sourceId: "source-1", citedText: "Hi" }] },
        { startIndex: 0, endIndex: 2, references: [{ sourceId: "source-1" }] },
      ],
    });
    expect(Citations.parse(citations)).toEqual(citations);
  });

  test("citations are read from the lists of Perplexity, with a span for each marker in the text", async () => {
    const frame = (content: string, more: object = {}): object => ({
      citations: [a, b],
      choices: [{ delta: { content } }],
      ...more,
    });
    const results = {
      search_results: [
        { title: "A", url: a, date: "2026" },
        { title: "B", url: b },
      ],
    };
    const stream = sse(frame("It is so[2"), frame("]. Not [7].", results), {
      choices: [{ delta: {}, finish_reason: "stop" }],
    });
    expect((await endOf(openaiChat(placeSaying([stream])))).citations).toEqual({
      sources: [openai(1, { title: "A", url: a }), openai(2, { title: "B", url: b })],
      spans: [{ startIndex: 8, endIndex: 11, references: [{ sourceId: "source-2" }] }],
    });
  });

  test("citations of the responses wire are read at their place in the whole text", async () => {
    const part = (text: string, ...annotations: object[]): object => ({ type: "output_text", text, annotations });
    const output = [
      { type: "message", content: [part("First.")] },
      {
        type: "message",
        content: [
          part("Second ", { type: "file_citation", file_id: "f1", filename: "a.pdf", index: 3 }),
          part("third", { type: "url_citation", url: a, title: "A", start_index: 0, end_index: 5 }),
        ],
      },
    ];
    const end = await endOf(openaiResponses(placeSaying([JSON.stringify({ status: "completed", output })])));
    const text = "First.\n\nSecond third";
    expect(end.citations).toEqual({
      sources: [openai(1, { title: "a.pdf" }), openai(2, { title: "A", url: a })],
      spans: [{ startIndex: text.indexOf("third"), endIndex: text.length, references: [{ sourceId: "source-2" }] }],
    });
  });

  test("citations of the messages wire are read from searches, and each page is a source", async () => {
    const found = (url: string, title: string): object => ({
      ...{ type: "web_search_result_location", url, title, encrypted_index: "x", cited_text: `${title} text` },
    });
    const content = [
      { type: "text", text: "One.", citations: [found(a, "A"), found(b, "B")] },
      { type: "text", text: " Two.", citations: [found(a, "A")] },
    ];
    const whole = { content, stop_reason: "end_turn", usage: {} };
    const anthropic = { provider: "anthropic" };
    expect((await endOf(anthropicMessages(placeSaying([JSON.stringify(whole)])))).citations).toEqual({
      sources: [
        { id: "source-1", ...anthropic, title: "A", url: a },
        { id: "source-2", ...anthropic, title: "B", url: b },
      ],
      spans: [
        {
          ...{ startIndex: 0, endIndex: 4 },
          references: [
            { sourceId: "source-1", citedText: "A text" },
            { sourceId: "source-2", citedText: "B text" },
          ],
        },
        { startIndex: 4, endIndex: 9, references: [{ sourceId: "source-1", citedText: "A text" }] },
      ],
    });
  });

  test("citations with invalid addresses or spans are dropped", async () => {
    const annotations = [
      null,
      { type: "url_citation" },
      { type: "url_citation", url: "javascript:alert(1)", start_index: 0, end_index: 1 },
      { type: "url_citation", url: a, start_index: 3, end_index: 900 },
      { type: "url_citation", url: a, start_index: -1, end_index: 0.5 },
    ];
    const stream = sse({
      citations: "none",
      choices: [{ delta: { content: "Yes", annotations }, finish_reason: "stop" }],
    });
    expect((await endOf(openaiChat(placeSaying([stream])))).citations).toEqual({
      sources: [openai(1, { url: a })],
      spans: [],
    });
  });

  test("a reply without citations has none in its result", async () => {
    const stream = namedSse({ type: "response.completed", ...{ response: { status: "completed", output: [] } } });
    expect(await endOf(openaiResponses(placeSaying([stream])))).not.toHaveProperty("citations");
  });
});
