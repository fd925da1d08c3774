import { approveAll, type SessionEvent } from "@github/copilot-sdk";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { calls, says, withFaults } from "../../src/testing/index.ts";
import { type ServerStage, serverStage } from "./stage.ts";

let stage: ServerStage;
beforeAll(async () => {
  stage = await serverStage();
  await stage.folder.files({
    "skills/knit/SKILL.md": "---\nname: knit\ndescription: How to knit\n---\nOne right, one left.",
  });
});
afterAll(() => stage[Symbol.asyncDispose]());

/** A reply that comes when the test says so. */
function held(text: string): { reply: ReturnType<typeof withFaults>; release: () => void } {
  let release = (): void => undefined;
  const stallUntil = new Promise<void>((resolve) => {
    release = resolve;
  });
  return { reply: withFaults(says(text), { stall: "headers", stallUntil }), release: () => release() };
}

describe("the message queue", () => {
  it("a client sees the queue, can remove messages, and the rest is answered in order", async () => {
    const session = await stage.client.createSession({});
    const first = held("first");
    stage.play(first.reply, says("second"));
    await session.send("one");
    await session.send("two");
    await session.send({ prompt: "three", displayPrompt: "3" });
    const { items, steeringMessages } = await session.rpc.queue.pendingItems();
    expect(items.map(({ kind, displayText }) => [kind, displayText])).toEqual([
      ["message", "two"],
      ["message", "3"],
    ]);
    expect(steeringMessages).toEqual([]);
    expect(await session.rpc.queue.removeMostRecent()).toEqual({ removed: true });
    const idle = new Promise((resolve) => session.on("session.idle", resolve));
    first.release();
    await idle;
    expect(
      (await session.getEvents()).flatMap((event) => (event.type === "user.message" ? [event.data.content] : [])),
    ).toEqual(["one", "two"]);
    expect(await session.rpc.queue.removeMostRecent()).toEqual({ removed: false });
    await session.disconnect();
    const resumed = await stage.client.resumeSession(session.sessionId, {});
    expect((await resumed.rpc.queue.pendingItems()).items).toEqual([]);
  });
});

describe("commands", () => {
  it("commands are listed by their source, and invoked", async () => {
    const session = await stage.client.createSession({
      commands: [{ name: "deploy", description: "Deploys.", handler: () => undefined }],
      skillDirectories: [stage.folder.at("skills")],
    });
    const { commands } = await session.rpc.commands.list({});
    const kinds = new Map(commands.map(({ name, kind }) => [name, kind]));
    expect([kinds.get("help"), kinds.get("knit"), kinds.get("deploy")]).toEqual(["builtin", "skill", "client"]);
    const only = await session.rpc.commands.list({ includeBuiltins: false, includeSkills: false });
    expect(only.commands.map(({ name }) => name)).toEqual(["deploy"]);
    expect(await session.rpc.commands.invoke({ name: "usage" })).toMatchObject({
      kind: "text",
      text: expect.any(String),
    });
    expect(await session.rpc.commands.invoke({ name: "review", input: "the last commit" })).toMatchObject({
      kind: "agent-prompt",
      prompt: expect.stringContaining("the last commit"),
      displayPrompt: "Review: the last commit",
    });
    expect(await session.rpc.commands.invoke({ name: "knit" })).toMatchObject({
      kind: "agent-prompt",
      prompt: expect.stringContaining("One right, one left."),
    });
    await expect(session.rpc.commands.invoke({ name: "nonsense" })).rejects.toThrow(/no command/);
  });

  it("unknown commands are offered to interested clients, one after another", async () => {
    const session = await stage.client.createSession({});
    const offered: SessionEvent[] = [];
    session.on("command.queued", (event) => offered.push(event));
    const { handle } = await session.rpc.eventLog.registerInterest({ eventType: "command.queued" });
    await session.rpc.commands.enqueue({ command: "/mine one" });
    await session.rpc.commands.enqueue({ command: "/mine two" });
    await session.rpc.commands.enqueue({ command: "/mine three" });
    await expect.poll(() => offered.length).toBe(1);
    expect((await session.rpc.queue.pendingItems()).items.map(({ displayText }) => displayText)).toEqual([
      "/mine two",
      "/mine three",
    ]);
    const answer = (index: number, result: { handled: true; stopProcessingQueue?: boolean }) =>
      session.rpc.commands.respondToQueuedCommand({
        requestId: Reflect.get(offered[index]?.data ?? {}, "requestId"),
        result,
      });
    expect(await answer(0, { handled: true })).toEqual({ success: true });
    await expect.poll(() => offered.length).toBe(2);
    expect(await answer(1, { handled: true, stopProcessingQueue: true })).toEqual({ success: true });
    expect(await answer(1, { handled: true })).toEqual({ success: false });
    await expect.poll(async () => (await session.rpc.queue.pendingItems()).items).toEqual([]);
    expect(offered).toHaveLength(2);
    await session.rpc.eventLog.releaseInterest({ handle });
  });
});

describe("autopilot", () => {
  it("autopilot over the contract continues until the agent declares the task done", async () => {
    const session = await stage.client.createSession({ onPermissionRequest: approveAll });
    stage.play(says("Half of it."), says("Nearly."), calls(["task_complete", { summary: "All of it." }]));
    const done = new Promise<SessionEvent>((resolve) => session.on("session.task_complete", resolve));
    await session.send({ prompt: "do it all", agentMode: "autopilot" });
    expect((await done).data).toMatchObject({ summary: "All of it." });
    const prompts = (await session.getEvents()).flatMap((event) => (event.type === "user.message" ? [event.data] : []));
    expect(prompts[0]).toMatchObject({ content: "do it all", agentMode: "autopilot" });
    expect(prompts.slice(1).every(({ source }) => source === "autopilot")).toBe(true);
    expect(prompts.length).toBeGreaterThan(1);
  });
});
