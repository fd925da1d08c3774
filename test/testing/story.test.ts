import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { SessionEvent } from "../../src/protocol/event.ts";
import {
  expectNever,
  expectOrder,
  expectPaired,
  expectStory,
  type StoryEvent,
  story,
  storyByAgent,
  tempFolder,
} from "../../src/testing/index.ts";

const events: StoryEvent[] = [
  { type: "user.message" },
  { type: "assistant.message_delta", ephemeral: true },
  { type: "assistant.message" },
  { type: "user.message", agentId: "call_task_1" },
  { type: "session.idle" },
  { type: "assistant.message", agentId: "call_task_1" },
];

function tool(type: "tool.execution_start" | "tool.execution_complete", toolCallId: string): SessionEvent {
  const envelope = { id: "e", timestamp: "t", parentId: null };
  return type === "tool.execution_start"
    ? { ...envelope, type, data: { toolCallId, toolName: "t" } }
    : { ...envelope, type, data: { toolCallId, success: true } };
}

describe("story", () => {
  it("story lists who did what, without ephemeral events", () => {
    expect(story(events)).toEqual([
      "root user.message",
      "root assistant.message",
      "call_task_1 user.message",
      "call_task_1 assistant.message",
    ]);
    expect(story(events, { ephemeral: "included" })).toHaveLength(6);
    expect(storyByAgent(events)).toEqual({
      root: ["user.message", "assistant.message"],
      call_task_1: ["user.message", "assistant.message"],
    });
  });

  it("story shows where two stories differ", () => {
    expectStory(events.slice(0, 3), ["root user.message", "root assistant.message"]);
    expect(() => expectStory(events, ["root user.message", "root abort", "call_task_1 user.message"])).toThrow(
      [
        "The story differs (- expected, + happened):",
        "  root user.message",
        "- root abort",
        "+ root assistant.message",
        "  call_task_1 user.message",
        "+ call_task_1 assistant.message",
      ].join("\n"),
    );
  });

  it("expectOrder checks the order with gaps and any agent", () => {
    expectOrder(events, [
      "root user.message",
      "assistant.message_delta",
      "* user.message",
      "call_task_1 assistant.message",
    ]);
    expect(() => expectOrder(events, ["root assistant.message", "root user.message"])).toThrow(
      '"root user.message" (2 of 2) did not happen after "root assistant.message", only before. What happened:\n' +
        "  root user.message\n  root assistant.message_delta\n> root assistant.message\n",
    );
    expect(() => expectOrder(events, ["abort"])).toThrow('"abort" (1 of 1) never happened');
    expectNever(events, ["abort", "other user.message"]);
    expect(() => expectNever(events, ["session.idle"])).toThrow('"session.idle" happened');
  });

  it("expectPaired checks that each tool call has one result", () => {
    expectPaired([tool("tool.execution_start", "a"), tool("tool.execution_complete", "a")]);
    expect(() =>
      expectPaired([
        tool("tool.execution_start", "a"),
        tool("tool.execution_start", "a"),
        tool("tool.execution_complete", "b"),
      ]),
    ).toThrow("Tool calls do not pair up: a started twice; b completed without a start; a never completed");
  });
});

describe("tempFolder", () => {
  it("tempFolder holds a tree of files and is removed at the end of the block", async () => {
    let path = "";
    {
      await using folder = await tempFolder({ "a.txt": "1", "b/c/d.txt": "2" });
      path = folder.path;
      await folder.files({ "b/e.txt": new TextEncoder().encode("3") });
      expect(await folder.tree()).toEqual({ "a.txt": "1", "b/c/d.txt": "2", "b/e.txt": "3" });
      expect(await folder.read("b/c/d.txt")).toBe("2");
      expect(() => folder.at("../x")).toThrow("outside");
    }
    expect(existsSync(path)).toBe(false);
  });
});
