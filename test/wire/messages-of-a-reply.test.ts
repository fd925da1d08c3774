/** Replies that consist of several messages or blocks. */
import { describe, expect, test } from "vitest";
import { anthropicMessages } from "../../src/model/wire/anthropic/anthropic.ts";
import { openaiResponses } from "../../src/model/wire/openai/openai-responses.ts";
import { dataOf, stage } from "../support/stage.ts";
import { roundTrip } from "./round-trip.ts";
import { collect, endOf, joined, namedSse, placeSaying, request } from "./support.ts";

const message = (text: string, phase?: string): object => ({
  ...{ type: "message", id: `msg_${text.length}`, role: "assistant", ...(phase && { phase }) },
  content: [{ type: "output_text", text }],
});
const completed = (output: readonly object[]): { type: string } => ({
  type: "response.completed",
  ...{ response: { status: "completed", output } },
});
const streamed = (...output: readonly object[]): string =>
  namedSse(
    ...output.flatMap((item, output_index) => [
      { type: "response.output_item.added", ...{ output_index, item: { ...item, content: [] } } },
      ...("content" in item && Array.isArray(item.content)
        ? [{ type: "response.output_text.delta", ...{ output_index, delta: item.content[0].text } }]
        : []),
      { type: "response.output_item.done", ...{ output_index, item } },
    ]),
    completed(output),
  );

describe("on the responses wire", () => {
  const call = { type: "function_call", call_id: "c1", name: "view", arguments: "{}" };

  test("two messages of a reply on the responses wire are two paragraphs, and go back as two with their phase", async () => {
    const stream = streamed(message("Nearly.", "commentary"), message("It holds x.", "final_answer"), call);
    const { message: stored, next } = await roundTrip({ wire: openaiResponses, stream });
    expect(stored.content).toBe("Nearly.\n\nIt holds x.");
    expect(next.input).toEqual([
      ...request.messages,
      { role: "assistant", phase: "commentary", content: "Nearly." },
      { role: "assistant", phase: "final_answer", content: "It holds x." },
      { type: "function_call", call_id: "c1", name: "view", arguments: "{}" },
      { type: "function_call_output", call_id: "c1", output: "Done." },
    ]);
  });

  test("the phase of the last text on the responses wire is reported with the session's message", async () => {
    const stream = streamed(message("Nearly.", "commentary"), message("It holds x.", "final_answer"));
    const { session } = await stage([], { provider: openaiResponses(placeSaying([stream])) });
    await session.sendAndWait({ prompt: "go" });
    expect(dataOf(session.events, "assistant.message")).toMatchObject([
      { content: "Nearly.\n\nIt holds x.", phase: "final_answer" },
    ]);
  });

  test("a whole reply on the responses wire gives the same messages as a stream", async () => {
    const output = [message("Nearly.", "commentary"), message("It holds x.", "final_answer"), call];
    const whole = { status: "completed", output };
    const events = await collect(openaiResponses(placeSaying([JSON.stringify(whole)])));
    expect(joined(events)).toEqual(joined(await collect(openaiResponses(placeSaying([streamed(...output)])))));
  });

  test("messages without a phase on the responses wire stay separate, and line breaks are not doubled", async () => {
    const { message: stored, next } = await roundTrip({
      wire: openaiResponses,
      stream: streamed(message("One.\n"), message("Two.")),
    });
    expect(stored.content).toBe("One.\n\nTwo.");
    expect(next.input).toEqual([
      ...request.messages,
      { role: "assistant", content: "One.\n" },
      { role: "assistant", content: "Two." },
    ]);
  });

  test("reasoning that led to a call that was cut off does not go back on the responses wire", async () => {
    const reasoning = (id: string): object => ({
      type: "reasoning",
      id,
      summary: [],
      encrypted_content: `sealed ${id}`,
    });
    const output = [reasoning("r1"), message("Nearly."), reasoning("r2"), { ...call, arguments: '{"path":' }];
    const whole = { status: "incomplete", incomplete_details: { reason: "max_output_tokens" }, output };
    const { next } = await roundTrip({ wire: openaiResponses, stream: JSON.stringify(whole) });
    expect(next.input).toEqual([...request.messages, reasoning("r1"), { role: "assistant", content: "Nearly." }]);
  });

  test("text that comes only with the end of its message on the responses wire is added", async () => {
    const stream = namedSse(
      { type: "response.output_item.added", ...{ output_index: 0, item: { type: "message", content: [] } } },
      { type: "response.output_text.delta", ...{ output_index: 0, delta: "One " } },
      { type: "response.output_item.done", ...{ output_index: 0, item: message("One and two.") } },
      completed([message("One and two.")]),
    );
    expect((await roundTrip({ wire: openaiResponses, stream })).message.content).toBe("One and two.");
  });

  test("a single message without a phase on the responses wire is stored as before", async () => {
    const { message: stored } = await roundTrip({ wire: openaiResponses, stream: streamed(message("One.")) });
    expect(stored).toEqual({ role: "assistant", content: "One.", calls: [] });
  });
});

