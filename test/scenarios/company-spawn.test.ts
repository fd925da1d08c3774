import { describe, expect, it } from "vitest";
import { forAgent } from "../../src/model/faux/faux-plan.ts";
import { calls, says, stalls } from "../../src/model/faux/faux-step.ts";
import { agent } from "../support/agent.ts";
import { company } from "../support/company.ts";
import { dataOf } from "../support/stage.ts";

const MANY = 200;

describe("starting agents", () => {
  it("answers in under a second whatever the load: beyond the places they are queued, and the call says so", async () => {
    const work = (at: number) => ({ description: "look", prompt: "look", agent_type: "slow", name: `one ${at}` });
    const starts = Array.from(
      { length: MANY },
      (_, at) => ["task", { ...work(at), mode: "background" }, `call-${at}`] as const,
    );
    const { session } = await company(
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
    expect(Math.max(...waits)).toBeLessThan(1_000);
    const told = dataOf(session.events, "tool.execution_complete").map(({ result }) => result?.content ?? "");
    expect(told.filter((text) => text.includes("it is queued"))).toHaveLength(MANY - 8);
    const states = session.tasks?.list().map(({ status }) => status) ?? [];
    expect(states.filter((status) => status === "running")).toHaveLength(8);
    expect(states.filter((status) => status === "queued")).toHaveLength(MANY - 8);
    await session.close();
  });
});
