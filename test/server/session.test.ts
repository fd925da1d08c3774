import { spawn } from "node:child_process";
import { existsSync, readdirSync, rmSync, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import {
  approveAll,
  CopilotClient,
  type CopilotSession,
  RuntimeConnection,
  type SessionEvent,
} from "@github/copilot-sdk";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { calls, says } from "../../src/testing/index.ts";
import { hasBubblewrap } from "../shell/bubblewrap.ts";
import { troupe } from "../support/troupe.ts";
import { type ServerStage, serverStage } from "./stage.ts";

let stage: ServerStage;
beforeAll(async () => {
  stage = await serverStage();
});
afterAll(() => stage[Symbol.asyncDispose]());

const hasSandbox = await hasBubblewrap();
const types = (events: readonly SessionEvent[]): string[] => events.map(({ type }) => type);

describe("a session over the contract", () => {
  it("LOOP-18 SDK-32 a session is created, answers, and its history is read", async () => {
    const heard: SessionEvent[] = [];
    const session = await stage.client.createSession({
      onPermissionRequest: approveAll,
      onEvent: (event) => heard.push(event),
    });
    stage.play(calls(["view", { path: "a.txt" }]), says("It has two lines."));
    const answer = await session.sendAndWait("How long is a.txt?");
    expect(answer?.data.content).toBe("It has two lines.");
    expect(heard[0]?.type).toBe("session.start");
    expect(heard[0]?.parentId).toBeNull();
    expect(heard.at(-1)?.type).toBe("session.idle");
    const kept = await session.getEvents();
    expect(kept).toEqual(heard.filter(({ ephemeral }) => !ephemeral));
    expect(types(kept).filter((type) => /^(user|assistant\.message|tool)/.test(type))).toEqual([
      "user.message",
      "assistant.message",
      "tool.execution_start",
      "tool.execution_complete",
      "assistant.message",
    ]);
    await session.disconnect();
    await expect(session.getEvents()).rejects.toThrow(/Session not found/);
  });

  it("a session streams only on request", async () => {
    const session = await stage.client.createSession({ streaming: true, onPermissionRequest: approveAll });
    const deltas: string[] = [];
    session.on("assistant.message_delta", ({ data }) => deltas.push(data.deltaContent));
    stage.play(says("one two three"));
    await session.sendAndWait("count");
    expect(deltas.join("")).toBe("one two three");
    const quiet = await stage.client.createSession({ onPermissionRequest: approveAll });
    const heard: string[] = [];
    quiet.on(({ type }) => heard.push(type));
    stage.play(says("one two three"));
    await quiet.sendAndWait("count");
    expect(heard.filter((type) => type.endsWith("_delta"))).toEqual([]);
  });

  it("a session is resumed with its history by a client with another process", async () => {
    const session = await stage.client.createSession({ onPermissionRequest: approveAll });
    stage.play(says("Noted: 42."));
    await session.sendAndWait("Remember 42.");
    const before = await session.getEvents();
    await session.disconnect();
    const other = stage.newClient();
    const heard: SessionEvent[] = [];
    const resumed = await other.resumeSession(session.sessionId, {
      onPermissionRequest: approveAll,
      onEvent: (event) => heard.push(event),
    });
    stage.play(says("42."));
    expect((await resumed.sendAndWait("Which number?"))?.data.content).toBe("42.");
    expect((await resumed.getEvents()).slice(0, before.length)).toEqual(before);
    expect(heard[0]?.type).toBe("session.resume");
    const last = stage.model.requests.at(-1)?.request?.messages ?? [];
    expect(JSON.stringify(last)).toContain("Noted: 42.");
    await expect(other.resumeSession("no-such-session", {})).rejects.toThrow("Session not found: no-such-session");
  });

  it("a session moves between two processes that both have it open, and neither misses an event", async () => {
    const heard: SessionEvent[] = [];
    const session = await stage.client.createSession({ onEvent: (event) => heard.push(event) });
    stage.play(says("one"));
    await session.sendAndWait("first");
    const other = await stage.newClient().resumeSession(session.sessionId, {});
    stage.play(says("two"));
    await other.sendAndWait("second");
    stage.play(says("three"));
    expect((await session.sendAndWait("third"))?.data.content).toBe("three");
    const prompts = (await session.getEvents()).flatMap((event) =>
      event.type === "user.message" ? [event.data.content] : [],
    );
    expect(prompts).toEqual(["first", "second", "third"]);
    expect(heard.flatMap((event) => (event.type === "user.message" ? [event.data.content] : []))).toEqual(prompts);
    expect(new Set(heard.map(({ id }) => id)).size).toBe(heard.length);
    const busy = calls(["bash", { command: "sleep 30" }]);
    stage.play(busy);
    const asked = new Promise((resolve) => session.on("permission.requested", resolve));
    await session.send("work");
    await asked;
    await expect(stage.newClient().resumeSession(session.sessionId, {})).rejects.toThrow(/is in use by process/);
    await session.abort();
  });

  it.each(["--resume", "--session-id"])(
    "a session that is idle is handed to the command line (%s), and continues afterwards",
    async (flag) => {
      const session = await stage.client.createSession({ onPermissionRequest: approveAll });
      stage.play(says("one"));
      await session.sendAndWait("first");
      stage.play(says("two"));
      const { TROUPE_BASE_URL = "", TROUPE_MODEL = "" } = stage.environment();
      const ended = await troupe([flag, session.sessionId, "-p", "second"], {
        cwd: stage.folder.at("work"),
        home: stage.folder.at("home"),
        environment: { TROUPE_BASE_URL, TROUPE_MODEL },
      });
      expect(ended).toMatchObject({ code: 0, stdout: "two\n" });
      stage.play(says("three"));
      expect((await session.sendAndWait("third"))?.data.content).toBe("three");
    },
  );

  it("sessions are listed, described and deleted, and every client is notified", async () => {
    const told: string[] = [];
    const stop = stage.client.onLifecycle(({ type, sessionId }) => told.push(`${type} ${sessionId}`));
    const silent = await stage.client.createSession({});
    const session = await stage.client.createSession({});
    stage.play(says("hello"));
    await session.sendAndWait("Say hello");
    const listed = await stage.client.listSessions();
    expect(listed.map(({ sessionId }) => sessionId)).toContain(session.sessionId);
    expect(listed.map(({ sessionId }) => sessionId)).not.toContain(silent.sessionId);
    expect(await stage.client.getSessionMetadata(session.sessionId)).toMatchObject({
      summary: "Say hello",
      isRemote: false,
      context: { workingDirectory: stage.folder.at("work") },
    });
    expect(await stage.client.getLastSessionId()).toBe(session.sessionId);
    await stage.client.deleteSession(session.sessionId);
    expect(await stage.client.getSessionMetadata(session.sessionId)).toBeUndefined();
    await expect(stage.client.deleteSession(session.sessionId)).rejects.toThrow(/Session file not found/);
    stop();
    expect(told).toContain(`session.created ${session.sessionId}`);
    expect(told).toContain(`session.updated ${session.sessionId}`);
    expect(told.at(-1)).toBe(`session.deleted ${session.sessionId}`);
  });

  it("a session reports how it ended when it is shut down, even without a message", async () => {
    for (const [type, reason] of [
      ["routine", "enough"],
      ["error", "out of order"],
    ] as const) {
      const heard: SessionEvent[] = [];
      const session = await stage.client.createSession({
        onPermissionRequest: approveAll,
        onEvent: (event) => heard.push(event),
      });
      await session.rpc.shutdown({ type, reason });
      await expect.poll(() => types(heard).at(-1)).toBe("session.shutdown");
      const end = heard.at(-1)?.data;
      expect(end).toMatchObject({ shutdownType: type, ...(type === "error" && { errorReason: reason }) });
      await expect(session.send("late")).rejects.toThrow(/Session not found/);
    }
  });

  it.each(["session.suspend", "session.destroy"])(
    "a session reports how it ended by %s, even without a message",
    async (by) => {
      const heard: SessionEvent[] = [];
      const { sessionId } = await stage.client.createSession({ onEvent: (event) => heard.push(event) });
      await Reflect.get(stage.client, "connection").sendRequest(by, { sessionId });
      await expect.poll(() => types(heard).at(-1)).toBe("session.shutdown");
      expect(heard.at(-1)?.data).toMatchObject({
        ...{ shutdownType: "routine", currentModel: "faux-model", totalApiDurationMs: 0, modelMetrics: {} },
        sessionStartTime: expect.any(Number),
        codeChanges: { filesModified: [], linesAdded: 0, linesRemoved: 0 },
      });
    },
  );

  it("a session writes a client's own lines, stored or not", async () => {
    const session = await stage.client.createSession({});
    const heard: SessionEvent[] = [];
    session.on((event) => heard.push(event));
    await session.log("an info");
    await session.log("a warning", { level: "warning" });
    await session.log("for now", { ephemeral: true });
    expect(heard.map(({ type, data, ephemeral }) => ({ type, data, ephemeral }))).toEqual([
      { type: "session.info", data: { infoType: "notification", message: "an info" }, ephemeral: undefined },
      { type: "session.warning", data: { warningType: "notification", message: "a warning" }, ephemeral: undefined },
      { type: "session.info", data: { infoType: "notification", message: "for now" }, ephemeral: true },
    ]);
    expect((await session.getEvents()).map(({ id }) => id)).not.toContain(heard[2]?.id);
  });
});

describe("a server", () => {
  it("SDK-35 a server starts, answers and stops without leaving a process", async () => {
    const client = stage.newClient();
    await client.start();
    expect(await client.ping("you")).toMatchObject({ message: "pong: you", protocolVersion: 3 });
    expect(await client.getStatus()).toMatchObject({ protocolVersion: 3 });
    expect(await client.getForegroundSessionId()).toBeUndefined();
    await expect(client.setForegroundSessionId("x")).rejects.toThrow("Not running in TUI+server mode");
    expect(await client.stop()).toEqual([]);
  });

  it.runIf(process.env.TROUPE_SLOW)(
    "a server ends when the program that started it is gone, and no client is left",
    async () => {
      const program = `
      import { CopilotClient, RuntimeConnection } from "@github/copilot-sdk";
      const client = new CopilotClient({ connection: RuntimeConnection.forTcp({ path: ${JSON.stringify(resolve("bin/troupe.js"))} }) });
      await client.start();
      console.log(client.cliProcess.pid);
      setInterval(() => undefined, 1000);`;
      const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
        env: { ...stage.environment(), TROUPE_HOME: stage.folder.at("home") },
        stdio: ["ignore", "pipe", "inherit"],
      });
      const pid = Number(await new Promise<Buffer>((heard) => child.stdout.once("data", heard)));
      expect(() => process.kill(pid, 0)).not.toThrow();
      child.kill("SIGKILL");
      const isThere = (): boolean => existsSync(`/proc/${pid}`);
      await expect.poll(isThere, { interval: 200 }).toBe(false);
    },
  );

  it("a server names a flag that it does not know", async () => {
    const client = stage.newClient({ args: ["--nonexistent-flag-for-testing"] });
    await expect(client.start()).rejects.toThrow(/stderr.*nonexistent/s);
  });

  it("a server lets clients in by their token, and no others", async () => {
    const first = stage.newClient({ transport: "tcp" });
    await first.start();
    const port = Reflect.get(first, "runtimePort");
    const stranger = new CopilotClient({ connection: RuntimeConnection.forUri(`localhost:${port}`) });
    await expect(stranger.start()).rejects.toThrow(/AUTHENTICATION_FAILED/);
    await stranger.forceStop();
    const connectionToken = Reflect.get(first, "effectiveConnectionToken");
    const second = new CopilotClient({
      connection: RuntimeConnection.forUri(`localhost:${port}`, { connectionToken }),
    });
    await second.start();
    const session = await first.createSession({});
    const joined = await second.resumeSession(session.sessionId, {});
    const heard: string[] = [];
    joined.on(({ type }) => heard.push(type));
    stage.play(says("to both"));
    await session.sendAndWait("hello");
    await expect.poll(() => heard.at(-1)).toBe("session.idle");
    expect(await second.stop()).toEqual([]);
    stage.play(says("to one"));
    expect((await session.sendAndWait("still there?"))?.data.content).toBe("to one");
  });

  // The last test of the file: it deletes the state of the others.
  it.runIf(hasSandbox)("a server runs sandboxed commands after its state folder was emptied", async () => {
    const run = async (session: CopilotSession, command: string): Promise<string> => {
      stage.play(calls(["bash", { command }]), says("Done."));
      const results: string[] = [];
      const stop = session.on("tool.execution_complete", ({ data }) => results.push(data.result?.content ?? ""));
      await session.sendAndWait("Run it");
      stop();
      return results.join();
    };
    const open = () => stage.client.createSession({ onPermissionRequest: approveAll });
    const before = await open();
    expect(await run(before, "echo before")).toMatch(/^before\n/);
    // Everything but the logs and their locks: without those no event can be stored.
    const home = stage.folder.at("home");
    for (const entry of readdirSync(home, { recursive: true })) {
      const path = join(home, String(entry));
      const inside = existsSync(path) && statSync(path).isDirectory() ? readdirSync(path, { recursive: true }) : [path];
      if (!inside.some((name) => /^(events\.jsonl|lock)$/.test(basename(String(name)))))
        rmSync(path, { recursive: true, force: true });
    }
    expect(await run(before, "echo open")).toMatch(/^open\n/);
    expect(await run(await open(), "echo new")).toMatch(/^new\n/);
  });
});
