import { describe, expect, it } from "vitest";
import { approveAll, type SessionEvent } from "../../src/sdk/index.ts";
import { calls, httpStatus, says, stalls } from "../../src/testing/index.ts";
import { sdkStage, ways } from "./stage.ts";

describe.each(ways)("a client of %s", (way) => {
  it("SDK-31 SDK-32 SDK-35 asks, hears every event with its type, and leaves nothing behind", async () => {
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
    stage.model.assertSpent();
  });

  it("waits no longer than told, is stopped by abort, and can be used after", async () => {
    await using stage = await sdkStage(way, stalls(), says("Here again."));
    await using client = await stage.client();
    const session = await client.createSession({ provider: stage.provider });
    await expect(session.sendAndWait("Hello?", { timeout: 300 })).rejects.toThrow("not idle after 300 ms");
    const idle = new Promise<unknown>((resolve) => session.on("session.idle", resolve));
    await session.abort();
    expect(await idle).toMatchObject({ data: { aborted: true } });
    expect((await session.sendAndWait("And now?"))?.data.content).toBe("Here again.");
  });

  it("rejects with what the session said went wrong, and the next message is not taken for the last", async () => {
    await using stage = await sdkStage(way, httpStatus(401), says("Better."));
    await using client = await stage.client();
    const session = await client.createSession({ provider: stage.provider });
    await expect(session.sendAndWait("Hello?")).rejects.toThrow(/401|key|authenticat/i);
    expect((await session.sendAndWait("And now?"))?.data.content).toBe("Better.");
  });

  it("takes up a session again, by another client", async () => {
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
