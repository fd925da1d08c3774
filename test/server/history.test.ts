import { readFile } from "node:fs/promises";
import { approveAll, type CopilotSession, type SessionEvent } from "@github/copilot-sdk";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { calls, httpStatus, says } from "../../src/testing/index.ts";
import { type ServerStage, serverStage } from "./stage.ts";

let stage: ServerStage;
beforeAll(async () => {
  stage = await serverStage();
});
afterAll(() => stage[Symbol.asyncDispose]());

const open = () => stage.client.createSession({ onPermissionRequest: approveAll });

describe("the history of a session over the contract", () => {
  it("a client rewinds to before a message, with the files of that answer", async () => {
    const session = await open();
    stage.play(says("Hello."));
    await session.sendAndWait("Hi");
    stage.play(calls(["edit", { path: "a.txt", old_str: "one", new_str: "ONE" }]), says("Shouted."));
    await session.sendAndWait("Shout");
    const { points } = await session.rpc.history.listRewindPoints();
    expect(points.map(({ userMessage, fileCount }) => `${userMessage} ${fileCount}`)).toEqual(["Hi 1", "Shout 1"]);
    const eventId = points[1]?.eventId ?? "";
    expect(await session.rpc.history.previewRewind({ eventId })).toMatchObject({
      available: true,
      files: [{ changeType: "modified" }],
    });
    const rewound = await session.rpc.history.rewind({ eventId, mode: "conversation-and-files" });
    expect(rewound.outcome).toBe("success");
    expect(rewound.restoredFiles).toHaveLength(1);
    expect(await readFile(stage.folder.at("work/a.txt"), "utf8")).toBe("one\ntwo\n");
    const said = (await session.getEvents()).flatMap((event) =>
      event.type === "user.message" ? [event.data.content] : [],
    );
    expect(said).toEqual(["Hi"]);
    const read = await session.rpc.eventLog.read({ max: 1000, types: ["user.message"] });
    expect(read.events).toHaveLength(1);
    await expect(session.rpc.history.truncate({ eventId: "no-such-event" })).rejects.toThrow(/no-such-event/);
    stage.play(says("Quietly."));
    await session.sendAndWait("And now?");
    expect(JSON.stringify(stage.model.requests.at(-1)?.body)).not.toContain("Shout");
  });

  it("a client continues the history in a fork, up to an event", async () => {
    const session = await open();
    stage.play(says("One."), says("Two."));
    await session.sendAndWait("Alpha");
    await session.sendAndWait("Omega");
    const second = (await session.getEvents()).filter(({ type }) => type === "user.message")[1]?.id ?? "";
    const fork = await stage.client.rpc.sessions.fork({ sessionId: session.sessionId, toEventId: second });
    expect(fork.sessionId).not.toBe(session.sessionId);
    const other = await stage.client.resumeSession(fork.sessionId, { onPermissionRequest: approveAll });
    stage.play(says("Another two."));
    await other.sendAndWait("Something else");
    const shown = JSON.stringify(stage.model.requests.at(-1)?.body);
    expect([shown.includes("Alpha"), shown.includes("Omega")]).toEqual([true, false]);
    await expect(
      stage.client.rpc.sessions.fork({ sessionId: session.sessionId, toEventId: "no-such-event" }),
    ).rejects.toThrow(/event no-such-event not found/i);
  });

  it("a client compacts the history on request, and gets the result", async () => {
    const session = await open();
    stage.play(says("One."), says("Two."));
    await session.sendAndWait("First");
    await session.sendAndWait("Second");
    expect(await session.rpc.history.summarizeForHandoff()).toEqual({ summary: "" });
    stage.play(says("<overview>We counted to two.</overview><checkpoint_title>Counting</checkpoint_title>"));
    const compacted = await session.rpc.history.compact({});
    expect(compacted.success).toBe(true);
    expect(compacted.messagesRemoved).toBeGreaterThan(0);
    expect((await session.rpc.history.summarizeForHandoff()).summary).toContain("We counted to two.");
    const { checkpoints } = await session.rpc.workspaces.listCheckpoints();
    expect(checkpoints).toHaveLength(1);
    const { content } = await session.rpc.workspaces.readCheckpoint({ number: checkpoints[0]?.number ?? 0 });
    expect(content).toContain("We counted to two.");
    expect(await session.rpc.history.cancelBackgroundCompaction()).toEqual({ cancelled: false });
    expect(await session.rpc.history.abortManualCompaction()).toEqual({ aborted: false });
  });

  it("the history is compacted automatically from the second message on, at the session's thresholds", async () => {
    const heard: SessionEvent[] = [];
    const session = await stage.client.createSession({
      onPermissionRequest: approveAll,
      infiniteSessions: { backgroundCompactionThreshold: 0.005, bufferExhaustionThreshold: 0.01 },
      onEvent: (event) => heard.push(event),
    });
    stage.play(says("Once upon a time. ".repeat(40)));
    await session.sendAndWait("A story");
    expect(heard.filter(({ type }) => type.startsWith("session.compaction"))).toEqual([]);
    stage.play(says("<overview>A story was told.</overview><checkpoint_title>Story</checkpoint_title>"), says("More."));
    await session.sendAndWait("Go on");
    const told = heard.flatMap((event) =>
      event.type === "session.compaction_start" || event.type === "session.compaction_complete" ? [event] : [],
    );
    expect(told).toMatchObject([
      { type: "session.compaction_start", data: { trigger: "threshold", conversationTokens: expect.any(Number) } },
      {
        type: "session.compaction_complete",
        data: {
          success: true,
          checkpointNumber: 1,
          summaryContent: expect.stringMatching(/<overview>[\s\S]*<history>[\s\S]*<checkpoint_title>/),
          compactionTokensUsed: { inputTokens: expect.any(Number) },
        },
      },
    ]);
    const shown = JSON.stringify(stage.model.requests.at(-1)?.body);
    expect([shown.includes("Once upon"), shown.includes("A story was told."), shown.includes("Go on")]).toEqual([
      false,
      true,
      true,
    ]);
  });

  it("the history stays unchanged when a requested compaction fails, and the answer says so", async () => {
    const session = await open();
    await expect(session.rpc.history.compact({})).rejects.toThrow(/nothing to compact|too little/i);
    stage.play(says("One."));
    await session.sendAndWait("First");
    stage.play(httpStatus(400, { body: "no summaries here" }));
    const failed = await session.rpc.history.compact({ trigger: "model_switch" });
    expect(failed).toMatchObject({ success: false, messagesRemoved: 0, tokensRemoved: 0 });
    expect(failed).toMatchObject({ error: expect.stringContaining("no summaries here") });
    const end = (await session.getEvents()).findLast(({ type }) => type === "session.compaction_complete");
    expect(end?.data).toMatchObject({ success: false, trigger: "model_switch" });
    stage.play(says("Two."));
    await session.sendAndWait("Second");
    expect(JSON.stringify(stage.model.requests.at(-1)?.body)).toContain("First");
  });

  it("a tool starts the history afresh with its prompt, and everything stays in the log", async () => {
    const heard: SessionEvent[] = [];
    let session: CopilotSession | undefined;
    const client = stage.newClient();
    session = await client.createSession({
      onEvent: (event) => heard.push(event),
      tools: [
        {
          ...{ name: "afresh", skipPermission: true, isTerminal: true },
          handler: async () => JSON.stringify(await session?.rpc.history.clearContext({ prompt: "Only this." })),
        },
      ],
    });
    stage.play(says("the first answer"));
    await session.sendAndWait("the first question");
    stage.play(calls(["afresh", {}]), says("Only that."));
    expect((await session.sendAndWait("begin afresh"))?.data.content).toBe("Only that.");
    const shown = () => stage.model.requests.at(-1)?.request?.messages ?? [];
    expect(shown().map(({ role }) => role)).toEqual(["user"]);
    expect(shown().at(-1)?.content).toContain("Only this.");
    const cleared = heard.filter(({ type }) => type === "session.context_cleared");
    expect(cleared.map(({ data }) => data)).toEqual([{ messagesCleared: 4, initialMessage: "Only this." }]);
    expect(
      heard.flatMap((event) => (event.type === "tool.execution_complete" ? [event.data.result?.content] : [])),
    ).toEqual(['{"messagesCleared":4}']);
    const said = JSON.stringify(await session.getEvents());
    expect(["the first question", "the first answer", "begin afresh"].filter((words) => !said.includes(words))).toEqual(
      [],
    );
    await client.stop();
    // The same to another process, and a rewind brings back what was before.
    const again = await stage.client.resumeSession(session.sessionId, {});
    stage.play(says("yes"));
    await again.sendAndWait("and now?");
    expect(shown().map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
    expect(JSON.stringify(shown())).not.toContain("the first");
    const points = (await again.rpc.history.listRewindPoints()).points;
    const [back] = points.filter(({ userMessage }) => userMessage === "begin afresh");
    await again.rpc.history.rewind({ eventId: back?.eventId ?? "", mode: "conversation" });
    stage.play(says("of course"));
    await again.sendAndWait("do you remember?");
    expect(JSON.stringify(shown())).toContain("the first answer");
  });

  it("the history starts afresh at once when idle, and before the next words of a working agent", async () => {
    const session = await stage.client.createSession({
      tools: [
        {
          ...{ name: "afresh", skipPermission: true },
          handler: async () => JSON.stringify(await session.rpc.history.clearContext({ prompt: "Again." })),
        },
      ],
    });
    stage.play(says("one"));
    await session.sendAndWait("first");
    stage.play(calls(["afresh", {}]), says("three"));
    const idle = new Promise((resolve) => session.on("session.idle", resolve));
    expect(await session.rpc.history.clearContext({ prompt: "Second." })).toEqual({ messagesCleared: 2 });
    await idle;
    const [second, third] = stage.model.requests.slice(-2).map(({ request }) => request?.messages ?? []);
    expect([second?.length, third?.length]).toEqual([1, 1]);
    expect(second?.at(-1)?.content).toContain("Second.");
    expect(third?.at(-1)?.content).toContain("Again.");
    await expect(session.rpc.history.clearContext({ prompt: "" })).rejects.toThrow(/prompt/);
  });
});
