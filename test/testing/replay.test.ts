import { expect, it } from "vitest";
import type { ModelEvent } from "../../src/model/provider.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { fauxModel, replaySteps } from "../../src/testing/index.ts";

type Reply = Extract<SessionEvent, { type: "assistant.message" }>;

function reply(data: Omit<Reply["data"], "messageId">, agentId?: string): Reply {
  const envelope = { id: "e", timestamp: "t", parentId: null, ...(agentId !== undefined && { agentId }) };
  return { ...envelope, type: "assistant.message", data: { messageId: "m", ...data } };
}

it("a recorded session is played again, agent by agent", async () => {
  const log: SessionEvent[] = [
    { id: "e", timestamp: "t", parentId: null, type: "user.message", data: { content: "go" } },
    reply({
      content: "I ask.",
      reasoningText: "hm",
      toolRequests: [{ toolCallId: "abc", name: "task", arguments: { agent: "explorer" } }],
    }),
    reply({ content: "seen", toolRequests: [] }, "abc"),
    reply({ content: "", toolRequests: [{ toolCallId: "x", name: "view" }] }),
    reply({ content: "done", toolRequests: [] }),
  ];
  const model = fauxModel(...replaySteps(log, { agents: { abc: "explorer" } }));
  const play = async (system: string): Promise<ModelEvent[]> => {
    const events: ModelEvent[] = [];
    const asked = { model: "m", system, messages: [], tools: [], stream: true };
    for await (const event of model.stream(asked, new AbortController().signal)) events.push(event);
    return events;
  };
  expect(await play("lead")).toEqual([
    { type: "reasoning", delta: "hm" },
    { type: "text", delta: "I ask." },
    { type: "call", call: { toolCallId: "abc", name: "task", arguments: { agent: "explorer" } } },
    { type: "end", stop: "tools" },
  ]);
  expect(await play("lead")).toEqual([
    { type: "call", call: { toolCallId: "x", name: "view", arguments: {} } },
    { type: "end", stop: "tools" },
  ]);
  expect(await play("explorer")).toEqual([
    { type: "text", delta: "seen" },
    { type: "end", stop: "done" },
  ]);
  expect(await play("lead")).toEqual([
    { type: "text", delta: "done" },
    { type: "end", stop: "done" },
  ]);
  model.assertSpent();
});
