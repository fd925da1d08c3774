import { describe, expect, it } from "vitest";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { SessionView } from "../../src/view/session-view.ts";
import { openAttention, waitChain, waitText } from "../../src/view/waits.ts";
import { became, created, running, said, spent } from "../cli/stage.ts";

function folded(...events: readonly (SessionEvent | readonly SessionEvent[])[]): SessionView {
  const made = new SessionView();
  for (const event of events.flat()) made.apply(event as SessionEvent);
  return made;
}

describe("the transcript", () => {
  it("the transcript commits the parts of a reply while it is streamed, and each part once", () => {
    const made = folded(said("assistant.turn_start", { turnId: "1" }));
    const say = (deltaContent: string) =>
      made.apply({ ...said("assistant.message_delta", { messageId: "m", deltaContent }), ephemeral: true });
    say("# Title\nFirst para");
    const texts = () => made.drain().map((block) => (block.kind === "assistant" ? block.markdown.text : block.kind));
    expect(texts()).toEqual(["# Title"]);
    say("graph.\n\nSecond");
    expect(texts()).toEqual(["First paragraph."]);
    expect(made.view.main.streaming?.tail?.text).toBe("Second");
    made.apply(
      said("assistant.message", {
        messageId: "m",
        content: "# Title\nFirst paragraph.\n\nSecond one.",
        toolRequests: [],
      }),
    );
    expect(texts()).toEqual(["Second one."]);
    expect(made.view.main.streaming).toBeUndefined();
  });
});

describe("waits", () => {
  it("the view shows why an agent waits as a chain that ends with the approval", () => {
    const { view } = folded(
      said("user.message", { content: "go" }),
      said("tool.execution_start", { toolCallId: "c1", toolName: "task", arguments: { name: "scout" } }),
      created("scout", { mode: "sync", toolCallId: "c1" }),
      running("scout"),
      said("tool.execution_start", { toolCallId: "c2", toolName: "bash", arguments: { command: "npm test" } }, "scout"),
      said(
        "permission.requested",
        {
          requestId: "r1",
          permissionRequest: {
            kind: "shell",
            fullCommandText: "npm test",
            intention: "",
            commands: [],
            possiblePaths: [],
            possibleUrls: [],
            hasWriteFileRedirection: false,
            canOfferSessionApproval: true,
            toolCallId: "c2",
          },
        },
        "scout",
      ),
    );
    expect(waitText(waitChain(view))).toBe("task scout → scout → bash npm test → approval: npm test");
    expect(openAttention(view).map(({ id, path }) => [id, path])).toEqual([["r1", ["scout"]]]);
  });
});

describe("waits of calls", () => {
  it("the view shows the lock that a call waits for and its holder, until the call has it", () => {
    const made = folded(
      said("user.message", { content: "go" }),
      said("tool.execution_start", { toolCallId: "c", toolName: "edit", arguments: { path: "a.ts" } }),
      said("troupe.lock_wait", { toolCallId: "c", path: "/work/a.ts", holder: "scout", isOver: false }),
    );
    expect(waitText(waitChain(made.view))).toBe("edit a.ts → lock: /work/a.ts, held by scout");
    made.apply(said("troupe.lock_wait", { toolCallId: "c", path: "/work/a.ts", holder: "scout", isOver: true }));
    expect(waitChain(made.view)).toEqual([]);
  });

  it("the view shows a call that is held back by a rate limit, and until when", () => {
    const made = folded(
      said("assistant.turn_start", { turnId: "1" }),
      said("troupe.model_wait", { reason: "rate_limit", waiting: 3, delayMs: 60_000 }),
    );
    expect(waitText(waitChain(made.view), (at) => new Date(at).toISOString().slice(11, 16))).toBe(
      "rate limit until 00:01",
    );
    made.apply(said("assistant.message", { messageId: "m", content: "", toolRequests: [] }));
    expect(waitChain(made.view)).toEqual([]);
  });
});

describe("costs", () => {
  it("the cost of an agent includes everything below it", () => {
    const { view } = folded(
      created("a"),
      running("a"),
      created("b", { parentId: "a" }),
      running("b"),
      spent(100, 0.5, "b"),
      spent(10, 0.25, "a"),
      spent(1, null),
      became("b", "running", "completed"),
    );
    expect(view.agents.get("a")?.subtree).toMatchObject({ inputTokens: 110, costUsd: 0.75, isCostKnown: true });
    expect(view.main.subtree).toMatchObject({ inputTokens: 111, costUsd: 0.75, isCostKnown: false });
    expect(view.main.spent).toMatchObject({ inputTokens: 1, costUsd: 0 });
  });
});
