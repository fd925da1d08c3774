import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { deferred } from "../../src/lib/deferred.ts";
import { forAgent, otherwise } from "../../src/model/faux/faux-plan.ts";
import { calls, says, stalls, together, withUsage } from "../../src/model/faux/faux-step.ts";
import { type ModelRequest, noUsage, type Usage } from "../../src/model/provider.ts";
import type { EventData, SessionEvent } from "../../src/protocol/event.ts";
import { AgentUsage, sharesOf } from "../../src/session/budget/agent-usage.ts";
import { Budget, type Limits } from "../../src/session/budget/budget.ts";
import type { TaskRecord } from "../../src/tasks/task-record.ts";
import { agent } from "../support/agent.ts";
import { agentOf, agentPool, task } from "../support/agent-pool.ts";
import { memoryStore } from "../support/memory-store.ts";
import { dataOf } from "../support/stage.ts";
import { checkTasks } from "../support/task-checker.ts";

const three = calls(
  ...["one", "two", "three"].map(
    (name) => ["task", { description: "d", prompt: "p", agent_type: "explorer", name }] as const,
  ),
);
const again = calls(["echo", { text: "again" }]);

describe("the budget of a tree of agents", () => {
  it("the budget of a tree of agents counts turns exactly, however many agents call at once", async () => {
    const slowly = () => stalls(new Promise((resolve) => setTimeout(resolve, 5)), again);
    const { session, model } = await agentPool([three, says("enough"), otherwise(slowly)], { limits: { turns: 6 } });
    await session.sendAndWait({ prompt: "go" });
    expect(model.requests.length).toBe(6);
    expect(session.record.budget.run.calls).toBe(6);
    const reasons = session.agents.tasks?.list().map(({ reason }) => reason);
    expect(reasons).toContain("limit");
    expect(dataOf(session.events, "troupe.limit_reached")).toHaveLength(1);
  });

  it("a tree's budget reserves what running calls may use: a call that does not fit ends its agent", async () => {
    const open = deferred<void>();
    const slow = withUsage(stalls(open.promise, says("slow")), { inputTokens: 100, outputTokens: 10 });
    const { session } = await agentPool(
      [
        calls(
          ["task", { description: "d", prompt: "p", agent_type: "explorer", name: "big" }],
          ["task", { description: "d", prompt: "p", agent_type: "writer", name: "small" }],
        ),
        says("both"),
        forAgent("explorer", slow),
        forAgent(
          "writer",
          withUsage(together(says("so far"), calls(["echo", { text: "a" }])), { inputTokens: 3_000 }),
          says("never said"),
        ),
      ],
      { limits: { tokens: 12_000 } },
    );
    const done = session.sendAndWait({ prompt: "go" });
    await expect.poll(() => session.agents.tasks?.view("small")?.status).toBe("failed");
    expect(session.record.budget.reservations.reserved(undefined).tokens).toBeGreaterThan(4_096);
    expect(session.agents.tasks?.get("small")?.error).toMatch(
      /reserved by running calls, \d+ tokens requested \(--max-tokens\)/,
    );
    open.resolve();
    // With nobody else at work, what is left is enough.
    expect(await done).toEqual({ kind: "done", answer: "both" });
    expect(session.agents.tasks?.view("small")).toMatchObject({ status: "failed", reason: "limit" });
    expect((await session.agents.tasks?.report("small"))?.answers).toMatchObject([{ response: "so far" }]);
    expect(session.agents.tasks?.view("big")).toMatchObject({ status: "completed" });
    expect(session.record.budget.reservations.reserved(undefined)).toEqual({ turns: 0, tokens: 0, costUsd: 0 });
  });

  it("the budget of a tree of agents counts the usage of children against the share of their parent", async () => {
    const { session } = await agentPool(
      [
        task("boss", "boss"),
        says("end"),
        forAgent("boss", task("kid", "kid"), says("never said")),
        forAgent("kid", again, again, again, says("never said")),
      ],
      { agents: [agent("boss", { limits: { turns: 4 } }), agent("kid", { limits: { turns: 100 } })] },
    );
    await session.sendAndWait({ prompt: "go" });
    expect(session.agents.tasks?.list().map(({ id, reason }) => [id, reason])).toEqual([
      ["boss", "limit"],
      ["kid", "limit"],
    ]);
    expect(session.agents.tasks?.usage("boss").calls).toBe(4);
    expect(session.agents.tasks?.get("kid")?.error).toBe("Agent boss has used its share: 4 turns of 4 turns used.");
    expect(checkTasks(session.events, { settled: true })).toEqual([]);
  });

  it("the budget of a tree of agents limits the working time of an agent, without idle time", async () => {
    const { session } = await agentPool(
      [task("one", "quick", { mode: "background" }), otherwise(says("ok")), forAgent("quick", says("first"), stalls())],
      { agents: [agent("quick", { limits: { seconds: 2 } })] },
    );
    await session.sendAndWait({ prompt: "go" });
    expect(session.agents.tasks?.view("one")).toMatchObject({ status: "idle", reason: "finished" });
    await new Promise((resolve) => setTimeout(resolve, 2_100));
    await session.agents.tasks?.send("one", "more");
    await expect.poll(() => session.agents.tasks?.view("one")?.reason).toBe("limit");
    expect(session.agents.tasks?.get("one")?.error).toBe("its time is up");
  });

  it("the budget of a tree of agents refuses a model without a known price when the cost is limited", async () => {
    const prices = { known: true };
    const { session, model } = await agentPool([task("one", "explorer"), says("end"), otherwise(says("x"))], {
      limits: { costUsd: 1 },
      model: { costOf: () => (prices.known ? 0.1 : null) },
    });
    session.subscribe(({ type }) => {
      if (type === "troupe.task_created") prices.known = false;
    });
    await session.sendAndWait({ prompt: "go" });
    expect(session.agents.tasks?.get("one")?.error).toMatch(/price of a call is not known/);
    expect(model.requests.filter((request) => agentOf(request) === "one")).toEqual([]);
  });

  it("the budget of a tree of agents lets a single agent use all of its limit", async () => {
    const { session } = await agentPool(
      [withUsage(again, { inputTokens: 999 }), withUsage(says("done"), { inputTokens: 9 })],
      {
        limits: { tokens: 1_000 },
      },
    );
    expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer: "done" });
  });

  it("the cost per agent sums exactly to the provider's count, also when it is read from the log", async () => {
    const counted: Usage[] = [];
    const costOf = ({ inputTokens, outputTokens }: Usage): number => inputTokens * 3e-6 + outputTokens * 1.5e-5;
    let number = 0;
    const counting = (moves: ReturnType<typeof says>) => () => {
      number += 1;
      const usage = { ...noUsage, inputTokens: 7 * number + 3, outputTokens: 3 * number + 1 };
      counted.push(usage);
      return withUsage(moves, usage);
    };
    const store = memoryStore();
    const first = await agentPool(
      [
        counting(three),
        counting(says("end")),
        forAgent(
          (request: ModelRequest) => agentOf(request) === "one",
          counting(task("deep", "writer")),
          counting(says("1")),
        ),
        otherwise(counting(says("x"))),
      ],
      { store, model: { costOf } },
    );
    await first.session.sendAndWait({ prompt: "go" });
    expect(counted.length).toBe(7);
    await first.session.close();
    const { session } = await agentPool([], { store, resume: "session-1", model: { costOf } });
    const total = counted.reduce((sum, usage) => sum + costOf(usage), 0);
    const leaves = ["one", "deep", "two", "three"].map((id) => session.agents.tasks?.usage(id, "own"));
    const main = usageOf(session.events, undefined);
    const costs = [main.costUsd, ...leaves.map((usage) => usage?.costUsd ?? Number.NaN)];
    expect(rounded(costs.reduce((sum, cost) => sum + cost, 0))).toBe(rounded(total));
    expect(session.record.budget.session.costUsd).toBe(rounded(total));
    expect(session.record.budget.session.usage.inputTokens).toBe(
      counted.reduce((sum, { inputTokens }) => sum + inputTokens, 0),
    );
    for (const id of ["one", "deep", "two", "three"]) {
      expect(session.agents.tasks?.usage(id, "own")).toMatchObject(usageOf(session.events, id));
    }
    expect(session.agents.tasks?.usage("one").costUsd).toBe(
      rounded(usageOf(session.events, "one").costUsd + usageOf(session.events, "deep").costUsd),
    );
  });
});

