import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import {
  approveAll,
  type CopilotClient,
  type CopilotSession,
  type PermissionRequestResult,
  type SessionEvent,
} from "@github/copilot-sdk";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { calls, says, stalls } from "../../src/testing/index.ts";
import { type ServerStage, serverStage } from "./stage.ts";

/** Every test has servers of its own: they are killed. */
let stage: ServerStage;
beforeEach(async () => {
  stage = await serverStage();
});
afterEach(() => stage[Symbol.asyncDispose]());

async function kill(client: CopilotClient): Promise<void> {
  const server = Reflect.get(client, "cliProcess") as ChildProcess;
  const gone = once(server, "exit");
  server.kill("SIGKILL");
  await gone;
  await client.forceStop();
}

/** The ways in which a server ends while something waits for a client. */
const endings: readonly (readonly [string, (client: CopilotClient, session: CopilotSession) => Promise<unknown>])[] = [
  ["kill -9", (client) => kill(client)],
  ["runtime.shutdown", (client) => client.stop()],
  [
    "session.suspend",
    async (client, session) => {
      await session.rpc.suspend();
      await kill(client);
    },
  ],
];

/** What a session says, to be waited for: nothing is missed, whenever it is asked for. */
function listening() {
  const heard: SessionEvent[] = [];
  const onEvent = (event: SessionEvent): void => void heard.push(event);
  const until = async <T extends SessionEvent["type"]>(type: T, count = 1) => {
    const found = () => heard.filter((event): event is Extract<SessionEvent, { type: T }> => event.type === type);
    await expect.poll(() => found().length, { interval: 5 }).toBeGreaterThanOrEqual(count);
    return found();
  };
  return { heard, onEvent, until };
}

const leaves = (): PermissionRequestResult => ({ kind: "no-result" });
const effect = (line: string) =>
  ["bash", { command: `echo ${line} >> effects.txt`, description: "An effect." }] as const;
const effects = (): Promise<string> => stage.folder.read("work/effects.txt").catch(() => "");
const shownTo = (model = stage.model): string => JSON.stringify(model.requests.at(-1)?.request?.messages);
const endsOf = (events: readonly SessionEvent[]) =>
  events.flatMap((event) => (event.type === "tool.execution_complete" ? [event.data] : []));

/** A session whose agent wants to have an effect and has not been permitted to. */
async function askedForEffect(client = stage.newClient()) {
  const ear = listening();
  stage.play(calls(effect("once")));
  const session = await client.createSession({ onPermissionRequest: leaves, onEvent: ear.onEvent });
  await session.send("go");
  const [asked] = await ear.until("permission.requested");
  return { client, session, requestId: asked?.data.requestId ?? "" };
}

async function resumed(sessionId: string, more: object = {}) {
  const client = stage.newClient();
  const ear = listening();
  const options = { continuePendingWork: true, onPermissionRequest: leaves, onEvent: ear.onEvent, ...more };
  return { client, ear, session: await client.resumeSession(sessionId, options) };
}

const approve = (session: CopilotSession, requestId: string) =>
  session.rpc.permissions.handlePendingPermissionRequest({ requestId, result: { kind: "approve-once" } });

describe.each(endings)("an undecided permission when the server ends by %s", (_, end) => {
  it("an undecided permission is asked again under its old id, and its call happens once", async () => {
    const first = await askedForEffect();
    await end(first.client, first.session);
    const { session, ear } = await resumed(first.session.sessionId);
    const { items } = await session.rpc.permissions.pendingRequests();
    expect(items).toMatchObject([{ requestId: first.requestId, request: { kind: "commands" } }]);
    const [again] = await ear.until("permission.requested");
    expect(again).toMatchObject({ ephemeral: true, data: { requestId: first.requestId } });
    stage.play(says("done"));
    expect(await approve(session, first.requestId)).toEqual({ success: true });
    await ear.until("session.idle");
    expect(await effects()).toBe("once\n");
    const events = await session.getEvents();
    expect(endsOf(events)).toMatchObject([{ success: true }]);
    expect(events.filter(({ type }) => type === "permission.requested")).toHaveLength(1);
    expect(events.flatMap((event) => (event.type === "assistant.turn_start" ? [event.data.turnId] : []))).toEqual([
      "0",
      "1",
    ]);
    expect(events.filter(({ type }) => type === "assistant.turn_end")).toHaveLength(2);
    expect(events.some(({ type }) => type === "abort")).toBe(false);
    expect(await approve(session, first.requestId)).toEqual({ success: false });
  });
});

