import { approveAll, type SessionEvent } from "@github/copilot-sdk";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { calls, says } from "../../src/testing/index.ts";
import { type ServerStage, serverStage } from "./stage.ts";

let stage: ServerStage;
beforeAll(async () => {
  stage = await serverStage();
});
afterAll(() => stage[Symbol.asyncDispose]());

const open = () => stage.client.createSession({ onPermissionRequest: approveAll });

describe("the state of a session over the contract", () => {
  it("a session is named by the user, and has a title otherwise", async () => {
    const session = await open();
    const titles: string[] = [];
    session.on("session.title_changed", ({ data }) => titles.push(data.title));
    expect(await session.rpc.name.get()).toEqual({ name: null });
    expect(await session.rpc.name.setAuto({ summary: "  found by itself " })).toEqual({ applied: true });
    expect(await session.rpc.name.get()).toEqual({ name: "found by itself" });
    await session.rpc.name.set({ name: "mine" });
    expect(await session.rpc.name.setAuto({ summary: "too late" })).toEqual({ applied: false });
    expect(await session.rpc.name.get()).toEqual({ name: "mine" });
    await expect(session.rpc.name.set({ name: " " })).rejects.toThrow(/empty/);
    expect(titles).toEqual(["found by itself", "mine"]);
  });

  it("ORC-84 a session has a mode that is changed by a call, with an event", async () => {
    const session = await open();
    const changed: unknown[] = [];
    session.on("session.mode_changed", ({ data }) => changed.push(data));
    expect(await session.rpc.mode.get()).toBe("interactive");
    await session.rpc.mode.set({ mode: "plan" });
    expect(await session.rpc.mode.get()).toBe("plan");
    expect(changed).toEqual([{ previousMode: "interactive", newMode: "plan" }]);
  });

  it("a session stores a plan and files, and allows no path outside its folder", async () => {
    const session = await open();
    const changes: string[] = [];
    session.on((event) => {
      if (event.type === "session.plan_changed") changes.push(event.data.operation);
      if (event.type === "session.workspace_file_changed") changes.push(`${event.data.operation} ${event.data.path}`);
    });
    expect(await session.rpc.plan.read()).toMatchObject({ exists: false, content: null });
    await session.rpc.plan.update({ content: "# one" });
    await session.rpc.plan.update({ content: "# two" });
    expect(await session.rpc.plan.read()).toMatchObject({ exists: true, content: "# two" });
    await session.rpc.plan.delete();
    await session.rpc.plan.delete();
    await session.rpc.workspaces.createFile({ path: "notes/a.txt", content: "hello" });
    expect(await session.rpc.workspaces.listFiles()).toEqual({ files: ["notes/a.txt"] });
    expect(await session.rpc.workspaces.readFile({ path: "notes/a.txt" })).toEqual({ content: "hello" });
    for (const path of ["../events.jsonl", "/etc/passwd", ".", "notes/../../x"]) {
      await expect(session.rpc.workspaces.readFile({ path })).rejects.toThrow(/workspace files directory/);
      await expect(session.rpc.workspaces.createFile({ path, content: "" })).rejects.toThrow(
        /workspace files directory/,
      );
    }
    expect(changes).toEqual(["create", "update", "delete", "create notes/a.txt"]);
    const { saved } = await session.rpc.workspaces.saveLargePaste({ content: "äöü" });
    expect(saved?.sizeBytes).toBe(6);
    expect(await session.rpc.workspaces.readFile({ path: saved?.filename ?? "" })).toEqual({ content: "äöü" });
  });

  it("a session reports its folders, its context usage and its activity", async () => {
    const session = await open();
    stage.play(says("Hello."));
    await session.sendAndWait("Hi");
    const snapshot = await session.rpc.metadata.snapshot();
    expect(snapshot).toMatchObject({
      sessionId: session.sessionId,
      isRemote: false,
      currentMode: "interactive",
      workingDirectory: stage.folder.at("work"),
      workspace: { id: session.sessionId },
    });
    expect(await session.rpc.metadata.isProcessing()).toEqual({ processing: false });
    expect(await session.rpc.metadata.activity()).toEqual({ abortable: false, hasActiveWork: false });
    const { contextInfo } = await session.rpc.metadata.contextInfo({ promptTokenLimit: 1000, outputTokenLimit: 100 });
    const { systemTokens = 0, conversationTokens = 0, toolDefinitionsTokens = 0, totalTokens } = contextInfo ?? {};
    expect(Math.min(systemTokens, conversationTokens, toolDefinitionsTokens)).toBeGreaterThan(0);
    expect(totalTokens).toBe(systemTokens + conversationTokens + toolDefinitionsTokens);
    const { contextAttribution } = await session.rpc.metadata.getContextAttribution();
    expect(contextAttribution?.entries.length).toBeGreaterThan(2);
    const metrics = await session.rpc.usage.getMetrics();
    expect(metrics.totalUserRequests).toBe(1);
    expect(Object.keys(metrics.modelMetrics)).toEqual(["faux-model"]);
  });

  it("SDK-15 a session gets its main agent by a call, and none again by another", async () => {
    const { writeFile, mkdir } = await import("node:fs/promises");
    await mkdir(stage.folder.at("work/.github/agents"), { recursive: true });
    await writeFile(
      stage.folder.at("work/.github/agents/reviewer.md"),
      "---\nname: reviewer\ndescription: Reviews\n---\nYou are the reviewer of this house.\n",
    );
    const session = await stage.client.createSession({ onPermissionRequest: approveAll, enableConfigDiscovery: true });
    const told: string[] = [];
    session.on(({ type }) => void (type.startsWith("subagent.") && told.push(type)));
    expect((await session.rpc.agent.list()).agents.map(({ name }) => name)).toEqual(["reviewer"]);
    expect(await session.rpc.agent.getCurrent()).toEqual({ agent: null });
    expect((await session.rpc.agent.select({ name: "reviewer" })).agent.name).toBe("reviewer");
    stage.play(says("Reviewed."));
    await session.sendAndWait("Review");
    expect(JSON.stringify(stage.model.requests.at(-1)?.body)).toContain("You are the reviewer of this house.");
    await expect(session.rpc.agent.select({ name: "nobody" })).rejects.toThrow("Custom agent 'nobody' not found");
    await session.rpc.agent.deselect();
    expect(await session.rpc.agent.getCurrent()).toEqual({ agent: null });
    stage.play(says("Plain."));
    await session.sendAndWait("And now?");
    expect(JSON.stringify(stage.model.requests.at(-1)?.body)).not.toContain("reviewer of this house");
    expect(told).toEqual(["subagent.selected", "subagent.deselected"]);
  });

  it("a session starts, lists, writes to and stops agents by calls", async () => {
    const session = await open();
    expect(await session.rpc.tasks.list()).toEqual({ tasks: [] });
    await expect(session.rpc.tasks.startAgent({ agentType: "no-such-agent", prompt: "x", name: "x" })).rejects.toThrow(
      /no-such-agent/,
    );
    stage.play(says("Found it."), says("Thank you."));
    const idle = new Promise((resolve) => session.on("session.idle", resolve));
    const { agentId } = await session.rpc.tasks.startAgent({
      agentType: "explore",
      prompt: "Look around.",
      name: "scout",
      description: "Looks around",
    });
    expect(agentId).toBe("scout");
    await idle;
    const { tasks } = await session.rpc.tasks.list();
    expect(tasks).toMatchObject([{ type: "agent", id: "scout", agentType: "explore", description: "Looks around" }]);
    expect(await session.rpc.tasks.sendMessage({ id: "nobody", message: "hello" })).toMatchObject({ sent: false });
    expect(await session.rpc.tasks.getProgress({ id: "nobody" })).toEqual({ progress: null });
    expect(await session.rpc.tasks.cancel({ id: "nobody" })).toEqual({ cancelled: false });
    expect(await session.rpc.tasks.remove({ id: "nobody" })).toEqual({ removed: false });
    expect(await session.rpc.tasks.getCurrentPromotable()).toEqual({});
    await session.rpc.tasks.cancel({ id: "scout" });
    expect(await session.rpc.tasks.remove({ id: "scout" })).toEqual({ removed: true });
    expect(await session.rpc.tasks.list()).toEqual({ tasks: [] });
  });

  it("ORC-64 a session starts a fleet by a call", async () => {
    const session = await open();
    const prompts: string[] = [];
    session.on("user.message", ({ data }) => prompts.push(data.content));
    stage.play(
      calls(["sql", { description: "plan", query: "INSERT INTO todos (id, title, status) VALUES ('a', 'A', 'done')" }]),
      says("The fleet is done."),
    );
    const idle = new Promise((resolve) => session.on("session.idle", resolve));
    expect(await session.rpc.fleet.start({ prompt: "Mend everything" })).toEqual({ started: true });
    await idle;
    expect(prompts).toEqual(["Fleet deployed: Mend everything"]);
    expect((await session.rpc.plan.readSqlTodos()).rows).toMatchObject([{ id: "a", status: "done" }]);
  });

  it("a session's events are read page by page, and awaited", async () => {
    const session = await open();
    await session.rpc.plan.update({ content: "#" });
    const first = await session.rpc.eventLog.read({ max: 1 });
    expect(first).toMatchObject({ events: [{ type: "session.start" }], cursorStatus: "ok", hasMore: true });
    const { cursor } = await session.rpc.eventLog.tail();
    expect(await session.rpc.eventLog.read({ cursor })).toMatchObject({ events: [], hasMore: false });
    const waiting = session.rpc.eventLog.read({ cursor, waitMs: 5_000, types: ["session.title_changed"] });
    await session.rpc.name.set({ name: "new" });
    const types = (await waiting).events.map((event: SessionEvent) => event.type);
    expect(types).toEqual(["session.title_changed"]);
    const { handle } = await session.rpc.eventLog.registerInterest({ eventType: "command.queued" });
    expect(await session.rpc.eventLog.releaseInterest({ handle })).toEqual({ success: true });
    expect(await session.rpc.eventLog.releaseInterest({ handle })).toEqual({ success: true });
  });
});