describe("reservations", () => {
  const limits = fc.record(
    {
      turns: fc.integer({ min: 1, max: 12 }),
      tokens: fc.integer({ min: 1, max: 2_000 }),
      costUsd: fc.integer({ min: 1, max: 200 }).map((cents) => cents / 100),
    },
    { requiredKeys: [] },
  );
  const node = fc.record({ parent: fc.nat(), limits: fc.option(limits, { nil: undefined }) });
  const move = fc.record({
    agent: fc.nat(),
    tokens: fc.integer({ min: 0, max: 600 }),
    share: fc.integer({ min: 0, max: 100 }),
  });

  it("reservations keep used + reserved within every budget at every step, if calls use what was expected", async () => {
    await fc.assert(
      fc.property(
        limits,
        fc.array(node, { maxLength: 7 }),
        fc.array(move, { maxLength: 80 }),
        (session, nodes, moves) => {
          const tree = grow(nodes);
          const registry = { get: (id: string) => tree.get(id) };
          const budget = new Budget([]);
          const ledger = new AgentUsage();
          const under = new Map<string | undefined, number>();
          const everyone = [undefined, ...tree.keys()];
          for (const { agent: index, tokens, share } of moves) {
            const who = everyone[index % everyone.length];
            const expected = under.get(who);
            if (expected === undefined) {
              const record = who === undefined ? undefined : tree.get(who);
              const shares = record ? sharesOf(record, { registry, ledger }) : [];
              const reached = budget.reserve(
                who,
                { limits: session, shares },
                { tokens: () => tokens, costUsd: () => tokens / 1_000 },
              );
              if (!reached) under.set(who, tokens);
            } else {
              // Never more than expected, and never more than was set aside.
              const held = heldBy(budget, who, { session, tree, registry, ledger });
              const used = Math.min(
                Math.floor((expected * share) / 100),
                held.tokens,
                Math.floor(held.costUsd * 1_000),
              );
              const event = usage(used);
              budget.apply(event);
              if (who !== undefined) ledger.apply(who, event);
              budget.release(who);
              under.delete(who);
            }
            expectWithin(budget, { session, tree, registry, ledger });
          }
        },
      ),
      { numRuns: process.env.TROUPE_SLOW ? 3_000 : 200 },
    );
  });

  it("a reservation is replaced by the real usage of a call, even a larger one, and the next call is refused", () => {
    const budget = new Budget([]);
    const expected = { tokens: () => 10, costUsd: () => 0 };
    expect(budget.reserve(undefined, { limits: { tokens: 100 } }, expected)).toBeUndefined();
    budget.apply(usage(150));
    budget.release(undefined);
    expect(budget.reserve(undefined, { limits: { tokens: 100 } }, expected)).toMatchObject({
      limit: "tokens",
      used: 150,
    });
    expect(budget.reservations.reserved(undefined).tokens).toBe(0);
  });
});

