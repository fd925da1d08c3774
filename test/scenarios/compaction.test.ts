import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { summaryWriter } from "../../src/context/compaction-summary.ts";
import { deferred } from "../../src/lib/deferred.ts";
import { createRedactor } from "../../src/lib/redact/redact.ts";
import { calls, fails, says, stalls, withUsage } from "../../src/model/faux/faux-step.ts";
import { checkEvent } from "../../src/protocol/event.ts";
import { Conversation } from "../../src/session/conversation.ts";
import { expectOrder, expectPaired } from "../../src/testing/story.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { problemsOf } from "../context/well-formed.ts";
import { storeWith } from "../support/agent-pool.ts";
import { dataOf } from "../support/stage.ts";
import { asksForSummary, SUMMARY, small, summaries, summary } from "./compaction-stage.ts";

const read = (characters: number) => calls(["big", { characters }]);
/** After three of these a window of 4,000 tokens is full to 0.86, after four the agent must wait. */
const full = Array.from({ length: 4 }, () => read(4_500));

describe("LOOP-31 automatic compaction", () => {
  it("LOOP-31 automatic compaction begins at 0.80 of the window while the agent continues", async () => {
    const wentOn = deferred<void>();
    const compacted = deferred<void>();
    const { session, model, heard } = await small([
      summaries(stalls(wentOn.promise, says(SUMMARY))),
      ...Array.from({ length: 4 }, () => read(3_000)),
      read(600),
      async () => {
        wentOn.resolve();
        await compacted.promise;
        return read(100);
      },
      says("done"),
    ]);
    session.subscribe(({ type }) => type === "session.compaction_complete" && compacted.resolve());
    expect(await session.sendAndWait({ prompt: "Read the files" })).toEqual({ kind: "done", answer: "done" });
    expectOrder(heard, [
      "root session.compaction_start",
      "root session.compaction_complete",
      "root assistant.turn_start",
    ]);
    const last = model.requests.at(-1)?.messages ?? [];
    expect(last[0]?.content).toContain("<user_message>\nRead the files\n</user_message>\n\n<summary>\n<overview>");
    expect(last.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant", "tool"]);
    expect(last[4]?.content).toHaveLength(100);
    expect(dataOf(session.events, "session.compaction_start")).toMatchObject([
      { trigger: "threshold", tokenLimit: 4_000, model: "faux-1" },
    ]);
    model.assertSpent();
  });

  it("LOOP-31 automatic compaction is reported in events of the wire contract, with all numbers", async () => {
    const { session } = await small([summaries(summary()), ...full, says("done")]);
    await session.sendAndWait({ prompt: "Read the files" });
    const [start] = dataOf(session.events, "session.compaction_start");
    const [complete] = dataOf(session.events, "session.compaction_complete");
    expect(start?.conversationTokens).toBeGreaterThan(3_200);
    expect(complete).toMatchObject({
      success: true,
      trigger: "threshold",
      checkpointNumber: 1,
      summaryContent: expect.stringMatching(/<overview>[\s\S]*<history>[\s\S]*<checkpoint_title>/),
      tokenLimit: 4_000,
    });
    const { preCompactionTokens = 0, postCompactionTokens = 0, tokensRemoved, compactionTokensUsed } = complete ?? {};
    expect(preCompactionTokens - postCompactionTokens).toBe(tokensRemoved);
    expect(postCompactionTokens).toBeGreaterThan(0);
    expect(tokensRemoved).toBeGreaterThan(1_500);
    expect(compactionTokensUsed?.inputTokens).toBeGreaterThan(1_000);
    for (const event of session.events) expect(checkEvent(event)).toMatchObject({ ok: true });
    expect(dataOf(session.events, "troupe.usage").filter(({ turnId }) => turnId === "compaction")).toHaveLength(1);
  });

  it("LOOP-31 a request waits for the compaction at 0.95: no request ever exceeds the window", async () => {
    const { session, model } = await small([summaries(summary()), read(5_000), read(5_000), read(6_000), says("done")]);
    await session.sendAndWait({ prompt: "Read the files" });
    const order = model.requests.map((request) => (asksForSummary(request) ? "summary" : request.messages.length));
    expect(order).toEqual([1, 3, 5, "summary", 3]);
    expectPaired(session.events);
  });

  it("context usage is reported by kind, corrected by the provider's count", async () => {
    const { session, heard } = await small(
      [withUsage(read(4_000), { inputTokens: 2_000 }), withUsage(read(4_000), { inputTokens: 4_000 }), says("done")],
      { system: "s".repeat(4_000), window: 20_000 },
    );
    await session.sendAndWait({ prompt: "go" });
    const [first, second, third] = dataOf(heard, "session.usage_info");
    expect(first).toMatchObject({ systemTokens: 1_000, messagesLength: 1, tokenLimit: 20_000 });
    expect(first?.currentTokens).toBe(
      (first?.systemTokens ?? 0) + (first?.toolDefinitionsTokens ?? 0) + (first?.conversationTokens ?? 0),
    );
    expect(second?.systemTokens).toBeGreaterThan(1_800);
    expect(third?.conversationTokens).toBeGreaterThan(second?.conversationTokens ?? Infinity);
  });

  it("no summary is requested below the threshold, after a first exchange, or when compaction is off", async () => {
    const calm = await small([read(1_000), says("done")]);
    await calm.session.sendAndWait({ prompt: "go" });
    const first = await small([says("done")], { system: "s".repeat(14_000) });
    await first.session.sendAndWait({ prompt: "go" });
    const off = await small([...Array.from({ length: 6 }, () => read(4_000)), says("done")], {
      compaction: { enabled: false },
    });
    await off.session.sendAndWait({ prompt: "go" });
    for (const { model, session } of [calm, first, off]) {
      expect(model.requests.filter(asksForSummary)).toEqual([]);
      expect(dataOf(session.events, "session.compaction_start")).toEqual([]);
    }
    // Where it is off, old results are left out instead, and say so.
    expect(dataOf(off.session.events, "session.truncation").length).toBeGreaterThan(0);
    expect(off.model.requests.at(-1)?.messages[2]?.content).toMatch(/characters of this result were left out/);
  });
});

describe("compaction after an overflow", () => {
  it("compaction runs once when a provider refuses a request as too long, and the same turn continues", async () => {
    const { session, model, heard } = await small(
      [summaries(summary()), read(400), read(400), fails("context_length"), says("done")],
      { window: 100_000 },
    );
    expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer: "done" });
    expect(dataOf(session.events, "session.compaction_start")).toMatchObject([{ trigger: "context_limit_retry" }]);
    expect(dataOf(heard, "troupe.retry")).toMatchObject([{ attempt: 1, delayMs: 0 }]);
    expect(dataOf(session.events, "assistant.turn_start").map(({ turnId }) => turnId)).toEqual(["0", "1", "2"]);
    expect(model.requests.at(-1)?.messages[0]?.content).toContain("<summary>");
  });

  it("compaction after an overflow is not repeated: a second refusal is reported to the user", async () => {
    const { session, model } = await small(
      [summaries(summary()), read(400), read(400), fails("context_length"), fails("context_length")],
      { window: 100_000 },
    );
    expect(await session.sendAndWait({ prompt: "go" })).toMatchObject({ kind: "error" });
    model.assertSpent();
  });
});