describe.each(endings)("a tool of a client that has not answered when the server ends by %s", (_, end) => {
  it("a client's unanswered tool call is answered by the next client, and not run again", async () => {
    let runs = 0;
    const slow = { name: "slow", skipPermission: true, handler: () => ++runs && new Promise<string>(() => undefined) };
    const client = stage.newClient();
    const ear = listening();
    stage.play(calls(["slow", { of: "mine" }]));
    const before = await client.createSession({ tools: [slow], onEvent: ear.onEvent });
    await before.send("go");
    const [asked] = await ear.until("external_tool.requested");
    await expect.poll(() => runs).toBe(1);
    const requestId = asked?.data.requestId ?? "";
    await end(client, before);
    const { session, ear: late } = await resumed(before.sessionId, { tools: [slow] });
    stage.play(says("it said: late"));
    expect(await session.rpc.tools.handlePendingToolCall({ requestId, result: "late" })).toEqual({ success: true });
    expect(await session.rpc.tools.handlePendingToolCall({ requestId, result: "no" })).toEqual({ success: false });
    await late.until("session.idle");
    expect(runs).toBe(1);
    expect(endsOf(await session.getEvents())).toMatchObject([{ success: true, result: { content: "late" } }]);
    expect(shownTo()).toContain("late");
  });
});

