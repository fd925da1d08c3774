import { approveAll, type CopilotClient, type CopilotSession, type SessionEvent } from "@github/copilot-sdk";
import { afterEach, describe, expect, it } from "vitest";
import { calls, says } from "../../src/testing/index.ts";
import { shared } from "../support/second-look.ts";
import { joining, type ServerStage, serverStage } from "./stage.ts";

let stage: ServerStage;
const joined: CopilotClient[] = [];
shared(
  async () => {
    stage = await serverStage({ transport: "tcp" });
    await stage.client.start();
  },
  () => stage[Symbol.asyncDispose](),
);
afterEach(() => Promise.all(joined.splice(0).map((client) => client.forceStop())));

function another(): CopilotClient {
  const client = joining(stage.client);
  joined.push(client);
  return client;
}

/** A tool whose end is in the test's hands. */
function slowTool(name: string) {
  let finish: (text: string) => void = () => undefined;
  let begin: () => void = () => undefined;
  const answer = new Promise<string>((resolve) => {
    finish = resolve;
  });
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  let runs = 0;
  const handler = (): Promise<string> => {
    runs++;
    begin();
    return answer;
  };
  return {
    tool: { name, skipPermission: true, handler },
    begun,
    finish: (text: string) => finish(text),
    runs: () => runs,
  };
}

const next = (session: CopilotSession, type: SessionEvent["type"]): Promise<SessionEvent> =>
  new Promise((resolve) => {
    const stop = session.on((event) => {
      if (event.type !== type) return;
      stop();
      resolve(event);
    });
  });

/** The request that the session made for its only call. */
async function requestedCall(session: CopilotSession): Promise<string> {
  for (const event of await session.getEvents())
    if (event.type === "external_tool.requested") return event.data.requestId;
  throw new Error("no tool was requested");
}

const offered = (): string[] => stage.model.requests.at(-1)?.request?.tools.map(({ name }) => name) ?? [];

