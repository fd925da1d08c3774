import { expect, it } from "vitest";
import { noUsage } from "../../src/model/provider.ts";
import { AgentUsage, sharesOf } from "../../src/session/budget/agent-usage.ts";
import { Reservations } from "../../src/session/budget/reservations.ts";
import type { TaskRecord } from "../../src/tasks/task-record.ts";

it("the model calls of all agents of a factory's run are counted together, and end at 5,000", () => {
  const task = (id: string, more: { parentId?: string; factoryRunId?: string }) =>
    ({ id, parentId: more.parentId, spec: { ...more } }) as unknown as TaskRecord;
  const tasks = [
    task("a", { factoryRunId: "run" }),
    task("below-a", { parentId: "a" }),
    task("b", { factoryRunId: "run" }),
    task("other", { factoryRunId: "another run" }),
    task("plain", {}),
  ];
  const registry = { get: (id: string) => tasks.find((one) => one.id === id) };
  const ledger = new AgentUsage();
  const call = { ...noUsage, costUsd: 0 } as Parameters<AgentUsage["apply"]>[1];
  for (const id of ["a", "below-a", "b", "other", "plain"]) ledger.apply(id, call);
  const shares = (id: string) => sharesOf(registry.get(id) as TaskRecord, { registry, ledger });
  expect(shares("below-a")).toMatchObject([{ owner: "run", limits: { turns: 5_000 }, spent: { turns: 3 } }]);
  expect(shares("plain")).toEqual([]);
  const expected = { tokens: () => 1, costUsd: () => 0 };
  for (let used = 3; used < 4_999; used++) ledger.apply("below-a", call);
  const reservations = new Reservations();
  expect(reservations.take("b", shares("b"), expected)).toBeUndefined();
  expect(reservations.take("a", shares("a"), expected)?.message).toContain("The run of the factory has used its share");
  expect(reservations.take("other", shares("other"), expected)).toBeUndefined();
});

it("an agent on another worker gets its own limits and half of the session's, which are reserved", () => {
  const reservations = new Reservations();
  const session = { limits: { turns: 20, tokens: 1_000 }, spent: { turns: 4, tokens: 200, costUsd: 0 } };
  const own = { owner: "a", limits: { turns: 3 }, spent: { turns: 0, tokens: 0, costUsd: 0 } };
  expect(reservations.allot("a", [own, session])).toEqual({ turns: 3, tokens: 400 });
  expect(reservations.allot("b", [session])).toEqual({ turns: 7, tokens: 200 });
  expect(reservations.reserved(undefined)).toMatchObject({ turns: 10, tokens: 600 });
  // A process that attaches to the work reserves the same again.
  expect(reservations.allot("a", [own, session], { turns: 3, tokens: 400 })).toEqual({ turns: 3, tokens: 400 });
  expect(reservations.reserved(undefined)).toMatchObject({ turns: 10, tokens: 600 });
  const spent = { ...session, spent: { turns: 10, tokens: 0, costUsd: 0 } };
  expect(reservations.allot("c", [spent])).toMatchObject({ limit: "turns" });
});
