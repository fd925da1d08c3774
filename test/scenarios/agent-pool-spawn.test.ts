import { describe, expect, it } from "vitest";
import { forAgent } from "../../src/model/faux/faux-plan.ts";
import { calls, says, stalls } from "../../src/model/faux/faux-step.ts";
import { agent } from "../support/agent.ts";
import { agentPool } from "../support/agent-pool.ts";
import { dataOf } from "../support/stage.ts";
import { HANG_MS } from "../support/work.ts";

const MANY = 200;

describe("starting agents", () => {
  it("a background start returns at once even if no slot is free, and reports that the agent is queued", async () => {
    const work = (at: number) => ({ description: "look", prompt: "look", agent_type: "slow", name: `one ${at}` });
    const starts = Array.from(
      { length: MANY },
      (_, at) => ["task", { ...work(at), mode: "background" }, `call-${at}`] as const,
    );
    const { session } = await agentPool(
      [calls(...starts), says("all are started"), forAgent("slow", ...Array.from({ length: 8 }, () => stalls()))],
      { agents: [agent("slow")], environment: { TROUPE_SUBAGENT_MAX_CONCURRENT: "8" }, waitForAgentsMs: 0 },
    );
    expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer: "all are started" });
    const begun = new Map<string, number>();
    const waits: number[] = [];
    for (const { type, data, timestamp } of session.events) {
      if (type === "tool.execution_start") begun.set(data.toolCallId, Date.parse(timestamp));
      if (type === "tool.execution_complete") waits.push(Date.parse(timestamp) - (begun.get(data.toolCallId) ?? 0));
    }
    expect(waits).toHaveLength(MANY);
    expect(Math.max(...waits)).toBeLessThan(HANG_MS);
    const told = dataOf(session.events, "tool.execution_complete").map(({ result }) => result?.content ?? "");
    expect(told.filter((text) => text.includes("it is queued"))).toHaveLength(MANY - 8);
    const states = session.agents.tasks?.list().map(({ status }) => status) ?? [];
    expect(states.filter((status) => status === "running")).toHaveLength(8);
    expect(states.filter((status) => status === "queued")).toHaveLength(MANY - 8);
    await session.close();
  });
});

describe("the agents that one message starts", () => {
  const start = (name: string, agentType = "explorer") => ({
    description: "d",
    prompt: "p",
    agent_type: agentType,
    name,
  });
  const told = (events: Parameters<typeof dataOf>[0]) =>
    dataOf(events, "tool.execution_complete").map(({ success, error }) => (success ? "started" : error?.message));

  it("one message starts at most 256 agents by default, however it starts them", async () => {
    const starts = Array.from(
      { length: 300 },
      (_, at) => ["task", { ...start(`one ${at}`), mode: "background" }, `call-${at}`] as const,
    );
    const { session } = await agentPool([calls(...starts), says("done"), forAgent("explorer", stalls())], {
      agents: [agent("explorer")],
      environment: { TROUPE_SUBAGENT_MAX_CONCURRENT: "1" },
      waitForAgentsMs: 0,
    });
    await session.sendAndWait({ prompt: "go" });
    expect(session.agents.tasks?.list()).toHaveLength(256);
    const refused = told(session.events).filter((text) => text !== "started");
    expect(refused).toHaveLength(44);
    expect(refused[0]).toContain("The limit of 256 agents for one message is reached.");
    await session.close();
  });

  it("started agents count at every depth, and from the start again with the next message", async () => {
    const { session } = await agentPool(
      [
        calls(["task", start("a", "lead")]),
        calls(["task", start("b", "lead")]),
        says("first"),
        calls(["task", start("c", "lead")]),
        says("second"),
        forAgent("lead", calls(["task", start("a1")], ["task", start("a2")]), says("led")),
        forAgent("explorer", says("1"), says("2"), says("3"), says("4")),
        forAgent("lead", calls(["task", start("c1")]), says("led")),
      ],
      { agents: [agent("lead"), agent("explorer")], environment: { TROUPE_SUBAGENT_MAX_TOTAL: "3" } },
    );
    expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer: "first" });
    const limit = expect.stringContaining("The limit of 3 agents for one message is reached.");
    expect(told(session.events)).toEqual(["started", "started", "started", limit]);
    expect(await session.sendAndWait({ prompt: "again" })).toEqual({ kind: "done", answer: "second" });
    expect(told(session.events).slice(4)).toEqual(["started", "started"]);
    await session.close();
  });
});