describe("several clients on one session", () => {
  it("several clients get all events, bring tools of their own, and the first answer counts", async () => {
    const first = await stage.client.createSession({
      tools: [{ name: "one", skipPermission: true, handler: () => "1" }],
    });
    const heard: SessionEvent[] = [];
    let decided = 0;
    const decide = (): { kind: "approve-once" } => {
      decided++;
      return { kind: "approve-once" };
    };
    const second = await another().resumeSession(first.sessionId, {
      tools: [{ name: "two", handler: () => "2" }],
      onPermissionRequest: decide,
      onEvent: (event) => heard.push(event),
    });
    const third = await another().resumeSession(first.sessionId, { onPermissionRequest: decide });
    expect(third.sessionId).toBe(first.sessionId);
    expect(heard.find(({ type }) => type === "session.resume")?.data).toMatchObject({ sessionWasActive: true });
    stage.play(calls(["one", {}], ["two", {}]), says("1 and 2"));
    expect((await first.sendAndWait("both"))?.data.content).toBe("1 and 2");
    expect(decided).toBe(2);
    const completed = (await second.getEvents()).filter(({ type }) => type === "permission.completed");
    expect(completed).toHaveLength(1);
    await expect.poll(() => heard.at(-1)?.type).toBe("session.idle");
    const clash = another().resumeSession(first.sessionId, { tools: [{ name: "one", handler: () => "" }] });
    await expect(clash).rejects.toThrow("External tool name clash: one already registered by another connection");
  });

  it("a client that disconnects takes its tools, commands and forms with it, without harm to others", async () => {
    const first = await stage.client.createSession({});
    const changes: SessionEvent[] = [];
    first.on((event) => {
      if (event.type === "commands.changed" || event.type === "capabilities.changed") changes.push(event);
    });
    const guest = another();
    await guest.resumeSession(first.sessionId, {
      tools: [{ name: "borrowed", skipPermission: true, handler: () => "lent" }],
      commands: [{ name: "shout", description: "Shouts.", handler: () => undefined }],
      onElicitationRequest: () => ({ action: "decline" }),
    });
    expect(first.capabilities.ui?.elicitation).toBe(true);
    stage.play(says("hello"));
    await first.sendAndWait("hello");
    expect(offered()).toContain("borrowed");
    await guest.forceStop();
    await expect.poll(() => changes.length).toBe(4);
    expect(changes.map(({ data }) => data)).toEqual([
      { commands: [{ name: "shout", description: "Shouts." }] },
      { ui: { elicitation: true } },
      { commands: [] },
      { ui: { elicitation: false } },
    ]);
    stage.play(says("alone"));
    await first.sendAndWait("and now?");
    expect(offered()).not.toContain("borrowed");
    const shown = JSON.stringify(stage.model.requests.at(-1)?.request?.messages);
    expect(shown).toContain("Tools no longer available: borrowed");
  });

  it("a tool of a client that is back at once is not reported", async () => {
    const first = await stage.client.createSession({});
    const tools = [{ name: "borrowed", skipPermission: true, handler: () => "lent" }];
    const guest = another();
    await guest.resumeSession(first.sessionId, { tools });
    await guest.forceStop();
    await expect
      .poll(() =>
        another()
          .resumeSession(first.sessionId, { tools })
          .then(
            () => true,
            () => false,
          ),
      )
      .toBe(true);
    stage.play(says("hello"));
    await first.sendAndWait("hello");
    expect(offered()).toContain("borrowed");
    expect(JSON.stringify(stage.model.requests.at(-1)?.request?.messages)).not.toContain("no longer available");
  });

  it("clients replay what they missed without a gap and nothing twice", async () => {
    const first = await stage.client.createSession({ onPermissionRequest: approveAll });
    stage.play(calls(["view", { path: "a.txt" }]), calls(["view", { path: "a.txt" }]), says("done"));
    const running = first.sendAndWait("look");
    const late: SessionEvent[] = [];
    const joiner = await another().resumeSession(first.sessionId, {
      onEvent: (event) => late.push(event),
    });
    const before = await joiner.getEvents();
    await running;
    await expect.poll(() => late.at(-1)?.type).toBe("session.idle");
    const all = await first.getEvents();
    const known = new Set(before.map(({ id }) => id));
    const after = late.filter(({ id, ephemeral }) => !ephemeral && !known.has(id));
    expect([...before, ...after]).toEqual(all);
  });
});

