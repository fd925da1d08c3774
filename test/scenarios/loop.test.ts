import { describe, expect, it } from "vitest";
import { deferred } from "../../src/lib/deferred.ts";
import {
  breaksOff,
  calls,
  callsWithText,
  fails,
  says,
  stalls,
  thinks,
  together,
} from "../../src/model/faux/faux-step.ts";
import type { Store } from "../../src/store/store.ts";
import { expectOrder, expectPaired, story } from "../../src/testing/story.ts";
import { memoryStore } from "../support/memory-store.ts";
import { dataOf, echo, refuse, stage, tool } from "../support/stage.ts";

describe("LOOP-01 to LOOP-08: one message, turn by turn", () => {
  it("LOOP-07 a session reproduces the three-turn example, event by event", async () => {
    const { session, model } = await stage([
      calls(["echo", { text: "auth.ts" }]),
      calls(["echo", { text: "edited" }]),
      says("Done, here is what I changed"),
    ]);
    expect(await session.sendAndWait({ prompt: "Fix the bug in auth.ts" })).toEqual({
      kind: "done",
      answer: "Done, here is what I changed",
    });
    const turn = ["root assistant.turn_start", "root troupe.usage", "root assistant.message"];
    const tools = ["root tool.execution_start", "root tool.execution_complete"];
    expect(story(session.events)).toEqual([
      "root session.start",
      "root session.model_change",
      "root system.message",
      "root user.message",
      ...turn,
      ...tools,
      "root assistant.turn_end",
      ...turn,
      ...tools,
      "root assistant.turn_end",
      ...turn,
      "root assistant.turn_end",
    ]);
    model.assertSpent();
  });

  it("LOOP-02 a session counts one turn pair for each model call", async () => {
    const { session, model } = await stage([calls(["echo", { text: "a" }]), calls(["echo", { text: "b" }]), says("c")]);
    await session.sendAndWait({ prompt: "go" });
    expect(dataOf(session.events, "assistant.turn_start").map(({ turnId }) => turnId)).toEqual(["0", "1", "2"]);
    expect(dataOf(session.events, "assistant.turn_end")).toHaveLength(model.requests.length);
  });

  it("LOOP-03 LOOP-05 each model call has the results and the full history", async () => {
    const { session, model } = await stage([calls(["echo", { text: "hi" }]), says("one"), says("two")]);
    await session.sendAndWait({ prompt: "first" });
    await session.sendAndWait({ prompt: "second" });
    expect(model.requests.map(({ messages }) => messages.map(({ role }) => role).join(" "))).toEqual([
      "user",
      "user assistant tool",
      "user assistant tool assistant user",
    ]);
    expect(model.requests[1]?.messages[2]).toEqual({
      role: "tool",
      toolCallId: "call_echo_1",
      content: "hi",
      isError: false,
    });
    expect(model.requests[2]?.messages.slice(0, 3)).toEqual(model.requests[1]?.messages);
    expect(model.requests[0]).toMatchObject({
      system: "You are on stage.",
      model: "faux-1",
      stream: true,
      tools: [{ name: "echo" }],
    });
  });

  it("LOOP-04 the loop makes no further model call when the model requests no tools", async () => {
    const { session, model } = await stage([says("done")]);
    await session.sendAndWait({ prompt: "go" });
    expect(model.requests).toHaveLength(1);
  });

  it("LOOP-06 LOOP-09 a turn keeps its event order and ends with an idle event that is not stored", async () => {
    const { session, heard } = await stage([calls(["echo", { text: "a" }]), says("b")]);
    await session.sendAndWait({ prompt: "go" });
    expectOrder(heard, [
      "user.message",
      "assistant.turn_start",
      "assistant.usage",
      "assistant.message",
      "tool.execution_start",
      "tool.execution_complete",
      "assistant.turn_end",
      "assistant.turn_start",
      "assistant.message",
      "assistant.turn_end",
      "assistant.idle",
      "session.idle",
    ]);
    expect(heard.at(-1)).toMatchObject({ type: "session.idle", ephemeral: true, data: {} });
    expect(session.events.some(({ type }) => type === "session.idle")).toBe(false);
  });

  it("the loop calls the model only when the log contains the start of the turn", async () => {
    const written = deferred<void>();
    const store = memoryStore();
    const create: Store["create"] = async (sessionId) => {
      const log = await store.create(sessionId);
      const append: typeof log.append = async (event, how) => {
        if (event.type === "assistant.turn_start") await written.promise;
        await log.append(event, how);
      };
      return { ...log, append };
    };
    const { session, model } = await stage([says("hi")], { store: { ...store, create } });
    const outcome = session.sendAndWait({ prompt: "go" });
    await expect.poll(() => session.events.some(({ type }) => type === "assistant.turn_start")).toBe(true);
    await new Promise((later) => setTimeout(later, 20));
    expect(model.requests).toHaveLength(0);
    written.resolve();
    expect(await outcome).toEqual({ kind: "done", answer: "hi" });
  });

  it("every stored event is chained to the one before it, and ephemeral ones to the last stored", async () => {
    const { session, heard } = await stage([says("ok")]);
    await session.sendAndWait({ prompt: "go" });
    const ids = session.events.map(({ id }) => id);
    expect(session.events.map(({ parentId }) => parentId)).toEqual([null, ...ids.slice(0, -1)]);
    expect(heard.at(-1)?.parentId).toBe(ids.at(-1));
  });
});