interface World {
  readonly session: Limits;
  readonly tree: ReadonlyMap<string, TaskRecord>;
  readonly registry: { get(id: string): TaskRecord | undefined };
  readonly ledger: AgentUsage;
}

function grow(nodes: readonly { parent: number; limits: Limits | undefined }[]): Map<string, TaskRecord> {
  const tree = new Map<string, TaskRecord>();
  for (const [index, { parent, limits }] of nodes.entries()) {
    const parents = [undefined, ...tree.keys()];
    const id = `t${index}`;
    const record = { id, parentId: parents[parent % parents.length], spec: { ...(limits && { limits }) } };
    tree.set(id, record as unknown as TaskRecord);
  }
  return tree;
}

/** The least that is left for it of what it was promised, in any budget around it. */
function heldBy(budget: Budget, who: string | undefined, { session, tree, registry, ledger }: World) {
  const record = who === undefined ? undefined : tree.get(who);
  const accounts = [{ limits: session }, ...(record ? sharesOf(record, { registry, ledger }) : [])];
  const amounts = accounts.map((account) =>
    budget.reservations.held(who, "owner" in account ? account.owner : undefined),
  );
  const least = (key: "tokens" | "costUsd", isLimited: (limits: Limits) => boolean): number =>
    Math.min(
      1e9,
      ...amounts.flatMap((amount, index) => (isLimited(accounts[index]?.limits ?? {}) ? [amount?.[key] ?? 0] : [])),
    );
  return {
    tokens: least("tokens", ({ tokens }) => tokens !== undefined),
    costUsd: least("costUsd", ({ costUsd }) => costUsd !== undefined),
  };
}

function expectWithin(budget: Budget, { session, tree, registry, ledger }: World): void {
  const { calls: turns, usage: used, costUsd } = budget.run;
  const spent = { turns, tokens: used.inputTokens + used.outputTokens, costUsd };
  const accounts = [
    { limits: session, spent },
    ...[...tree.values()].flatMap(({ id: owner, spec: { limits } }) =>
      limits ? [{ owner, limits, spent: ledger.spent(owner, registry) }] : [],
    ),
  ];
  for (const account of accounts) {
    const reserved = budget.reservations.reserved("owner" in account ? account.owner : undefined);
    for (const key of ["turns", "tokens", "costUsd"] as const) {
      const most = account.limits[key];
      if (most !== undefined) expect((account.spent[key] ?? 0) + (reserved[key] ?? 0)).toBeLessThanOrEqual(most + 1e-6);
    }
  }
}

function usage(inputTokens: number): EventData<"troupe.usage"> {
  const facts = { turnId: "0", provider: "faux", model: "faux-1", durationMs: 0, attempts: 1 };
  return { ...noUsage, ...facts, inputTokens, costUsd: inputTokens / 1_000 };
}

function usageOf(events: readonly SessionEvent[], agentId: string | undefined) {
  const own = events.flatMap((event) =>
    event.type === "troupe.usage" && event.agentId === agentId ? [event.data] : [],
  );
  return {
    calls: own.length,
    inputTokens: own.reduce((sum, { inputTokens }) => sum + inputTokens, 0),
    outputTokens: own.reduce((sum, { outputTokens }) => sum + outputTokens, 0),
    costUsd: rounded(own.reduce((sum, { costUsd }) => sum + (costUsd ?? Number.NaN), 0)),
  };
}

const rounded = (costUsd: number): number => Math.round(costUsd * 1e12) / 1e12;