describe("work that waits for a client", () => {
  it("work that waits for a client survives its disconnect, and is done by the next one", async () => {
    const slow = slowTool("slow");
    const lost = another();
    const session = await lost.createSession({ tools: [slow.tool] });
    stage.play(calls(["slow", {}]), says("it said: late"));
    await session.send("go");
    await slow.begun;
    const requestId = await requestedCall(session);
    await lost.forceStop();
    const again = slowTool("slow");
    const resumed = await another().resumeSession(session.sessionId, {
      tools: [again.tool],
      continuePendingWork: true,
    });
    const idle = next(resumed, "session.idle");
    expect(await resumed.rpc.tools.handlePendingToolCall({ requestId, result: "late" })).toEqual({ success: true });
    expect(await resumed.rpc.tools.handlePendingToolCall({ requestId, result: "too late" })).toEqual({
      success: false,
    });
    await idle;
    expect(again.runs()).toBe(0);
    const [event] = (await resumed.getEvents()).filter(({ type }) => type === "session.resume");
    expect(event?.data).toMatchObject({ continuePendingWork: true, sessionWasActive: false });
  });

  it("an undecided permission is shown to the next client, which can decide", async () => {
    const lost = another();
    const session = await lost.createSession({});
    const asked = next(session, "permission.requested");
    stage.play(calls(["create", { path: "later.txt", file_text: "x" }]), says("written"));
    await session.send("write");
    await asked;
    await lost.forceStop();
    const resumed = await another().resumeSession(session.sessionId, { continuePendingWork: true });
    const { items } = await resumed.rpc.permissions.pendingRequests();
    expect(items).toMatchObject([{ request: { kind: "write", fileName: expect.stringContaining("later.txt") } }]);
    const idle = next(resumed, "session.idle");
    const decision = { requestId: items[0]?.requestId ?? "", result: { kind: "approve-once" as const } };
    expect(await resumed.rpc.permissions.handlePendingPermissionRequest(decision)).toEqual({ success: true });
    await idle;
    expect(await stage.folder.read("work/later.txt")).toBe("x");
  });

  it("a permission stays open when the next client has no handler", async () => {
    const lost = another();
    const session = await lost.createSession({});
    const asked = next(session, "permission.requested");
    stage.play(calls(["create", { path: "kept.txt", file_text: "x" }]), says("written"));
    await session.send("write");
    await asked;
    await lost.forceStop();
    let asks = 0;
    const resumed = await another().resumeSession(session.sessionId, {
      continuePendingWork: true,
      onPermissionRequest: () => {
        asks++;
        return { kind: "user-not-available" };
      },
    });
    await expect.poll(() => asks).toBe(1);
    const { items } = await resumed.rpc.permissions.pendingRequests();
    const idle = next(resumed, "session.idle");
    const decision = { requestId: items[0]?.requestId ?? "", result: { kind: "approve-once" as const } };
    expect(await resumed.rpc.permissions.handlePendingPermissionRequest(decision)).toEqual({ success: true });
    await idle;
    expect(await stage.folder.read("work/kept.txt")).toBe("x");
  });

  it("work that waits for a client ends as interrupted where the next one does not continue it", async () => {
    const slow = slowTool("slow");
    const lost = another();
    const session = await lost.createSession({ tools: [slow.tool] });
    stage.play(calls(["slow", {}]));
    await session.send("go");
    await slow.begun;
    const requestId = await requestedCall(session);
    await lost.forceStop();
    const asked = stage.model.requests.length;
    const resumed = await another().resumeSession(session.sessionId, { continuePendingWork: false });
    expect(await resumed.rpc.tools.handlePendingToolCall({ requestId, result: "late" })).toEqual({ success: false });
    const [end] = (await resumed.getEvents()).filter(({ type }) => type === "tool.execution_complete");
    expect(end?.data).toMatchObject({ success: false });
    expect(stage.model.requests).toHaveLength(asked);
    stage.play(says("then so"));
    expect((await resumed.sendAndWait("go on"))?.data.content).toBe("then so");
  });

  it("work that waits for a client is cancelled when the session is suspended, which can be resumed", async () => {
    const session = await stage.client.createSession({});
    const asked = next(session, "permission.requested");
    stage.play(calls(["create", { path: "never.txt", file_text: "x" }]));
    await session.send("write");
    await asked;
    const completed = next(session, "permission.completed");
    await session.rpc.suspend();
    expect((await completed).data).toMatchObject({ result: { kind: "cancelled", reason: "Session suspended" } });
    const resumed = await stage.client.resumeSession(session.sessionId, { onPermissionRequest: approveAll });
    stage.play(says("here again"));
    expect((await resumed.sendAndWait("hello"))?.data.content).toBe("here again");
  });

  it("an abort stops work that waits for a client, and the session can be used", async () => {
    const slow = slowTool("slow");
    const session = await stage.client.createSession({ tools: [slow.tool] });
    stage.play(calls(["slow", {}]));
    const idle = next(session, "session.idle");
    await session.send("go");
    await slow.begun;
    await session.abort();
    expect((await idle).data).toEqual({ aborted: true });
    expect((await session.getEvents()).filter(({ type }) => type === "abort")).toHaveLength(1);
    await session.abort();
    stage.play(says("yes"));
    expect((await session.sendAndWait("still there?"))?.data.content).toBe("yes");
  });
});
