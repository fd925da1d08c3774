import { describe, expect, it } from "vitest";
import type { SessionEvent } from "../protocol/event.ts";
import { Conversation } from "./conversation.ts";

const event = (type: string, data: object): SessionEvent =>
  ({ id: type, timestamp: "2026-01-01T00:00:00.000Z", parentId: null, type, data }) as SessionEvent;

const ended = (toolCallId: string): SessionEvent =>
  event("tool.execution_complete", { toolCallId, success: true, result: { content: toolCallId } });

describe("the conversation of an agent", () => {
  it("the conversation has results of parallel calls in the order of the calls, however they end", () => {
    const conversation = new Conversation();
    const toolRequests = ["a", "b", "c"].map((toolCallId) => ({ toolCallId, name: "view", arguments: {} }));
    conversation.apply(event("user.message", { content: "go" }));
    conversation.apply(event("assistant.message", { messageId: "1", content: "", toolRequests }));
    for (const id of ["c", "a", "b"]) conversation.apply(ended(id));
    conversation.apply(event("user.message", { content: "next" }));
    const shown = conversation.entries.map(({ message }) => [message.role, message.content]);
    expect(shown).toEqual([
      ["user", "go"],
      ["assistant", ""],
      ["tool", "a"],
      ["tool", "b"],
      ["tool", "c"],
      ["user", "next"],
    ]);
  });

  it("the conversation changes its version when a result is inserted before another", () => {
    const conversation = new Conversation();
    const toolRequests = ["a", "b"].map((toolCallId) => ({ toolCallId, name: "view", arguments: {} }));
    conversation.apply(event("assistant.message", { messageId: "1", content: "", toolRequests }));
    conversation.apply(ended("b"));
    const { version } = conversation;
    conversation.apply(ended("a"));
    expect(conversation.version).toBeGreaterThan(version);
  });
});
