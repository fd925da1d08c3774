import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { AgentTree, approveAll, defineTool, type SessionEvent } from "../../src/sdk/index.ts";
import { calls, forAgent, httpStatus, says, stalls } from "../../src/testing/index.ts";
import { sdkStage, ways } from "./stage.ts";

const weather = defineTool("weather", {
  description: "The weather in a city.",
  parameters: z.object({ city: z.string() }),
  handler: ({ city }) => ({ city, degrees: city.length }),
});

describe.each(ways)("a client of %s", (way) => {
  it("SDK-31 SDK-32 SDK-35 a client sends a prompt, gets every event with its type, and leaves nothing behind", async () => {
    await using stage = await sdkStage(way, calls(["view", { path: "a.txt" }]), says("It has two lines."));
    const client = await stage.client();
    const heard: SessionEvent[] = [];
    const session = await client.createSession({
      provider: stage.provider,
      onPermissionRequest: approveAll,
      onEvent: (event) => heard.push(event),
    });
    const tools: string[] = [];
    const stop = session.on("tool.execution_start", (event) => tools.push(event.data.toolName));
    const answer = await session.sendAndWait("How long is a.txt?");
    stop();
    expect(answer?.data.content).toBe("It has two lines.");
    expect(tools).toEqual(["view"]);
    expect(heard[0]?.type).toBe("session.start");
    expect(heard.at(-1)?.type).toBe("session.idle");
    expect(await session.getEvents()).toEqual(heard.filter((event) => !event.ephemeral));
    expect(await client.stop()).toEqual([]);
    expect(await client.stop()).toEqual([]);
    await expect(session.send("Still there?")).rejects.toThrow(/stopped|disconnected/);
    await expect.poll(() => processesOf(stage.folder.path)).toEqual([]);
    stage.model.assertSpent();
  });

  it("SDK-31 a client calls a listener for all events or for one type until it is unsubscribed", async () => {
    await using stage = await sdkStage(way, says("one"), says("two"));
    await using client = await stage.client();
    const session = await client.createSession({ provider: stage.provider, onPermissionRequest: approveAll });
    const heard: Record<string, string[]> = { all: [], typed: [], kept: [] };
    const stopAll = session.on((event) => heard.all?.push(event.type));
    const stopTyped = session.on("assistant.message", (event) => heard.typed?.push(event.data.content));
    session.on("assistant.message", (event) => heard.kept?.push(event.data.content));
    await session.sendAndWait("first");
    expect([heard.typed, heard.kept]).toEqual([["one"], ["one"]]);
    expect(heard.all).toContain("assistant.message");
    const before = heard.all?.length;
    stopAll();
    stopTyped();
    await session.sendAndWait("second");
    expect([heard.typed, heard.kept, heard.all?.length]).toEqual([["one"], ["one", "two"], before]);
  });

  it("a client reads a history of more than one page, each event once and in order", async () => {
    await using stage = await sdkStage(way);
    await using client = await stage.client();
    const session = await client.createSession({ provider: stage.provider, onPermissionRequest: approveAll });
    for (let batch = 0; batch < 5; batch++) {
      const lines = Array.from({ length: 450 }, (_, line) => `line ${batch * 450 + line}`);
      await Promise.all(lines.map((line) => session.log(line)));
    }
    const { events } = (await session.request("session.getMessages")) as { events: SessionEvent[] };
    expect(events.filter(({ type }) => type === "session.info")).toHaveLength(2_250);
    expect(await session.getEvents()).toEqual(events);
  });

  it("SDK-29 SDK-30 a client runs the program's tools with checked arguments after its handler approved", async () => {
    await using stage = await sdkStage(
      way,
      calls(["weather", { city: 7 }]),
      calls(["weather", { city: "Oslo" }]),
      says("Four degrees."),
    );
    await using client = await stage.client();
    const asked: string[] = [];
    const session = await client.createSession({
      provider: stage.provider,
      tools: [weather],
      onPermissionRequest: (request) => {
        asked.push(request.kind === "custom-tool" ? request.toolName : request.kind);
        return { kind: "approve-once" };
      },
    });
    expect((await session.sendAndWait("How warm is it in Oslo?"))?.data.content).toBe("Four degrees.");
    expect(asked).toEqual(["weather", "weather"]);
    const shown = JSON.stringify(stage.model.requests.at(-1)?.body);
    expect(shown).toContain("do not fit its schema");
    expect(shown).toContain(
      '{\\\\\\"city\\\\\\":\\\\\\"Oslo\\\\\\",\\\\\\"degrees\\\\\\":4}'.replaceAll("\\\\\\", "\\"),
    );
  });

  it("SDK-33 a client shows the tree of agents while a researcher and an editor work together", async () => {
    await using stage = await sdkStage(
      way,
      calls([
        "task",
        { agent_type: "researcher", name: "look", description: "Look", prompt: "How many lines?", mode: "sync" },
      ]),
      forAgent("researcher", calls(["view", { path: "a.txt" }]), says("a.txt has two lines.")),
      calls([
        "task",
        { agent_type: "editor", name: "mend", description: "Mend", prompt: "Make it one line.", mode: "sync" },
      ]),
      forAgent("editor", calls(["edit", { path: "a.txt", old_str: "one\ntwo\n", new_str: "one\n" }]), says("Done.")),
      says("It has one line now."),
    );
    await using client = await stage.client();
    const session = await client.createSession({
      provider: stage.provider,
      onPermissionRequest: approveAll,
      customAgents: [
        {
          name: "researcher",
          description: "Looks",
          tools: ["grep", "glob", "view"],
          prompt: "You are the researcher: you look.",
        },
        { name: "editor", description: "Changes", tools: ["view", "edit"], prompt: "You are the editor: you change." },
      ],
    });
    expect((await session.sendAndWait("Make a.txt one line long."))?.data.content).toBe("It has one line now.");
    expect(await stage.folder.read("work/a.txt")).toBe("one\n");
    const told = session.agents.roots.map(({ name, status, lastTool }) => ({ name, status, lastTool }));
    expect(told).toEqual([
      { name: "researcher", status: "completed", lastTool: "view" },
      { name: "editor", status: "completed", lastTool: "edit" },
    ]);
    const again = new AgentTree();
    for (const event of await session.getEvents()) again.apply(event);
    expect(again.roots).toEqual(session.agents.roots);
    for (const { tokens } of again.roots) expect(tokens).toBeGreaterThan(0);
  });

  it("a client waits at most the given time, is stopped by abort, and can be used after that", async () => {
    await using stage = await sdkStage(way, stalls(), says("Here again."));
    await using client = await stage.client();
    const session = await client.createSession({ provider: stage.provider });
    await expect(session.sendAndWait("Hello?", { timeout: 300 })).rejects.toThrow("not idle after 300 ms");
    // A busy machine may take longer than that to reach the model.
    await expect.poll(() => stage.model.requests.length).toBe(1);
    const idle = new Promise<unknown>((resolve) => session.on("session.idle", resolve));
    await session.abort();
    expect(await idle).toMatchObject({ data: { aborted: true } });
    expect((await session.sendAndWait("And now?"))?.data.content).toBe("Here again.");
  });

  it("a client rejects with the session's error, and does not confuse the next message with the last", async () => {
    await using stage = await sdkStage(way, httpStatus(401), says("Better."));
    await using client = await stage.client();
    const session = await client.createSession({ provider: stage.provider });
    await expect(session.sendAndWait("Hello?")).rejects.toThrow(/401|key|authenticat/i);
    expect((await session.sendAndWait("And now?"))?.data.content).toBe("Better.");
  });

  it("a client calls the program's hooks", async () => {
    await using stage = await sdkStage(way, calls(["view", { path: "a.txt" }]), says("I may not."));
    await using client = await stage.client();
    const seen: unknown[] = [];
    const session = await client.createSession({
      provider: stage.provider,
      onPermissionRequest: approveAll,
      hooks: {
        onPreToolUse: (input) => {
          seen.push(input.toolName, input.toolArgs, input.timestamp instanceof Date);
          return { permissionDecision: "deny", permissionDecisionReason: "not today" };
        },
      },
    });
    await session.sendAndWait("Look at a.txt");
    expect(seen).toEqual(["view", { path: "a.txt" }, true]);
    expect(JSON.stringify(stage.model.requests.at(-1)?.body)).toContain("not today");
  });

  it("a client resumes a session with another client", async () => {
    await using stage = await sdkStage(way, says("Noted."), says("42."));
    const first = await stage.client();
    const session = await first.createSession({ provider: stage.provider });
    await session.sendAndWait("Remember 42.");
    await first.stop();
    await using second = await stage.client();
    const resumed = await second.resumeSession(session.sessionId, { provider: stage.provider });
    expect((await resumed.sendAndWait("Which number?"))?.data.content).toBe("42.");
    expect(await second.getLastSessionId()).toBe(session.sessionId);
    await expect(second.resumeSession("no-such-session")).rejects.toThrow("Session not found: no-such-session");
  });
});