describe("on the messages wire", () => {
  const usage = { input_tokens: 7, output_tokens: 3 };
  const call = { type: "tool_use", id: "c1", name: "roll", input: { player: "one" } };
  const started = (more: object): { type: string } => ({
    type: "message_start",
    ...{ message: { type: "message", role: "assistant", content: [], stop_reason: null, usage, ...more } },
  });
  const text = (index: number, value: string): { type: string }[] => [
    { type: "content_block_start", ...{ index, content_block: { type: "text", text: value } } },
    { type: "content_block_stop", ...{ index } },
  ];
  const finished = [{ type: "message_delta", ...{ delta: { stop_reason: "end_turn" } } }, { type: "message_stop" }];
  const textOf = async (stream: string): Promise<string> =>
    (await collect(anthropicMessages(placeSaying([stream]))))
      .map((event) => (event.type === "text" ? event.delta : ""))
      .join("");

  test("a message that is complete when it starts is read on the messages wire", async () => {
    const stream = namedSse(started({ content: [call], stop_reason: "tool_use" }), { type: "message_stop" });
    expect(await collect(anthropicMessages(placeSaying([stream])))).toMatchObject([
      { type: "call_delta" },
      { type: "call", call: { toolCallId: "c1", name: "roll", arguments: { player: "one" } } },
      { type: "end", stop: "tools", usage: { inputTokens: 7, outputTokens: 3 } },
    ]);
  });

  test("blocks of the first event on the messages wire count once, repeated or continued", async () => {
    const given = started({ content: [{ type: "text", text: "One. " }] });
    expect(await textOf(namedSse(given, ...text(0, "One. "), ...finished))).toBe("One. ");
    expect(await textOf(namedSse(given, ...text(1, "Two."), ...finished))).toBe("One. Two.");
    expect(await textOf(namedSse(given, given, ...text(1, "Two."), ...finished))).toBe("One. Two.");
  });

  test("text after a search on the messages wire is its own paragraph, and cited text after text is not", async () => {
    const search = [
      { type: "content_block_start", ...{ index: 1, content_block: { type: "server_tool_use", name: "web_search" } } },
      { type: "content_block_stop", ...{ index: 1 } },
    ];
    const stream = namedSse(
      ...[started({}), ...text(0, "I look."), ...search, ...text(2, "It is "), ...text(3, "so."), ...finished],
    );
    expect(await textOf(stream)).toBe("I look.\n\nIt is so.");
  });

  test("a refusal on the messages wire has a reason and a possible model, and its tokens are counted", async () => {
    const stop_details = {
      ...{ type: "refusal", category: "cyber", explanation: "Blocked by policy.", recommended_model: "claude-x" },
    };
    const stream = namedSse(
      started({}),
      { type: "message_delta", ...{ delta: { stop_reason: "refusal", stop_details }, usage: { output_tokens: 5 } } },
      { type: "message_stop" },
    );
    const whole = JSON.stringify({
      content: [],
      stop_reason: "refusal",
      stop_details,
      usage: { ...usage, output_tokens: 5 },
    });
    for (const reply of [stream, whole]) {
      const end = await endOf(anthropicMessages(placeSaying([reply])));
      expect(end).toMatchObject({ stop: "error", usage: { inputTokens: 7, outputTokens: 5 } });
      expect(end.error).toMatchObject({
        kind: "content_filter",
        code: "cyber",
        message: "test: the model refused (category: cyber): Blocked by policy.",
        hint: "Reword the request, or use another model. The provider suggests claude-x.",
      });
    }
  });
});
