import { describe, expect, it } from "vitest";
import { deferred } from "../lib/deferred.ts";
import { systemStamp } from "../lib/stamp.ts";
import type { SessionEvent } from "../protocol/event.ts";
import { outputContract } from "../session/agents/typed-output.ts";
import { ConcurrencyLimit } from "./concurrency-limit.ts";
import { Factories } from "./factories.ts";
import { limitsProblem, mergedLimits } from "./limits.ts";
import { Phases } from "./phases.ts";
import { answerSchema, answerValue } from "./shape.ts";

describe("a run", () => {
  /** A session's log that keeps an attempt waiting until it is let go. */
  function slowLog() {
    const written = deferred<void>();
    const executed: string[] = [];
    const meta = { name: "f", description: "", phases: [] };
    const factory = {
      meta,
      owner: "me",
      isThere: () => true,
      abort: () => undefined,
      execute: ({ runId }: { runId: string }) => {
        executed.push(runId);
        return new Promise<{ result?: string }>(() => undefined);
      },
    };
    const factories: Factories = new Factories(
      {
        stamp: systemStamp,
        emit: async (type, data) => {
          const timestamp = new Date().toISOString();
          factories.observe({ id: type, timestamp, parentId: null, type, data } as unknown as SessionEvent);
          if (type === "troupe.factory_attempt") await written.promise;
        },
        source: { list: () => [meta], find: () => factory },
        startAgent: () => Promise.reject(new Error("no agents here")),
        agentState: () => undefined,
      },
      [],
    );
    return { factories, executed, written };
  }

  it("a run starts once when two callers resume it at the same time", async () => {
    const { factories, executed, written } = slowLog();
    written.resolve();
    const { runId } = await factories.run("f", {});
    await factories.cancel(runId);
    const both = await Promise.allSettled([factories.resume(runId), factories.resume(runId)]);
    expect(both.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    expect(executed).toHaveLength(2);
    await factories.close();
  });

  it("a run is halted before it executes anything when the session closes while it starts", async () => {
    const { factories, executed, written } = slowLog();
    const begun = factories.run("f", {});
    await factories.close();
    written.resolve();
    expect(await begun).toMatchObject({ status: "halted" });
    expect(executed).toEqual([]);
  });
});

describe("a run without limits", () => {
  it("a run without limits has 256 agents in all, and then ends", async () => {
    let started = 0;
    const meta = { name: "f", description: "", phases: [] };
    const run = deferred<{ runId: string; executionToken: string }>();
    const factory = {
      meta,
      owner: "me",
      isThere: () => true,
      abort: () => undefined,
      execute: (execution: { runId: string; executionToken: string }) => {
        run.resolve(execution);
        return new Promise<{ result?: string }>(() => undefined);
      },
    };
    const factories: Factories = new Factories(
      {
        stamp: systemStamp,
        emit: async (type, data) => {
          const timestamp = new Date().toISOString();
          factories.observe({ id: type, timestamp, parentId: null, type, data } as unknown as SessionEvent);
        },
        source: { list: () => [meta], find: () => factory },
        startAgent: async () => {
          const id = `agent-${++started}`;
          return { id, toolCallId: id, ended: Promise.resolve({ response: "yes" }), stop: async () => undefined };
        },
        agentState: () => undefined,
      },
      [],
    );
    const { runId } = await factories.run("f", {});
    const speaker = { ...(await run.promise), owner: "me" };
    const asked = Array.from({ length: 300 }, (_, at) => factories.agent(speaker, `question ${at}`, {}));
    await Promise.allSettled(asked);
    expect(started).toBeLessThanOrEqual(256);
    const failure = { type: "factory_limit_reached", kind: "maxTotalSubagents", value: 256, runId };
    expect(factories.get(runId)).toMatchObject({ status: "error", failure });
    await factories.close();
  });
});

describe("shapes of answers", () => {
  const fits = async (schema: object, value: unknown): Promise<boolean> => {
    const { check } = outputContract(answerSchema(schema as never));
    return (await check(JSON.stringify({ value }))).ok;
  };

  it("the check of an answer's shape accepts exactly the values that fit each kind of schema", async () => {
    const list = { type: "array", items: { type: "string" } };
    expect(await fits(list, ["a"])).toBe(true);
    expect(await fits(list, [1])).toBe(false);
    const either = { type: ["object", "null"], properties: { real: { type: "boolean" } }, required: ["real"] };
    expect([await fits(either, { real: true }), await fits(either, null), await fits(either, {})]).toEqual([
      true,
      true,
      false,
    ]);
    expect(await fits({ enum: ["a", 1] }, 1)).toBe(true);
    expect(await fits({ oneOf: [{ type: "number" }, { const: "x" }] }, "x")).toBe(true);
    expect(await fits({ oneOf: [{ type: "number" }, { const: "x" }] }, "y")).toBe(false);
  });

  it("the check of an answer's shape ignores unsupported keywords of the schema", async () => {
    const strange = { type: "string", pattern: "^(", format: "uri", minLength: 5, $ref: "#/nowhere", if: true };
    expect(await fits(strange, "ab")).toBe(true);
    expect(await fits({ type: "object", additionalProperties: false, properties: {} }, { more: 1 })).toBe(true);
    expect(await fits({}, { any: ["thing"] })).toBe(true);
    expect(answerValue('{"value":[1,null]}')).toEqual([1, null]);
  });
});

describe("limits", () => {
  it("limits must be positive, later values win, and unset values are omitted", () => {
    const declared = { maxTotalSubagents: 3, timeoutSeconds: 1.5 };
    expect(mergedLimits(declared, undefined, { maxTotalSubagents: 5 })).toEqual({
      maxTotalSubagents: 5,
      timeoutSeconds: 1.5,
    });
    expect(limitsProblem({ timeoutSeconds: 0.1, maxAiCredits: 0.5 })).toBeUndefined();
    expect(limitsProblem({ maxConcurrentSubagents: 1.5 })).toMatch(/whole number/);
    expect(limitsProblem({ timeoutSeconds: 3_000_000 })).toMatch(/exceed/);
    expect(limitsProblem({ maxAiCredits: Number.NaN })).toMatch(/positive/);
  });
});

describe("lanes", () => {
  it("a concurrency limit admits a fixed number, then in order, and removes a cancelled waiter", async () => {
    const lanes = new ConcurrencyLimit(1);
    const { signal } = new AbortController();
    const order: string[] = [];
    await lanes.enter(signal);
    const impatient = new AbortController();
    const entering = ["a", "b", "c"].map((name) =>
      lanes.enter(name === "b" ? impatient.signal : signal).then(
        () => order.push(name),
        () => order.push(`${name} gave up`),
      ),
    );
    impatient.abort();
    lanes.leave();
    lanes.leave();
    await Promise.all(entering);
    expect(order.sort()).toEqual(["a", "b gave up", "c"]);
  });
});

describe("phases", () => {
  it("phases are entered one at a time, again if needed, and skipped ones are recorded", () => {
    const phases = new Phases([{ title: "A" }, { title: "B" }, { title: "C" }]);
    const states = (now: number) =>
      phases.views(now).map(({ title, status, entryCount }) => [title, status, entryCount]);
    expect(phases.current).toBeNull();
    phases.enter("C", { at: 10, attempt: 1 });
    expect(states(20)).toEqual([
      ["A", "skipped", 0],
      ["B", "skipped", 0],
      ["C", "active", 1],
    ]);
    phases.enter("A", { at: 30, attempt: 2 });
    phases.enter("X", { at: 40, attempt: 2 });
    phases.leave(60);
    expect(states(99)).toEqual([
      ["A", "completed", 1],
      ["B", "skipped", 0],
      ["C", "completed", 1],
      ["X", "completed", 1],
    ]);
    expect(phases.views(99).map(({ accumulatedActiveMs }) => accumulatedActiveMs)).toEqual([10, 0, 20, 20]);
    expect(phases.currentPhase).toEqual({ id: "phase-x1", ordinal: null });
  });
});