describe("LOOP-08 and LOOP-16: failures", () => {
  it("a provider failure emits session.error, then session.idle", async () => {
    const { session, heard } = await stage([fails(401)]);
    expect(await session.sendAndWait({ prompt: "go" })).toMatchObject({
      kind: "error",
      error: { kind: "authentication" },
    });
    expectOrder(heard, [
      "assistant.turn_start",
      "model.call_failure",
      "assistant.turn_end",
      "session.error",
      "session.idle",
    ]);
    expect(dataOf(heard, "session.error")).toMatchObject([{ errorType: "authentication", statusCode: 401 }]);
  });

  it("the text of an interrupted reply is kept for users and never sent to a model", async () => {
    const { session, model } = await stage([breaksOff("half a sen"), says("whole")]);
    expect((await session.sendAndWait({ prompt: "go" })).kind).toBe("error");
    expect(dataOf(session.events, "troupe.partial_message")).toMatchObject([{ content: "half a sen" }]);
    await session.sendAndWait({ prompt: "again" });
    expect(model.requests[1]?.messages).toEqual([
      { role: "user", content: "go" },
      { role: "user", content: "again" },
    ]);
  });

  it("unknown tools, bad arguments and invalid JSON get a failed result", async () => {
    const { session, model } = await stage([
      together(calls(["nope", {}]), calls(["echo", {}]), callsWithText("echo", "{broken")),
      says("sorry"),
    ]);
    await session.sendAndWait({ prompt: "go" });
    expect(model.requests[1]?.messages.slice(2).map(({ content }) => content)).toEqual([
      "Tool 'nope' does not exist. Available tools that can be called are echo.",
      expect.stringContaining("Bad arguments for echo"),
      expect.stringContaining("not valid JSON"),
    ]);
    expectPaired(session.events);
  });

  it("the model gets the full text of an expected failure, and only the name of a defect", async () => {
    const { session, model, heard } = await stage([calls(["careful"], ["broken"]), says("odd")], {
      tools: [
        tool("careful", async () => refuse("No such file: a.txt")),
        tool("broken", async () => {
          throw new TypeError("x is undefined");
        }),
      ],
    });
    await session.sendAndWait({ prompt: "go" });
    const results = model.requests[1]?.messages.slice(2).map(({ content }) => content);
    expect(results).toEqual(
      expect.arrayContaining([
        "No such file: a.txt",
        "broken failed because of a defect in it, not because of your arguments.",
      ]),
    );
    expect(dataOf(heard, "session.warning")).toMatchObject([
      { warningType: "tool_defect", message: expect.stringContaining("x is undefined") },
    ]);
  });

  it("calls of a reply that was cut off at its length never run", async () => {
    const ran: string[] = [];
    const cut = calls(["mark"]).map((move) => (move.type === "end" ? { ...move, stop: "length" as const } : move));
    const { session } = await stage([cut, says("again")], {
      tools: [
        tool("mark", async () => {
          ran.push("mark");
          return "";
        }),
      ],
    });
    await session.sendAndWait({ prompt: "go" });
    expect(ran).toEqual([]);
    expect(dataOf(session.events, "tool.execution_complete")).toMatchObject([{ success: false }]);
  });

  it("a tool that exceeds its time limit is stopped", async () => {
    const { session } = await stage([calls(["slow"]), says("ok")], {
      tools: [tool("slow", () => new Promise(() => undefined), { timeoutMs: 10 })],
    });
    await session.sendAndWait({ prompt: "go" });
    expect(dataOf(session.events, "tool.execution_complete")).toMatchObject([
      { success: false, error: { code: "timeout" } },
    ]);
  });
});