describe("a summary that fails", () => {
  it("a failed summary loses nothing: the history stays, results are shortened, and it is retried later", async () => {
    const { session, model } = await small([
      summaries(fails(500), says("   "), summary(), summary(), summary(), summary()),
      ...Array.from({ length: 26 }, () => read(3_000)),
      says("done"),
    ]);
    expect(await session.sendAndWait({ prompt: "Keep this in mind" })).toMatchObject({ kind: "done" });
    const ends = dataOf(session.events, "session.compaction_complete");
    expect(ends.map(({ success }) => success)).toEqual([false, false, ...ends.slice(2).map(() => true)]);
    expect(ends.length).toBeGreaterThan(2);
    expect(ends[0]).toMatchObject({ statusCode: 500, error: expect.stringContaining("500") });
    expect(ends[1]?.error).toBe("The model wrote no summary.");
    const requests = model.requests.filter((request) => !asksForSummary(request));
    for (const { messages } of requests) {
      expect(problemsOf(messages)).toEqual([]);
      expect(messages[0]?.content).toContain("Keep this in mind");
      expect(JSON.stringify(messages).length / 4).toBeLessThan(4_200);
    }
    expect(dataOf(session.events, "session.truncation").length).toBeGreaterThan(0);
  });

  it("a summary request that is itself too long is repeated once, with less content", async () => {
    const { session, model } = await small([summaries(fails("context_length"), summary()), ...full, says("done")]);
    await session.sendAndWait({ prompt: "go" });
    const [whole, half] = model.requests.filter(asksForSummary);
    expect(JSON.stringify(half?.messages).length).toBeLessThan(JSON.stringify(whole?.messages).length);
    expect(dataOf(session.events, "session.compaction_complete")).toMatchObject([{ success: true }]);
  });
});