describe("work that waits when its server is killed", () => {
  it("pending work is interrupted where the next client does not continue it", async () => {
    const first = await askedForEffect();
    await kill(first.client);
    const { session } = await resumed(first.session.sessionId, { continuePendingWork: false });
    expect(await session.rpc.permissions.pendingRequests()).toEqual({ items: [] });
    expect(await approve(session, first.requestId)).toEqual({ success: false });
    expect(endsOf(await session.getEvents())).toMatchObject([{ success: false, error: { code: "interrupted" } }]);
    stage.play(says("then so"));
    expect((await session.sendAndWait("hello"))?.data.content).toBe("then so");
    expect(await effects()).toBe("");
  });

  it("pending work survives several servers", async () => {
    const first = await askedForEffect();
    await kill(first.client);
    for (let round = 0; round < 2; round++) {
      const { client, ear, session } = await resumed(first.session.sessionId);
      await ear.until("permission.requested");
      expect((await session.rpc.permissions.pendingRequests()).items).toMatchObject([{ requestId: first.requestId }]);
      await kill(client);
    }
    const { session, ear } = await resumed(first.session.sessionId, { onPermissionRequest: approveAll });
    stage.play(says("done"));
    await ear.until("session.idle");
    expect(await effects()).toBe("once\n");
    expect(endsOf(await session.getEvents())).toHaveLength(1);
  });

  it("pending work is reported once as cancelled where it is not continued", async () => {
    const client = stage.newClient();
    const ear = listening();
    stage.play(calls(effect("never")));
    const before = await client.createSession({
      onPermissionRequest: () => ({ kind: "no-result" }),
      onEvent: ear.onEvent,
    });
    await before.send("go");
    const [asked] = await ear.until("permission.requested");
    await kill(client);
    for (let opening = 1; opening <= 2; opening++) {
      const next = stage.newClient();
      const session = await next.resumeSession(before.sessionId, { onPermissionRequest: approveAll });
      const ends = (await session.getEvents()).filter(({ type }) => type === "permission.completed");
      expect(ends.map(({ data }) => data)).toMatchObject([
        { requestId: asked?.data.requestId, result: { kind: "cancelled" } },
      ]);
      await next.stop();
    }
  });

  it("pending work is not run a second time once it has been permitted", async () => {
    const client = stage.newClient();
    const ear = listening();
    const command = "echo once >> effects.txt; sleep 60";
    stage.play(calls(["bash", { command, description: "An effect that takes its time." }]));
    const before = await client.createSession({ onPermissionRequest: approveAll, onEvent: ear.onEvent });
    await before.send("go");
    await expect.poll(effects).toBe("once\n");
    await kill(client);
    stage.play(says("the answer that was still owed"), says("so it was cut off"));
    const { session } = await resumed(before.sessionId, { onPermissionRequest: approveAll });
    expect(await session.rpc.permissions.pendingRequests()).toEqual({ items: [] });
    expect(endsOf(await session.getEvents())).toMatchObject([{ success: false, error: { code: "interrupted" } }]);
    await session.send("what became of it?");
    const words = async (): Promise<string[]> =>
      (await session.getEvents()).flatMap((event) => (event.type === "assistant.message" ? [event.data.content] : []));
    // The idle event after the first of the two answers would end a wait for the second.
    await expect.poll(words).toEqual([expect.any(String), "the answer that was still owed", "so it was cut off"]);
    expect(await effects()).toBe("once\n");
  });

  it("pending work keeps what its siblings did, and names what was cut off", async () => {
    const client = stage.newClient();
    const ear = listening();
    let quick = 0;
    const tools = [
      { name: "quick", skipPermission: true, handler: () => `q${++quick}` },
      { name: "slow", skipPermission: true, handler: () => new Promise<string>(() => undefined) },
    ];
    const cutOff = [
      "bash",
      { command: "echo began >> effects.txt; sleep 60", description: "Takes its time." },
    ] as const;
    stage.play(calls(["quick", {}], ["slow", {}], effect("once"), cutOff));
    const before = await client.createSession({
      tools,
      onEvent: ear.onEvent,
      onPermissionRequest: (request) =>
        JSON.stringify(request).includes("began") ? { kind: "approve-once" } : { kind: "no-result" },
    });
    await before.send("all of it");
    await ear.until("permission.requested", 2);
    await ear.until("tool.execution_complete");
    const [asked] = (await ear.until("external_tool.requested", 2)).filter(({ data }) => data.toolName === "slow");
    await expect.poll(effects).toBe("began\n");
    await kill(client);
    const { session, ear: late } = await resumed(before.sessionId);
    const { items } = await session.rpc.permissions.pendingRequests();
    expect(items).toHaveLength(1);
    stage.play(says("done"));
    const requestId = asked?.data.requestId ?? "";
    expect(await session.rpc.tools.handlePendingToolCall({ requestId, result: "slowly" })).toEqual({ success: true });
    expect(await approve(session, items[0]?.requestId ?? "")).toEqual({ success: true });
    await late.until("session.idle");
    expect(await effects()).toBe("began\nonce\n");
    expect(quick).toBe(1);
    const ends = endsOf(await session.getEvents());
    expect(ends.map(({ success, result, error }) => (success ? result?.content : error?.code)).sort()).toEqual(
      ["interrupted", "q1", "slowly", expect.stringContaining("exited with exit code 0")].sort(),
    );
  });

  it("a user who had not answered is asked again after the server was killed", async () => {
    const client = stage.newClient();
    const ear = listening();
    stage.play(calls(["ask_user", { question: "Which colour?" }]));
    const never = (): Promise<never> => new Promise(() => undefined);
    const before = await client.createSession({ onUserInputRequest: never, onEvent: ear.onEvent });
    await before.send("go");
    const [asked] = await ear.until("user_input.requested");
    await kill(client);
    stage.play(says("blue then"));
    const { ear: late } = await resumed(before.sessionId, {
      onUserInputRequest: ({ question }: { question: string }) => ({ answer: `${question} Blue`, wasFreeform: true }),
    });
    expect((await late.until("user_input.requested"))[0]?.data.requestId).toBe(asked?.data.requestId);
    await late.until("session.idle");
    expect(shownTo()).toContain("Which colour? Blue");
  });

  it("pending work asks again when the call would do something else now", async () => {
    const client = stage.newClient();
    const ear = listening();
    const path = stage.folder.at("work/a.txt");
    stage.play(calls(["edit", { path, old_str: "two", new_str: "three" }]));
    const before = await client.createSession({
      onEvent: ear.onEvent,
      onPermissionRequest: ({ kind }) => ({ kind: kind === "read" ? "approve-once" : "no-result" }),
    });
    await before.send("edit");
    const asked = (await ear.until("permission.requested")).find(({ data }) => data.permissionRequest.kind === "write");
    await kill(client);
    await writeFile(path, "ten\ntwo\n");
    const { session, ear: late } = await resumed(before.sessionId);
    const [again] = (await late.until("permission.requested")).filter(({ ephemeral }) => !ephemeral);
    expect(again?.data.requestId).not.toBe(asked?.data.requestId);
    expect((await session.rpc.permissions.pendingRequests()).items.map(({ requestId }) => requestId)).toEqual([
      again?.data.requestId,
    ]);
    stage.play(says("edited"));
    await approve(session, again?.data.requestId ?? "");
    await late.until("session.idle");
    expect(await stage.folder.read("work/a.txt")).toBe("ten\nthree\n");
  });

  it("pending work asks again when the call would run in another folder", async () => {
    const first = await askedForEffect();
    await kill(first.client);
    await mkdir(stage.folder.at("elsewhere"));
    const { session, ear } = await resumed(first.session.sessionId, { workingDirectory: stage.folder.at("elsewhere") });
    await expect
      .poll(() => ear.heard.some(({ type, ephemeral }) => type === "permission.requested" && !ephemeral))
      .toBe(true);
    expect(await approve(session, first.requestId)).toEqual({ success: false });
    const { items } = await session.rpc.permissions.pendingRequests();
    expect(items).toHaveLength(1);
    stage.play(says("done"));
    await approve(session, items[0]?.requestId ?? "");
    await ear.until("session.idle");
    expect([await effects(), await stage.folder.read("elsewhere/effects.txt")]).toEqual(["", "once\n"]);
  });

  it("pending work is not run where the user rejects it under its old id, whatever a rule allows", async () => {
    const first = await askedForEffect();
    await kill(first.client);
    // The hook holds the call up between the resumption and the rule that would let it run.
    const command = `touch '${stage.folder.at("held")}'; while [ ! -e '${stage.folder.at("go")}' ]; do sleep 0.02; done`;
    const hooks = { permissionRequest: [{ matcher: "bash", command }] };
    await mkdir(stage.folder.at("home/hooks"), { recursive: true });
    await writeFile(stage.folder.at("home/hooks/hold.json"), JSON.stringify({ version: 1, hooks }));
    const permissions = { allow: ["shell", "write"] };
    await writeFile(stage.folder.at("home/settings.json"), JSON.stringify({ permissions }));
    const { session, ear } = await resumed(first.session.sessionId);
    await expect.poll(() => stage.folder.read("held").catch(() => undefined)).toBe("");
    const { requestId } = first;
    const rejection = { requestId, result: { kind: "reject" } } as const;
    expect(await session.rpc.permissions.handlePendingPermissionRequest(rejection)).toEqual({ success: true });
    await writeFile(stage.folder.at("go"), "");
    await ear.until("session.idle");
    expect(await effects()).toBe("");
    const events = await session.getEvents();
    expect(endsOf(events)).toMatchObject([{ success: false, error: { code: "rejected" } }]);
    const ended = events.filter((event) => event.type === "permission.completed" && event.data.requestId === requestId);
    expect(ended).toMatchObject([{ data: { result: { kind: "denied-interactively-by-user" } } }]);
  });

  it("messages sent meanwhile are answered after the pending work", async () => {
    const first = await askedForEffect();
    await first.session.send("and then?");
    await kill(first.client);
    const { ear } = await resumed(first.session.sessionId, { onPermissionRequest: approveAll });
    stage.play(says("done"), says("nothing"));
    await ear.until("session.idle");
    expect((await ear.until("assistant.message")).map(({ data }) => data.content)).toEqual(["done", "nothing"]);
    expect(await effects()).toBe("once\n");
  });
});

describe("a command that waits when the server is killed", () => {
  it("ORC-66 a pending command keeps its tool limits and its gate in the next process", async () => {
    const client = stage.newClient();
    const first = await client.createSession({ onPermissionRequest: approveAll });
    stage.play(stalls());
    await first.send("go");
    await expect.poll(() => stage.model.requests.length).toBe(1);
    await first.send("/research leases");
    await kill(client);
    stage.play(...Array.from({ length: 4 }, () => says("Enough.")));
    const { session, ear } = await resumed(first.sessionId);
    await session.send("go on");
    await ear.until("session.idle");
    const shown = stage.model.requests.slice(1).map(({ request }) => request?.tools.map(({ name }) => name).toSorted());
    const limited = shown.filter((tools) => tools?.join() === "create,task,view");
    expect(limited).toHaveLength(3);
    const gates = (await session.getEvents()).filter(
      (event) => event.type === "user.message" && event.data.source === "gate-research",
    );
    expect(gates).toHaveLength(2);
  });
});
