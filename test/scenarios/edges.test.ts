/** Moments that are easy to get wrong: endings, races, refusals, damage in the middle. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { deferred } from "../../src/lib/deferred.ts";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { systemStamp } from "../../src/lib/stamp.ts";
import { otherwise } from "../../src/model/faux/faux-plan.ts";
import { calls, says, stalls } from "../../src/model/faux/faux-step.ts";
import type { Provider } from "../../src/model/provider.ts";
import { jsonlStore } from "../../src/store/jsonl.ts";
import { expectPaired } from "../../src/testing/story.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { memoryStore } from "../support/memory-store.ts";
import { dataOf, echo, stage, tool } from "../support/stage.ts";

const soon = (milliseconds = 5): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));

describe("close", () => {
  it("a closed session answers no waiting messages and keeps them in the log", async () => {
    const { session, model } = await stage([stalls(), otherwise(says("never"))]);
    const waits = [session.sendAndWait({ prompt: "one" })];
    await soon();
    waits.push(session.sendAndWait({ prompt: "two" }), session.sendAndWait({ prompt: "three" }));
    await soon();
    await session.close();
    expect((await Promise.all(waits)).map(({ kind }) => kind)).toEqual(["aborted", "aborted", "aborted"]);
    expect(model.requests).toHaveLength(1);
    expect(dataOf(session.events, "troupe.message_queued").map(({ content }) => content)).toEqual(["two", "three"]);
    await expect(session.send({ prompt: "late" })).rejects.toThrow(/closed/);
  });

  it("a session can be closed twice and at once", async () => {
    const { session } = await stage([stalls()]);
    await session.send({ prompt: "one" });
    await Promise.all([session.close(), session.close()]);
    expect(dataOf(session.events, "session.shutdown")).toHaveLength(1);
  });
});

describe("the outcome of a message", () => {
  it("a message sent while the session finishes, or by a listener of the end, has its own outcome", async () => {
    const { session } = await stage([says("ONE"), says("TWO"), says("THREE")]);
    const later = deferred<unknown>();
    let sent = false;
    session.subscribe((event) => {
      if (event.type !== "assistant.idle" || sent) return;
      sent = true;
      session.sendAndWait({ prompt: "two" }).then(later.resolve, later.reject);
    });
    expect(await session.sendAndWait({ prompt: "one" })).toEqual({ kind: "done", answer: "ONE" });
    expect(await later.promise).toEqual({ kind: "done", answer: "TWO" });
    expect(await session.sendAndWait({ prompt: "three" })).toEqual({ kind: "done", answer: "THREE" });
  });

  it("a steering message has the outcome of the run that it joined", async () => {
    const gate = deferred<string>();
    const { session } = await stage([calls(["wait"]), says("A"), says("B")], {
      tools: [tool("wait", () => gate.promise)],
    });
    const first = session.sendAndWait({ prompt: "one" });
    await soon();
    const steered = session.sendAndWait({ prompt: "also", mode: "immediate" });
    const queued = session.sendAndWait({ prompt: "two" });
    await soon();
    gate.resolve("");
    expect(await Promise.all([first, steered, queued])).toEqual(
      ["A", "A", "B"].map((answer) => ({ kind: "done", answer })),
    );
  });

  it("every listener receives events in the same order, whatever is sent in between", async () => {
    const { session, heard } = await stage([says("ONE"), says("TWO")]);
    const second: string[] = [];
    let sent = false;
    session.subscribe(({ type }) => {
      if (type === "assistant.idle" && !sent) {
        sent = true;
        void session.send({ prompt: "two" });
      }
    });
    session.subscribe(({ type }) => second.push(type));
    await session.sendAndWait({ prompt: "one" });
    await session.queue.whenIdle();
    await soon();
    await session.queue.whenIdle();
    expect(second).toEqual(heard.map(({ type }) => type));
  });
});

describe("an abort", () => {
  it("an abort before the model was asked makes no turn and counts no call", async () => {
    const { session, model } = await stage([says("never")]);
    const sent = session.sendAndWait({ prompt: "go" });
    session.abort();
    expect((await sent).kind).toBe("aborted");
    expect(dataOf(session.events, "assistant.turn_start")).toHaveLength(model.requests.length);
    expect(session.record.budget.run.calls).toBe(model.requests.length);
  });

  it("an abort ends a run whose provider ignores it", async () => {
    const deaf: Provider = {
      id: "deaf",
      stream: () => ({ [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => undefined) }) }),
    };
    const { session } = await stage([], { provider: deaf });
    const sent = session.sendAndWait({ prompt: "go" });
    await soon();
    session.abort();
    expect((await sent).kind).toBe("aborted");
  });
});

describe("a malformed reply", () => {
  it("a reply that was cut off or is missing is reported", async () => {
    const cut = says("half an ans").map((move) => (move.type === "end" ? { ...move, stop: "length" as const } : move));
    const { session, heard } = await stage([cut, says("")]);
    expect(await session.sendAndWait({ prompt: "one" })).toEqual({ kind: "done", answer: "half an ans" });
    await session.sendAndWait({ prompt: "two" });
    expect(dataOf(heard, "session.warning").map(({ warningType }) => warningType)).toEqual([
      "output_limit",
      "empty_reply",
    ]);
  });

  it("two calls with one id get a result each", async () => {
    const { session, model } = await stage([
      calls(["echo", { text: "a" }, "x"], ["echo", { text: "b" }, "x"]),
      says("ok"),
    ]);
    await session.sendAndWait({ prompt: "go" });
    expect(model.requests[1]?.messages.slice(2)).toMatchObject([
      { toolCallId: "x", content: "a" },
      { toolCallId: "x_2", content: "b" },
    ]);
    expectPaired(session.events);
  });

  it("a result that cannot be stored fails its call, not the run, and siblings end first", async () => {
    const huge = "x".repeat(65 * 1024 * 1024);
    await using folder = await tempFolder();
    const store = jsonlStore({ root: folder.path, disk: nodeDisk, stamp: systemStamp });
    const { session } = await stage([calls(["huge"], ["slow"]), says("ok")], {
      store,
      tools: [tool("huge", async () => huge), tool("slow", () => soon(30).then(() => "slept"))],
    });
    expect((await session.sendAndWait({ prompt: "go" })).kind).toBe("done");
    expect(
      dataOf(session.events, "tool.execution_complete")
        .map(({ success }) => success)
        .sort(),
    ).toEqual([false, true]);
    expectPaired(session.events);
    await session.close();
  });
});

describe("a refused message", () => {
  it("a message that the log refuses is not sent to the model", async () => {
    const inner = memoryStore();
    let full = false;
    const store = {
      ...inner,
      async create(id: string) {
        const log = await inner.create(id);
        return new Proxy(log, {
          get(target, name) {
            if (name === "append" && full) return async () => Promise.reject(new Error("no room"));
            if (name === "repairAfterFailedWrite")
              return async () => (full ? Promise.reject(new Error("no room")) : undefined);
            const value = Reflect.get(target, name);
            return typeof value === "function" ? value.bind(target) : value;
          },
        });
      },
    };
    const { session, model } = await stage([says("a"), says("b")], { store });
    await session.sendAndWait({ prompt: "first" });
    full = true;
    await expect(session.send({ prompt: "delete everything" })).rejects.toThrow("no room");
    await session.queue.whenIdle();
    full = false;
    await session.sendAndWait({ prompt: "delete nothing" });
    expect(model.requests[1]?.messages.map(({ content }) => content)).toEqual(["first", "a", "delete nothing"]);
    const ids = session.events.map(({ id }) => id);
    expect(session.events.map(({ parentId }) => parentId)).toEqual([null, ...ids.slice(0, -1)]);
  });
});

it("every result still follows its call after damage in the middle of a log", async () => {
  await using folder = await tempFolder();
  const store = jsonlStore({ root: folder.path, disk: nodeDisk, stamp: systemStamp });
  const first = await stage([calls(["echo", { text: "a" }]), says("one"), says("two")], { store, tools: [echo] });
  await first.session.sendAndWait({ prompt: "go" });
  await first.session.sendAndWait({ prompt: "on" });
  await first.session.close();
  const file = join(folder.path, "session-state", "session-1", "events.jsonl");
  writeFileSync(file, readFileSync(file, "utf8").replace('"success":true', '"success":tru '));

  const second = await stage([says("three")], { store, resume: "session-1" });
  await second.session.sendAndWait({ prompt: "again" });
  expect(second.model.requests[0]?.messages.map(({ role }) => role).join(" ")).toBe(
    "user assistant tool assistant user assistant user",
  );
  await second.session.close();
});

it("the session emits events in the order of the wire contract", async () => {
  const { session, heard } = await stage([says("ok")]);
  await session.sendAndWait({ prompt: "go" });
  expect(heard.map(({ type }) => type)).toEqual([
    "pending_messages.modified",
    "session.model_change",
    "system.message",
    "session.tools_updated",
    "user.message",
    "session.title_changed",
    "assistant.turn_start",
    "session.usage_info",
    "assistant.usage",
    "troupe.usage",
    "model.call_finished",
    "assistant.message",
    "assistant.turn_end",
    "assistant.idle",
    "session.idle",
  ]);
});