describe("the conversation after a compaction", () => {
  it("a compaction writes a checkpoint file, and the log gives the same messages when it is read back", async () => {
    await using folder = await tempFolder();
    const script = () => [
      summaries(summary(), summary(), summary()),
      ...Array.from({ length: 10 }, () => read(3_500)),
      says("done"),
    ];
    const parts = { writeSummary: summaryWriter(folder.path) };
    const { session, store } = await small(script(), { parts });
    await session.sendAndWait({ prompt: "Read the files" });
    const ends = dataOf(session.events, "session.compaction_complete");
    expect(ends.length).toBeGreaterThanOrEqual(2);
    expect(ends.map(({ checkpointNumber }) => checkpointNumber)).toEqual(ends.map((_, index) => index + 1));
    expect(ends[0]?.checkpointPath).toBe(join(folder.path, "checkpoints", "001-reading-big-files.md"));
    expect(readFileSync(join(folder.path, "checkpoints", "001-reading-big-files.md"), "utf8")).toMatch(
      /^# Reading big files\n\n<overview>/,
    );
    const live = new Conversation();
    for (const event of session.events) live.apply(event);
    await session.close();
    const again = await small([says("still here")], { resume: "session-1", store, events: session.events });
    await again.session.sendAndWait({ prompt: "and now?" });
    const shown = again.model.requests[0]?.messages ?? [];
    expect(shown.slice(0, -1)).toEqual(live.entries.map(({ message }) => message));
    expect(shown[0]?.content).toContain("Read the files");
  });

  it("the first message after a compaction contains todos and agents", async () => {
    const standing = async () => ({ todos: "- write-tests pending", agents: "- scout (explore) running" });
    const { session, model } = await small([summaries(summary()), ...full, says("ok")], {
      parts: { carriedState: standing },
    });
    await session.sendAndWait({ prompt: "go" });
    const [first] = model.requests.at(-1)?.messages ?? [];
    expect(first?.content).toContain("<todos>\n- write-tests pending\n</todos>");
    expect(first?.content).toContain("<agents>\n- scout (explore) running\n</agents>");
  });

  it("a compaction contains no secret, in the log, in the file or in what the model sees", async () => {
    await using folder = await tempFolder();
    const redactor = createRedactor({ values: [] });
    const secret = "ghp_0123456789abcdefghijABCDEFGHIJ456789";
    const { session, model } = await small(
      [summaries(summary(SUMMARY.replace("1. read", `1. the token is ${secret}`))), ...full, says("ok")],
      { parts: { writeSummary: summaryWriter(folder.path) }, redactor },
    );
    await session.sendAndWait({ prompt: "go" });
    expect(dataOf(session.events, "session.compaction_complete")).toMatchObject([{ success: true }]);
    expect(JSON.stringify(session.events)).not.toContain(secret);
    expect(readFileSync(join(folder.path, "checkpoints", "001-reading-big-files.md"), "utf8")).not.toContain(secret);
    expect(JSON.stringify(model.requests.at(-1))).not.toContain(secret);
  });

  it("R04 a conversation is the one before or after a compaction, whichever event a killed process wrote last", async () => {
    const { session } = await small([summaries(summary()), ...full, says("done")]);
    await session.sendAndWait({ prompt: "Read the files" });
    await session.close();
    const { events } = session;
    const place = events.findIndex(({ type }) => type === "session.compaction_complete");
    const asked = events.findIndex(({ type }) => type === "user.message");
    for (let length = asked + 1; length <= events.length; length++) {
      const store = await storeWith(events.slice(0, length));
      const again = await small([says("ok")], { resume: "session-1", store, compaction: { enabled: false } });
      await again.session.sendAndWait({ prompt: "go on" });
      const messages = again.model.requests[0]?.messages ?? [];
      expect(problemsOf(messages)).toEqual([]);
      expect(messages[0]?.content).toContain("Read the files");
      expect(messages[0]?.content.includes("<summary>")).toBe(length > place);
      await again.session.close();
    }
  });
});
