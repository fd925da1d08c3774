import { describe, expect, it } from "vitest";
import { deferred } from "../../src/lib/deferred.ts";
import { forAgent } from "../../src/model/faux/faux-plan.ts";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import { agent } from "../support/agent.ts";
import { agentPool } from "../support/agent-pool.ts";
import { dataOf, echo, refuse, stage, tool } from "../support/stage.ts";

const repeated = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));
const missing = (given: { at?: number } = {}) => calls(["no_such_tool", given]);
const works = calls(["echo", { text: "ok" }]);
const stopped = (message: string) => ({
  kind: "limit",
  reached: expect.objectContaining({ limit: "failures", message: expect.stringContaining(message) }),
});

describe("a model whose calls fail repeatedly", () => {
  it("a model is warned from the fifth equal failing call on and stopped after the tenth, with an error", async () => {
    const { session, model } = await stage(repeated(50, () => missing()));
    expect(await session.sendAndWait({ prompt: "go" })).toEqual(stopped("no_such_tool failed 10 times"));
    expect(model.requests).toHaveLength(10);
    const told = dataOf(session.events, "tool.execution_complete").map(({ error }) => error?.message ?? "");
    expect(told.map((text) => /failed (\d+) times/.exec(text)?.[1])).toEqual(
      repeated(10, (index) => (index < 4 ? undefined : String(index + 1))),
    );
    expect(dataOf(session.events, "session.error")).toEqual([
      { errorType: "limit", message: expect.stringContaining("failed 10 times") },
    ]);
    expect(dataOf(session.events, "troupe.limit_reached")).toEqual([]);
  });

  it.each([2, 3, 4])("a model that repeats a circle of %i failing calls is stopped", async (period) => {
    const { session, model } = await stage(repeated(100, (index) => missing({ at: index % period })));
    expect(await session.sendAndWait({ prompt: "go" })).toEqual(stopped("Stopped"));
    expect(model.requests.length).toBeLessThanOrEqual(40);
  });

  it("a model is stopped after 50 turns of different calls that all fail", async () => {
    const { session, model } = await stage(repeated(100, (index) => missing({ at: index })));
    expect(await session.sendAndWait({ prompt: "go" })).toEqual(stopped("every call of the last 50 turns failed"));
    expect(model.requests).toHaveLength(50);
    expect(JSON.stringify(model.requests[40]?.messages.at(-1))).toContain("Every call of the last 40 turns has failed");
  });

  it("a model continues when a call succeeds between failing calls", async () => {
    const steps = [...repeated(4, () => [...repeated(9, () => missing()), works]).flat(), says("done")];
    const { session, model } = await stage(steps);
    expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer: "done" });
    model.assertSpent();
  });

  it("a model may repeat calls that succeed, and calls that fail at once in one reply", async () => {
    const many = calls(...repeated(40, (index) => ["no_such_tool", {}, `call-${index}`] as const));
    const { session } = await stage([...repeated(60, () => works), many, says("done")]);
    expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer: "done" });
  });

  it("the count of failing calls restarts with each message, even one that arrives during work", async () => {
    const reached = deferred<void>();
    const go = deferred<void>();
    let count = 0;
    const fails = tool("fails", async () => {
      if (++count === 8) {
        reached.resolve();
        await go.promise;
      }
      return refuse("no");
    });
    const steps = [
      ...repeated(16, () => calls(["fails", {}])),
      says("a"),
      ...repeated(9, () => calls(["fails", {}])),
      says("b"),
    ];
    const { session } = await stage(steps, { tools: [echo, fails] });
    const first = session.sendAndWait({ prompt: "go" });
    await reached.promise;
    await session.send({ prompt: "once more", mode: "immediate" });
    go.resolve();
    expect(await first).toEqual({ kind: "done", answer: "a" });
    expect(await session.sendAndWait({ prompt: "again" })).toEqual({ kind: "done", answer: "b" });
  });

  it("a subagent whose calls fail repeatedly is stopped, and the parent reads the reason", async () => {
    const start = calls(["task", { description: "d", prompt: "p", agent_type: "explorer", name: "one" }]);
    const { session, model } = await agentPool(
      [start, says("I see"), forAgent("explorer", ...repeated(50, () => missing()))],
      { agents: [agent("explorer")] },
    );
    expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer: "I see" });
    expect(model.requests).toHaveLength(12);
    expect(JSON.stringify(dataOf(session.events, "tool.execution_complete").at(-1))).toContain("failed 10 times");
    await session.close();
  });
});
