import { execFileSync } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { approveAll, type CopilotSession, type SessionEvent } from "@github/copilot-sdk";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { calls, says, withUsage } from "../../src/testing/index.ts";
import { type ServerStage, serverStage } from "./stage.ts";

let stage: ServerStage;
beforeAll(async () => {
  stage = await serverStage();
  // A dollar for a million tokens: 10,000 of them are a cent, which is one credit.
  const models = { "faux-model": { price: { input: 1, output: 1 } } };
  const providers = { priced: { baseUrl: stage.model.baseUrl, apiKey: "k", models } };
  await stage.folder.files({ "home/providers.json": JSON.stringify({ providers }) });
});
afterAll(() => stage[Symbol.asyncDispose]());

const cents = (moves: ReturnType<typeof says>, count: number) =>
  withUsage(moves, { inputTokens: count * 10_000, outputTokens: 0 });

const open = (maxAiCredits?: number) =>
  stage.client.createSession({
    onPermissionRequest: approveAll,
    model: "priced/faux-model",
    ...(maxAiCredits !== undefined && { sessionLimits: { maxAiCredits } }),
  });

const told = (events: readonly SessionEvent[], type: string) =>
  events.filter((event) => event.type === type).map(({ data }) => data);

describe("the credit limit of a session, over the contract", () => {
  /** Hears every event, ephemeral ones too. */
  function heard(session: CopilotSession): SessionEvent[] {
    const events: SessionEvent[] = [];
    session.on((event) => events.push(event));
    return events;
  }

  it("a credit limit asks a client that can answer, and the work continues where it stopped", async () => {
    const session = await open(2);
    const events = heard(session);
    await session.rpc.eventLog.registerInterest({ eventType: "session_limits_exhausted.requested" });
    session.on("session_limits_exhausted.requested", ({ data: { requestId } }) => {
      const response = { action: "add", additionalAiCredits: 5 } as const;
      void session.rpc.ui.handlePendingSessionLimitsExhausted({ requestId, response });
    });
    stage.play(cents(calls(["view", { path: "a.txt" }]), 3), cents(says("done"), 1));
    expect((await session.sendAndWait("look"))?.data.content).toBe("done");
    const [asked] = told(events, "session_limits_exhausted.requested");
    expect(asked).toEqual({ requestId: expect.any(String), maxAiCredits: 2, usedAiCredits: 3 });
    expect(told(events, "session_limits_exhausted.completed")).toEqual([
      { requestId: Reflect.get(asked ?? {}, "requestId"), response: { action: "add", additionalAiCredits: 5 } },
    ]);
    expect(told(events, "session.session_limits_changed")).toEqual([{ sessionLimits: { maxAiCredits: 7 } }]);
    expect(told(events, "session.usage_checkpoint")).toEqual([{ totalNanoAiu: 4e9 }]);
    expect((await session.rpc.metadata.snapshot()).sessionLimits).toEqual({ maxAiCredits: 7 });
    expect((await session.rpc.usage.getMetrics()).totalNanoAiu).toBe(4e9);
    // Other options make the session anew; what was granted stays.
    await session.rpc.options.update({ reasoningEffort: "low" });
    expect((await session.rpc.metadata.snapshot()).sessionLimits).toEqual({ maxAiCredits: 7 });
    await session.rpc.options.update({ sessionLimits: null });
    expect((await session.rpc.metadata.snapshot()).sessionLimits).toBeNull();
    expect(told(events, "session.session_limits_changed").at(-1)).toEqual({ sessionLimits: null });
  });

  it("a credit limit ends the work when no client can answer, or the answer is no", async () => {
    const silent = await open(2);
    const events = heard(silent);
    stage.play(cents(calls(["view", { path: "a.txt" }]), 3));
    await silent.sendAndWait("look");
    expect(told(events, "session_limits_exhausted.requested")).toEqual([]);
    expect(told(events, "troupe.limit_reached")).toMatchObject([{ limit: "cost" }]);

    const session = await open(2);
    const more = heard(session);
    await session.rpc.eventLog.registerInterest({ eventType: "session_limits_exhausted.requested" });
    session.on("session_limits_exhausted.requested", async ({ data: { requestId } }) => {
      const answer = (response: object) =>
        session.rpc.ui.handlePendingSessionLimitsExhausted({ requestId, response: response as { action: "cancel" } });
      await expect(answer({ action: "add" })).rejects.toThrow(/Invalid params/);
      expect(await answer({ action: "cancel" })).toEqual({ success: true });
      expect(await answer({ action: "unset" })).toEqual({ success: false });
    });
    stage.play(cents(calls(["view", { path: "a.txt" }]), 3));
    await session.sendAndWait("look");
    expect(told(more, "session_limits_exhausted.completed")).toMatchObject([{ response: { action: "cancel" } }]);
    expect(told(more, "troupe.limit_reached")).toMatchObject([{ limit: "cost" }]);
    expect(told(more, "session.session_limits_changed")).toEqual([]);
  });
});

