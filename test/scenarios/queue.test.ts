import { describe, expect, it } from "vitest";
import { deferred } from "../../src/lib/deferred.ts";
import { calls, fails, rateLimited, says, stalls } from "../../src/model/faux/faux-step.ts";
import { virtualClock } from "../../src/testing/faux-stamp.ts";
import { dataOf, stage, tool } from "../support/stage.ts";

const contents = (messages: readonly { content: string }[] | undefined): string[] =>
  (messages ?? []).map(({ content }) => content);

describe("messages to a working agent", () => {
  it("messages carry their response format to the model requests of their answer, and of no other", async () => {
    const { session, model } = await stage([says("{}"), says("plain")]);
    const responseFormat = {
      type: "json_schema",
      jsonSchema: { name: "verdict", schema: { type: "object" } },
    } as const;
    await session.sendAndWait({ prompt: "judge", answering: { responseFormat } });
    await session.sendAndWait({ prompt: "talk" });
    expect(model.requests[0]).toMatchObject({ responseFormat });
    expect(model.requests[1]).not.toHaveProperty("responseFormat");
  });

  it("LOOP-23 messages reach the model before its next call when they are immediate", async () => {
    const gate = deferred<string>();
    const { session, model } = await stage([calls(["wait"]), says("ok")], {
      tools: [tool("wait", () => gate.promise)],
    });
    const first = session.sendAndWait({ prompt: "go" });
    await new Promise((resolve) => setTimeout(resolve, 5));
    await session.send({ prompt: "also this", mode: "immediate" });
    gate.resolve("done");
    await first;
    expect(contents(model.requests[1]?.messages)).toEqual(["go", "", "done", "also this"]);
    expect(dataOf(session.events, "user.message").map(({ delivery }) => delivery)).toEqual(["idle", "steering"]);
    model.assertSpent();
  });

  it("LOOP-24 messages to a working agent are answered one by one, first in, first out", async () => {
    const gate = deferred<void>();
    const { session, model, heard } = await stage([stalls(gate.promise, says("1")), says("2"), says("3")]);
    const answers = [session.sendAndWait({ prompt: "one" })];
    await new Promise((resolve) => setTimeout(resolve, 5));
    answers.push(session.sendAndWait({ prompt: "two" }), session.sendAndWait({ prompt: "three" }));
    await new Promise((resolve) => setTimeout(resolve, 5));
    gate.resolve();
    expect(await Promise.all(answers)).toEqual(["1", "2", "3"].map((answer) => ({ kind: "done", answer })));
    expect(dataOf(session.events, "user.message").map(({ content }) => content)).toEqual(["one", "two", "three"]);
    expect(heard.filter(({ type }) => type === "session.idle")).toHaveLength(1);
    model.assertSpent();
  });

  it("LOOP-25 messages move to the front of the queue when they come too late for steering", async () => {
    const gate = deferred<void>();
    const { session } = await stage([stalls(gate.promise, says("1")), says("2"), says("3")]);
    const first = session.sendAndWait({ prompt: "one" });
    await new Promise((resolve) => setTimeout(resolve, 5));
    await session.send({ prompt: "queued" });
    await session.send({ prompt: "too late", mode: "immediate" });
    gate.resolve();
    await first;
    expect(dataOf(session.events, "user.message").map(({ content }) => content)).toEqual(["one", "too late", "queued"]);
  });

  it("LOOP-30 messages to a working agent are answered one at a time, from any sender", async () => {
    let inside = 0;
    let most = 0;
    const step = async () => {
      most = Math.max(most, ++inside);
      await new Promise((resolve) => setTimeout(resolve, 2));
      inside--;
      return says("ok");
    };
    const { session } = await stage([step, step, step, step]);
    await Promise.all(["a", "b", "c", "d"].map((prompt) => session.sendAndWait({ prompt })));
    expect(most).toBe(1);
  });

  it("messages to a working agent are accepted only when they are in the log on disk", async () => {
    const { session, store } = await stage([stalls()]);
    await session.send({ prompt: "one" });
    await session.send({ prompt: "waiting" });
    const { events } = await store.read("session-1");
    expect(dataOf(events, "user.message").map(({ content }) => content)).toEqual(["one"]);
    expect(dataOf(events, "troupe.message_queued").map(({ content }) => content)).toEqual(["waiting"]);
    await session.close();
  });

  it("LOOP-11 sendAndWait resolves when the session is idle", async () => {
    const { session, heard } = await stage([says("ok")]);
    await session.sendAndWait({ prompt: "go" });
    expect(heard.at(-1)?.type).toBe("session.idle");
  });
});

describe("LOOP-29: the queue", () => {
  it.each([
    ["for what the provider asked", 7_000, 7_000],
    ["for 120 s when it did not say", undefined, 120_000],
  ])("LOOP-29 the queue pauses after a rate limit %s", async (_name, asked, expected) => {
    const clock = virtualClock();
    const gate = deferred<void>();
    const { session, heard, model } = await stage([stalls(gate.promise, rateLimited(asked)), says("later")], {
      stamp: clock,
    });
    const first = session.sendAndWait({ prompt: "one" });
    await new Promise((resolve) => setTimeout(resolve, 5));
    const second = session.sendAndWait({ prompt: "two" });
    await new Promise((resolve) => setTimeout(resolve, 5));
    gate.resolve();
    await clock.untilAsleep(1);
    expect(clock.pending.map(({ milliseconds }) => milliseconds)).toEqual([expected]);
    expect(dataOf(heard, "session.info")).toMatchObject([{ infoType: "rate_limit_pause" }]);
    expect(model.requests).toHaveLength(1);
    await clock.advance(expected);
    expect(await second).toEqual({ kind: "done", answer: "later" });
    expect((await first).kind).toBe("error");
  });

  it("LOOP-29 the queue ends its pause at an abort", async () => {
    const clock = virtualClock();
    const gate = deferred<void>();
    const { session } = await stage([stalls(gate.promise, rateLimited()), says("now")], { stamp: clock });
    void session.send({ prompt: "one" });
    await new Promise((resolve) => setTimeout(resolve, 5));
    const second = session.sendAndWait({ prompt: "two" });
    await new Promise((resolve) => setTimeout(resolve, 5));
    gate.resolve();
    await clock.untilAsleep(1);
    session.abort();
    expect(await second).toEqual({ kind: "done", answer: "now" });
  });

  it("LOOP-29 the queue does not pause after other failures", async () => {
    const gate = deferred<void>();
    const { session } = await stage([stalls(gate.promise, fails(500)), says("next")], { stamp: virtualClock() });
    void session.send({ prompt: "one" });
    await new Promise((resolve) => setTimeout(resolve, 5));
    const second = session.sendAndWait({ prompt: "two" });
    await new Promise((resolve) => setTimeout(resolve, 5));
    gate.resolve();
    expect((await second).kind).toBe("done");
  });
});
