import { existsSync, readFileSync } from "node:fs";
import { symlink, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import {
  approveAll,
  CopilotClient,
  type CopilotSession,
  RuntimeConnection,
  type SessionEvent,
} from "copilot-sdk-1.0.14";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { calls, says, stalls } from "../../src/testing/index.ts";
import { type ServerStage, serverStage } from "./stage.ts";

const PATIENT = { timeout: 60_000 };

let stage: ServerStage;
let client: CopilotClient;
beforeAll(async () => {
  stage = await serverStage();
  client = new CopilotClient({
    connection: RuntimeConnection.forStdio({ path: resolve("bin/troupe.js"), env: stage.environment(), args: [] }),
    baseDirectory: stage.folder.at("home"),
    workingDirectory: stage.folder.at("work"),
  });
});
afterAll(async () => {
  await client.stop().catch(() => client.forceStop());
  await stage[Symbol.asyncDispose]();
});
afterEach(() => stage.play());

const opened = (more: Parameters<CopilotClient["createSession"]>[0] = {}): Promise<CopilotSession> =>
  client.createSession({ onPermissionRequest: approveAll, ...more });
const lastBody = (): string => JSON.stringify(stage.model.requests.at(-1)?.body);

/** Sends a request under any name. */
const asking =
  (session: CopilotSession) =>
  (method: string, params: object = {}): Promise<Record<string, unknown>> =>
    (Reflect.get(session, "connection") as { sendRequest(m: string, p: object): Promise<never> }).sendRequest(method, {
      sessionId: session.sessionId,
      ...params,
    });

describe("permissions of both SDK generations", () => {
  it("permissions of both SDK generations are the same switch, and a change is announced under both names", async () => {
    const session = await opened();
    const heard: object[] = [];
    session.on("session.permissions_changed", ({ data }) => void heard.push(data));
    const ask = asking(session);
    expect(await ask("session.permissions.getAllowAll")).toEqual({ enabled: false, mode: "off" });
    const on = { success: true, enabled: true, mode: "on" };
    expect(await ask("session.permissions.setAllowAll", { enabled: true })).toEqual(on);
    expect(await session.rpc.permissions.getMode()).toEqual({ mode: "allow-all" });
    expect(await session.rpc.permissions.setMode({ mode: "manual" })).toEqual({ success: true, mode: "manual" });
    const auto = { success: false, enabled: false, mode: "off" };
    expect(await ask("session.permissions.setAllowAll", { mode: "auto" })).toEqual(auto);
    await expect
      .poll(() => heard, PATIENT)
      .toEqual([
        { mode: "allow-all", previousMode: "manual", allowAllPermissions: true, previousAllowAllPermissions: false },
        { mode: "manual", previousMode: "allow-all", allowAllPermissions: false, previousAllowAllPermissions: true },
      ]);
    await session.disconnect();
  });
});

describe("tools of a client", () => {
  it("a client's tools can be replaced in an open session, and the agent learns of removed ones", async () => {
    const tool = (name: string) => ({ name, description: `Does ${name}.`, parameters: { type: "object" } });
    const session = await opened({ tools: [{ ...tool("old_tool"), handler: async () => "old" }] });
    stage.play(says("Ready."));
    await session.sendAndWait("Hello.");
    expect(lastBody()).toContain("old_tool");
    await session.rpc.tools.set({ tools: [tool("new_tool")] });
    stage.play(says("Changed."));
    await session.sendAndWait("And now?");
    const body = stage.model.requests.at(-1)?.body as { messages: { content: string }[]; tools: object[] };
    expect(JSON.stringify(body.tools)).toContain("new_tool");
    expect(JSON.stringify(body.tools)).not.toContain("old_tool");
    const contents = body.messages.map(({ content }) => JSON.stringify(content));
    const notice = contents.findIndex((content) => content.includes("tools_changed_notice"));
    expect(notice).toBeGreaterThan(0);
    expect(notice).toBeLessThan(contents.findIndex((content) => content.includes("And now?")));
    const { tools } = await session.rpc.tools.getBuiltinDescriptors({});
    expect(tools.find(({ name }) => name === "view")).toMatchObject({ isTerminal: false, type: "function" });
    await session.disconnect();
  });
});

describe("tasks of a client", () => {
  it("a client's tasks are listed beside agents, updated in order, and cancelled through the client", async () => {
    const session = await opened();
    const cancelled: string[] = [];
    Reflect.get(session, "clientSessionApis").tasks = {
      cancel: async ({ clientTaskId }: { clientTaskId: string }) => {
        cancelled.push(clientTaskId);
        return { cancelled: true };
      },
    };
    const wish = { type: "client", clientTaskId: "build", description: "Builds it", cancellable: true } as const;
    const { task, created } = await session.rpc.tasks.register(wish);
    expect(created).toBe(true);
    expect(task).toMatchObject({ type: "client", status: "running", sequence: 0, canCancel: true });
    const progress = { kind: "progress", message: "half", percentage: 50 } as const;
    const update = { id: task.id, sequence: 1, update: progress };
    expect(await session.rpc.tasks.update(update)).toMatchObject({ applied: true, duplicate: false });
    expect(await session.rpc.tasks.update(update)).toMatchObject({ applied: false, duplicate: true });
    expect(await session.rpc.tasks.getProgress({ id: task.id })).toMatchObject({
      progress: { type: "client", percentage: 50, lastMessage: "half" },
    });
    expect(await session.rpc.tasks.cancel({ id: task.id })).toEqual({ cancelled: true });
    expect(cancelled).toEqual(["build"]);
    await session.rpc.tasks.update({ id: task.id, sequence: 2, update: { kind: "completed", result: 1 } });
    const { tasks } = await session.rpc.tasks.list();
    expect(tasks).toEqual([expect.objectContaining({ type: "client", status: "completed", result: 1 })]);
    expect(await session.rpc.tasks.remove({ id: task.id })).toEqual({ removed: true });
    await session.disconnect();
  });

  it("a client's tasks are not shown to clients that do not support them", async () => {
    const session = await stage.client.createSession({ onPermissionRequest: approveAll as never });
    const ask = asking(session as unknown as CopilotSession);
    const wish = { type: "client", clientTaskId: "x", description: "", cancellable: false };
    await ask("session.tasks.register", wish);
    expect(await ask("session.tasks.list")).toEqual({ tasks: [] });
    await session.disconnect();
  });
});

describe("metadata of clients", () => {
  it("client metadata is set, removed, read of many sessions, and persists after the session was closed", async () => {
    const session = await opened();
    stage.play(says("Hi."));
    await session.sendAndWait("Hi.");
    await Promise.all([
      session.rpc.metadata.updateClientMetadata({ set: { a: "1" } }),
      session.rpc.metadata.updateClientMetadata({ set: { b: "2" } }),
    ]);
    const changed = await session.rpc.metadata.updateClientMetadata({ remove: ["a"], set: { c: "3" } });
    expect(changed).toEqual({ b: "2", c: "3" });
    const { sessionId } = session;
    await session.disconnect();
    expect(await client.rpc.sessions.getClientMetadata({ sessionIds: [sessionId, "none"], keys: ["c"] })).toEqual([
      { sessionId, status: "ok", metadata: { c: "3" } },
      { sessionId: "none", status: "notFound" },
    ]);
  });
});

describe("events of a session that is not open", () => {
  it("events of a closed session are read page by page, in both directions", async () => {
    const session = await opened();
    stage.play(says("Hi."));
    await session.sendAndWait("Hi.");
    const { sessionId } = session;
    await session.disconnect();
    const read: SessionEvent[] = [];
    let cursor: string | undefined;
    for (let more = true; more; ) {
      const page = await client.rpc.sessions.readPersistedEvents({ sessionId, max: 3, ...(cursor && { cursor }) });
      read.push(...page.events);
      cursor = page.cursor;
      more = page.hasMore;
    }
    expect(read[0]?.type).toBe("session.start");
    expect(new Set(read.map(({ id }) => id)).size).toBe(read.length);
    const back = await client.rpc.sessions.readPersistedEvents({ sessionId, max: 2, direction: "backward" });
    expect(back.events.map(({ id }) => id)).toEqual(
      read
        .slice(-2)
        .reverse()
        .map(({ id }) => id),
    );
    const expired = await client.rpc.sessions.readPersistedEvents({ sessionId, cursor: "gone" });
    expect(expired.cursorStatus).toBe("expired");
  });
});

describe("files of a session", () => {
  it("files are read, moved and removed inside the session's own folder only, without following links", async () => {
    const session = await opened();
    const { workspaces } = session.rpc;
    await workspaces.createFile({ path: "notes/a.md", content: "12345" });
    expect(await workspaces.statFile({ path: "notes/a.md" })).toMatchObject({ isFile: true, size: 5 });
    await expect(workspaces.createDirectory({ path: "deep/er" })).rejects.toThrow(/recursive/);
    await workspaces.createDirectory({ path: "deep/er", recursive: true });
    expect(await workspaces.statFile({ path: "deep/er" })).toMatchObject({ isDirectory: true });
    await workspaces.renamePath({ source: "notes/a.md", destination: "deep/er/b.md" });
    expect((await workspaces.listFiles()).files).toEqual(["deep/er/b.md"]);
    const { path: folder = "" } = await workspaces.getWorkspace();
    const outside = stage.folder.at("outside");
    await writeFile(outside, "precious");
    await symlink(stage.folder.at("."), join(folder, "files/out"));
    await expect(workspaces.statFile({ path: "out/outside" })).rejects.toThrow(/outside/);
    await expect(workspaces.removePath({ path: "out/outside" })).rejects.toThrow(/outside/);
    await expect(workspaces.renamePath({ source: "deep/er/b.md", destination: "../../x" })).rejects.toThrow(/outside/);
    await expect(workspaces.createDirectory({ path: "out/made" })).rejects.toThrow(/outside/);
    await workspaces.removePath({ path: "out", recursive: true });
    expect(readFileSync(outside, "utf8")).toBe("precious");
    await expect(workspaces.removePath({ path: "none" })).rejects.toThrow(/no none/);
    await workspaces.removePath({ path: "none", force: true });
    await expect(workspaces.removePath({ path: "deep" })).rejects.toThrow();
    await workspaces.removePath({ path: "deep", recursive: true });
    expect(existsSync(join(folder, "files/deep"))).toBe(false);
    await session.disconnect();
  });

  it("the session's files hold the objective of autopilot", async () => {
    const session = await opened();
    const { workspaces } = session.rpc;
    expect(await workspaces.autopilotObjectiveExists()).toEqual({ exists: false });
    expect(await workspaces.writeAutopilotObjective({ content: "Ship it" })).toEqual({ operation: "create" });
    expect(await workspaces.readAutopilotObjective()).toEqual({ content: "Ship it" });
    expect(await workspaces.deleteAutopilotObjective()).toEqual({ deleted: true });
    expect(await workspaces.readAutopilotObjective()).toEqual({ content: null });
    await session.disconnect();
  });
});

describe("the queue of a session", () => {
  it("the queue of a session is reordered, edited, copied and paused by its client", async () => {
    const session = await opened();
    const { queue } = session.rpc;
    await queue.setDrainPaused({ paused: true });
    await expect(queue.setDrainPaused({ paused: true })).rejects.toThrow(/queue_already_paused/);
    const first = await session.send("first");
    const second = await session.send("second");
    const texts = async () => (await queue.pendingItems()).items.map(({ displayText }) => displayText);
    expect(await texts()).toEqual(["first", "second"]);
    expect(await queue.moveItem({ id: second, toPosition: 0 })).toEqual({ changed: true });
    await queue.insertAt({ position: 1, message: { prompt: "between" } });
    expect(await queue.updateText({ id: first, prompt: "last" })).toEqual({ updated: true });
    const { id: copy } = await queue.duplicateAt({ id: second });
    expect(await texts()).toEqual(["second", "second", "between", "last"]);
    expect(await queue.removeAt({ id: copy })).toEqual({ removed: true });
    expect(await queue.sendNow({ id: second })).toEqual({ steered: false });
    stage.play(says("2"), says("b"), says("l"));
    const idle = new Promise<void>((done) => session.on("session.idle", () => done()));
    await queue.setDrainPaused({ paused: false });
    await idle;
    const said = (await session.getEvents()).flatMap((event) =>
      event.type === "user.message" ? [event.data.content] : [],
    );
    expect(said).toEqual(["second", "between", "last"]);
    await session.disconnect();
  });

  it("an inserted message and its copy are sent with the headers of the message", async () => {
    const session = await opened();
    const { queue } = session.rpc;
    await queue.setDrainPaused({ paused: true });
    await session.send("plain");
    const message = { prompt: "with a header", requestHeaders: { "x-of-message": "1" } };
    const { id } = await queue.insertAt({ position: 1, message });
    await queue.duplicateAt({ id });
    const before = stage.model.requests.length;
    stage.play(says("1"), says("2"), says("3"));
    const idle = new Promise<void>((done) => session.on("session.idle", () => done()));
    await queue.setDrainPaused({ paused: false });
    await idle;
    expect(stage.model.requests.slice(before).map(({ headers }) => headers["x-of-message"])).toEqual([
      undefined,
      "1",
      "1",
    ]);
    await session.disconnect();
  });

  it("the queue of a session is cleared when the main agent's answer is interrupted, unless it is to be kept", async () => {
    const session = await opened();
    expect(await session.rpc.interruptMainTurn({})).toEqual({ interrupted: false });
    stage.play(stalls());
    await session.send("wait");
    await session.send("dropped");
    await expect.poll(() => stage.model.requests.at(-1)?.body, PATIENT).toBeTruthy();
    expect(await session.rpc.interruptMainTurn({})).toEqual({ interrupted: true });
    expect((await session.rpc.queue.pendingItems()).items).toEqual([]);
    await session.disconnect();
  });
});

describe("the sandbox", () => {
  it("the sandbox is reported as required when the environment of the server requires it", async () => {
    const env = { ...stage.environment(), TROUPE_SANDBOX: "required" };
    const strict = new CopilotClient({
      connection: RuntimeConnection.forStdio({ path: resolve("bin/troupe.js"), env, args: [] }),
      baseDirectory: stage.folder.at("home"),
      workingDirectory: stage.folder.at("work"),
    });
    try {
      const session = await strict.createSession({ onPermissionRequest: approveAll });
      const status = await session.rpc.sandbox.getEnforcementStatus();
      expect(status).toMatchObject({ required: true });
      expect(status.blocked).toBe(status.reason !== undefined);
    } finally {
      await strict.stop();
    }
  });
});

describe("methods of other hosts", () => {
  it("a method of another host is answered in a form that callers handle", async () => {
    const session = await opened();
    const { rpc } = session;
    expect(await rpc.contentExclusion.checkPaths({ paths: ["a"] })).toEqual({
      available: false,
      checks: [{ path: "a", excluded: false }],
    });
    expect(await rpc.sandbox.getEnforcementStatus()).toEqual({ required: false, blocked: false });
    expect(await rpc.model.switchAutoTier({ autoTier: null })).toEqual({ status: "unchanged" });
    await expect(rpc.model.setAllowedModels({ allowedModels: [] })).rejects.toThrow(/cannot limit the models/);
    expect((await client.rpc.models.getBuiltInCatalog()).models.map(({ id }) => id)).toEqual(
      expect.arrayContaining([expect.any(String)]),
    );
    expect((await client.rpc.commands.list()).commands.map(({ name }) => name)).toContain("plan");
    expect(await client.rpc.hooks.discover({})).toEqual({ hooks: [], warnings: [], errors: [] });
    const { contextAttribution } = await rpc.metadata.getContextAttribution();
    expect(contextAttribution?.compactions).toEqual({ count: 0 });
    const { commands } = await rpc.commands.list({});
    expect(commands.map(({ name }) => name)).toContain("model");
    expect(await rpc.commands.invoke({ name: "model", input: "" })).toMatchObject({
      kind: "text",
      text: expect.stringContaining("faux-model"),
    });
    stage.play(calls(["view", { path: "a.txt" }]), says("Done."));
    await session.sendAndWait("go");
    await session.disconnect();
  });
});