describe("an error that a program cannot continue from", () => {
  it("the error for a missing permission handler names the permission", async () => {
    await using stage = await sdkStage("this process", calls(["view", { path: "a.txt" }]));
    await using client = await stage.client();
    const session = await client.createSession({ provider: stage.provider });
    const asked = new Promise((resolve) => session.on("permission.requested", resolve));
    await session.send("How long is a.txt?");
    await asked;
    await expect(session.sendAndWait("Well?", 20)).rejects.toThrow(
      "The session was not idle after 20 ms. It is waiting for a permission (read), and this client has no onPermissionRequest.",
    );
  });

  it("the error for a missing folder or file names it, not Node", async () => {
    await using stage = await sdkStage("a process of its own");
    const nowhere = stage.folder.at("nowhere");
    await expect(stage.client({ workingDirectory: nowhere })).rejects.toThrow(
      `the working directory ${nowhere} does not exist`,
    );
    const path = stage.folder.at("nowhere.js");
    await expect(stage.client({ connection: { kind: "stdio", path } })).rejects.toThrow(`there is no file ${path}`);
  });
});

/** Processes that were started for this folder and still run; always none where that cannot be seen. */
function processesOf(folder: string): string[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readFileSync(`/proc/${pid}/environ`, "utf8").includes(folder);
    } catch {
      return false; // ended meanwhile, or of another user
    }
  });
}