describe("LOOP-19 and LOOP-27: tools of one turn", () => {
  it("LOOP-19 tools of one turn run side by side, all starts before the first end", async () => {
    const both = deferred<void>();
    let inside = 0;
    const meet = (): Promise<string> => {
      if (++inside === 2) both.resolve();
      return both.promise.then(() => "met");
    };
    const { session, heard } = await stage([calls(["left"], ["right"]), says("ok")], {
      tools: [tool("left", meet), tool("right", meet)],
    });
    await session.sendAndWait({ prompt: "go" });
    expect(heard.filter(({ type }) => type.startsWith("tool.")).map(({ type }) => type)).toEqual([
      "tool.execution_start",
      "tool.execution_start",
      "tool.execution_complete",
      "tool.execution_complete",
    ]);
  });

  it("tools of one turn run one by one when one of them is exclusive", async () => {
    const order: string[] = [];
    const slow = (name: string) => async (): Promise<string> => {
      order.push(`${name} in`);
      await new Promise((resolve) => setTimeout(resolve, 5));
      order.push(`${name} out`);
      return name;
    };
    const { session } = await stage([calls(["a"], ["b"]), says("ok")], {
      tools: [tool("a", slow("a"), { exclusive: true }), tool("b", slow("b"))],
    });
    await session.sendAndWait({ prompt: "go" });
    expect(order).toEqual(["a in", "a out", "b in", "b out"]);
  });

  it("LOOP-27 a terminal tool ends the answer when it succeeds, and not when it fails", async () => {
    let attempts = 0;
    const finish = tool("finish", async () => (++attempts === 1 ? refuse("not yet") : "finished"), {
      endsAnswer: true,
    });
    const { session, model } = await stage([calls(["finish"]), calls(["finish"])], { tools: [finish] });
    expect((await session.sendAndWait({ prompt: "go" })).kind).toBe("done");
    expect(model.requests).toHaveLength(2);
    model.assertSpent();
  });
});

describe("LOOP-22: streaming", () => {
  it("streaming emits text as it arrives, without storing it, and the parts add up to the message", async () => {
    const { session, heard } = await stage([thinks("hm", says("Hello world", { chunkSize: 3 }))], { streaming: true });
    await session.sendAndWait({ prompt: "go" });
    const deltas = dataOf(heard, "assistant.message_delta");
    expect(deltas.length).toBeGreaterThan(2);
    expect(deltas.map(({ deltaContent }) => deltaContent).join("")).toBe("Hello world");
    expect(new Set(deltas.map(({ messageId }) => messageId))).toEqual(
      new Set(dataOf(session.events, "assistant.message").map(({ messageId }) => messageId)),
    );
    expect(dataOf(heard, "assistant.reasoning_delta")).toHaveLength(1);
    expect(session.events.some(({ type }) => type.endsWith("_delta"))).toBe(false);
  });

  it("a session without streaming emits no parts, and the reasoning as a whole", async () => {
    const { session, heard } = await stage([thinks("hm", says("Hello world", { chunkSize: 3 }))]);
    await session.sendAndWait({ prompt: "go" });
    expect(heard.filter(({ type }) => type.endsWith("_delta"))).toEqual([]);
    expect(dataOf(heard, "assistant.reasoning")).toMatchObject([{ content: "hm" }]);
    expectOrder(heard, ["assistant.reasoning", "assistant.message"]);
  });
});

describe("LOOP-26: abort", () => {
  it("an abort keeps the text of the reply, emits abort, and ends idle with aborted", async () => {
    const { session, heard, model } = await stage([together(says("I was about to"), stalls()), says("fresh")]);
    const sent = session.sendAndWait({ prompt: "go" });
    await new Promise((resolve) => setTimeout(resolve, 10));
    session.abort();
    expect(await sent).toEqual({ kind: "aborted" });
    expectOrder(heard, ["assistant.message", "assistant.turn_end", "abort", "session.idle"]);
    expect(heard.at(-1)?.data).toEqual({ aborted: true });
    await session.sendAndWait({ prompt: "again" });
    expect(model.requests[1]?.messages.map(({ content }) => content)).toEqual(["go", "I was about to", "again"]);
  });

  it("an abort closes a running tool call as interrupted, and the next answer is valid", async () => {
    const { session, model } = await stage([calls(["wait"]), says("after")], {
      tools: [tool("wait", () => new Promise(() => undefined))],
    });
    const sent = session.sendAndWait({ prompt: "go" });
    await new Promise((resolve) => setTimeout(resolve, 10));
    session.abort();
    expect((await sent).kind).toBe("aborted");
    expectPaired(session.events);
    await session.sendAndWait({ prompt: "again" });
    expect(model.requests[1]?.messages[2]).toMatchObject({
      role: "tool",
      content: "The execution of this tool, or a previous tool was interrupted.",
    });
  });

  it("a session can continue after an abort before the first output", async () => {
    const { session } = await stage([stalls(), says("here")]);
    const sent = session.sendAndWait({ prompt: "go" });
    await new Promise((resolve) => setTimeout(resolve, 5));
    session.abort();
    expect((await sent).kind).toBe("aborted");
    expect(await session.sendAndWait({ prompt: "again" })).toEqual({ kind: "done", answer: "here" });
  });
});

describe("limits", () => {
  it("limits stop the loop before the call that would exceed them, with a report", async () => {
    const { session, heard, model } = await stage([calls(["echo", { text: "a" }])], {
      limits: { turns: 1 },
      tools: [echo],
    });
    expect(await session.sendAndWait({ prompt: "go" })).toMatchObject({
      kind: "limit",
      reached: { limit: "turns", allowed: 1, used: 1 },
    });
    expect(dataOf(heard, "troupe.limit_reached")).toHaveLength(1);
    model.assertSpent();
  });
});