describe("the usage of a session, over the contract", () => {
  it("the usage of a session is counted since it began, even after a resume", async () => {
    const at = (name: string): string => join(stage.folder.at("work"), name);
    await writeFile(at("old.txt"), "one\ntwo\nthree\n");
    await writeFile(at("gone.txt"), "x\n");
    await writeFile(at("mine.txt"), "not the session's\n");
    execFileSync("git", ["init", "-q"], { cwd: stage.folder.at("work") });
    const session = await open();
    stage.play(
      calls(
        ["create", { path: at("new.txt"), file_text: "a\nb\n" }],
        ["edit", { path: at("old.txt"), old_str: "two", new_str: "2\n2.5" }],
        ["bash", { command: "rm gone.txt", description: "tidy" }],
      ),
      says("done"),
    );
    await session.sendAndWait("change");
    const expected = {
      linesAdded: 4,
      linesRemoved: 2,
      filesModifiedCount: 3,
      filesModified: [at("gone.txt"), at("new.txt"), at("old.txt")],
    };
    expect((await session.rpc.usage.getMetrics()).codeChanges).toEqual(expected);
    const diff = await session.rpc.workspaces.diff({ mode: "session" });
    expect({ ...diff, changes: diff.changes.map(({ path, changeType }) => `${changeType} ${path}`) }).toEqual({
      requestedMode: "session",
      mode: "session",
      isFallback: false,
      changes: ["deleted gone.txt", "added new.txt", "modified old.txt"],
    });
    expect(diff.changes[2]?.diff).toBe(
      "diff --git a/old.txt b/old.txt\n--- a/old.txt\n+++ b/old.txt\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n+2.5\n three\n",
    );
    const patched = execFileSync("git", ["apply", "--check", "-R", "-"], {
      cwd: stage.folder.at("work"),
      input: diff.changes.map((change) => change.diff).join(""),
    });
    expect(String(patched)).toBe("");
    const { sessionId } = session;
    await session.disconnect();
    const log = await readFile(stage.folder.at(`home/session-state/${sessionId}/events.jsonl`), "utf8");
    const { filesModifiedCount: _, ...last } = expected;
    expect(JSON.parse(log.trim().split("\n").at(-1) ?? "{}")).toMatchObject({
      type: "session.shutdown",
      data: { codeChanges: last },
    });
    await rm(at("new.txt"));
    const resumed = await stage.client.resumeSession(sessionId, { onPermissionRequest: approveAll });
    expect((await resumed.rpc.usage.getMetrics()).codeChanges.filesModified).toEqual([at("gone.txt"), at("old.txt")]);
    await writeFile(at("old.txt"), "one\ntwo \nthree\n");
    const spaces = await resumed.rpc.workspaces.diff({ mode: "session", ignoreWhitespace: true });
    expect(spaces.changes.map(({ path }) => path)).toEqual(["gone.txt"]);
  });
});
