import { expect, test } from "vitest";
import type { Message } from "../../protocol/message.ts";
import type { ModelEvent, ModelRequest } from "../provider.ts";
import { nextStep, understudy } from "./understudy.ts";

const view = {
  name: "view",
  description: "",
  parameters: { type: "object", properties: { path: {}, view_range: {} } },
};
const grep = { name: "grep", description: "", parameters: { type: "object", properties: { pattern: {}, paths: {} } } };

function request(messages: readonly Message[], tools: ModelRequest["tools"] = [view]): ModelRequest {
  return { model: "understudy", system: "", messages, tools, stream: false };
}

async function play(asked: ModelRequest, signal = new AbortController().signal): Promise<ModelEvent[]> {
  const events: ModelEvent[] = [];
  for await (const event of understudy().stream(asked, signal)) events.push(event);
  return events;
}

test("calls of the understudy have new ids, and its end has estimated usage", async () => {
  expect(await play(request([{ role: "user", content: "explain a.ts" }]))).toEqual([
    {
      type: "call",
      call: { toolCallId: "understudy_1", name: "view", arguments: { path: "a.ts", view_range: [1, 200] } },
    },
    {
      type: "end",
      stop: "tools",
      usage: { inputTokens: 3, outputTokens: 17, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 },
    },
  ]);
});

test("arguments of the understudy are cut to the fields that the tool offers", () => {
  const step = nextStep(request([{ role: "user", content: "where is `aB`?" }], [grep]));
  if (step.kind !== "calls") throw new Error("expected calls");
  expect(step.calls.map((call) => Object.keys(call.arguments))).toEqual([
    ["pattern", "paths"],
    ["pattern", "paths"],
  ]);
});

test("the understudy answers with its findings after seven turns of calls", () => {
  const messages: Message[] = [{ role: "user", content: "Explain how this repository is organised" }];
  for (let turn = 1; turn <= 7; turn++) {
    expect(nextStep(request(messages)).kind).toBe("calls");
    const call = { toolCallId: `x${turn}`, name: "view", arguments: { path: `other-${turn}` } };
    messages.push({ role: "assistant", content: "", calls: [call] });
    messages.push({ role: "tool", toolCallId: `x${turn}`, content: "1. a", isError: false });
  }
  expect(nextStep(request(messages)).kind).toBe("answer");
});

test("the understudy does not mistake runtime additions to prompts for the user's words", () => {
  const said = "<current_datetime>now</current_datetime>\n\nthanks\n\n<system_reminder>What changed?</system_reminder>";
  const note = "<system_notification>\nAgent done. What changed?\n</system_notification>";
  const step = nextStep(
    request([
      { role: "user", content: said },
      { role: "user", content: note },
    ]),
  );
  expect(step).toMatchObject({ kind: "answer", text: expect.stringContaining("You are welcome.") });
});

test("a file that is attached counts as named by the user", () => {
  const content = "Summarise this\n\n\n<tagged_files>\n* /p/src/a.ts (12 lines)\n</tagged_files>";
  expect(nextStep(request([{ role: "user", content }]))).toEqual({
    kind: "calls",
    calls: [{ name: "view", arguments: { path: "/p/src/a.ts", view_range: [1, 200] } }],
  });
});

test("the understudy summarises a conversation that is being compacted without tools", () => {
  const step = nextStep(
    request([
      { role: "user", content: "explain a.ts" },
      { role: "assistant", content: "", calls: [{ toolCallId: "1", name: "view", arguments: { path: "a.ts" } }] },
      { role: "tool", toolCallId: "1", content: "1. x", isError: false },
      { role: "assistant", content: "It holds x.", calls: [] },
      { role: "user", content: "Please create a detailed summary of the conversation so far." },
    ]),
  );
  if (step.kind !== "answer") throw new Error("expected an answer");
  expect(step.text.split("\n\n_understudy")[0]).toBe(
    "1 request so far, 1 tool call.\n\n**What was asked**\n- explain a.ts\n\n**How the answers began**\n- It holds x.\n\n**Files and folders looked at:** `a.ts`",
  );
});

test("an aborted call of the understudy ends as aborted", async () => {
  expect(await play(request([{ role: "user", content: "hi" }]), AbortSignal.abort())).toEqual([
    { type: "end", stop: "aborted" },
  ]);
});
