import { describe, expect, it } from "vitest";
import type { AgentDefinition } from "../../src/agents/agent.ts";
import { effectiveTools } from "../../src/agents/effective-tools.ts";
import { systemStamp } from "../../src/lib/stamp.ts";
import { forAgent } from "../../src/model/faux/faux-plan.ts";
import { calls, fails, says, stalls } from "../../src/model/faux/faux-step.ts";
import { policyOf } from "../../src/runtime/permissions/policy.ts";
import type { AgentPoolOptions } from "../../src/session/agents/agent-pool-options.ts";
import { story, storyByAgent } from "../../src/testing/story.ts";
import { agentTools } from "../../src/tools/builtin.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { agent } from "../support/agent.ts";
import { dataOf, echo, type Stage, stage } from "../support/stage.ts";

/** A main agent with these agents to direct, all on one scripted model. */
async function troupe(
  steps: Parameters<typeof stage>[0],
  agents: readonly AgentDefinition[] = [agent("explorer"), agent("writer")],
  more: Parameters<typeof stage>[1] & { limits?: Partial<AgentPoolOptions["limits"]>; multiTurn?: boolean } = {},
): Promise<Stage> {
  const { limits, multiTurn = true, ...rest } = more;
  const tools: Tool[] = [echo, ...agentTools.map((make) => make({ agents: () => agents }))];
  const names = tools.map(({ name }) => name);
  const staged: { stage?: Stage } = {};
  const agentPool: AgentPoolOptions = {
    limits: { maxConcurrency: 8, maxDepth: 3, whenFull: "queue", ...limits },
    multiTurn,
    agents: () => agents,
    resolveAgent: async ({ definition, parentTools }) => ({
      tools: effectiveTools(definition, parentTools ?? names).tools,
      model: "faux-1",
      warnings: [],
    }),
    agentSetup: async (task, definition) => ({
      model: { provider: (staged.stage as Stage).model, providerId: "faux", model: "faux-1", costOf: () => 0 },
      promptAndTools: {
        system: definition.prompt,
        tools: tools.filter(({ name }) => task.tools?.includes(name) ?? true),
      },
      cwd: "/stage",
      roots: ["/stage"],
      policy: rest.policy ?? policyOf({ allTools: true }, { roots: ["/stage"], stateRoot: "/nowhere", writable: [] }),
      ports: {},
      release: async () => undefined,
    }),
  };
  const made = await stage(steps, { tools, stamp: systemStamp, agentPool, ...rest });
  staged.stage = made;
  return made;
}

const task = (name: string, agentType: string, more: Record<string, unknown> = {}) =>
  calls(["task", { description: "look", prompt: "look around", agent_type: agentType, name, ...more }]);

describe("a subagent", () => {
  it("a subagent works in its own conversation, in the same log, and its answer is the result of the call", async () => {
    const { session, model } = await troupe([
      task("scout", "explorer"),
      says("all done"),
      forAgent("explorer", calls(["echo", { text: "found" }]), says("seen")),
    ]);
    expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer: "all done" });
    expect(storyByAgent(session.events)).toMatchObject({
      scout: [
        "subagent.selected",
        "subagent.started",
        "user.message",
        "assistant.turn_start",
        "troupe.usage",
        "assistant.message",
        "tool.execution_start",
        "tool.execution_complete",
        "assistant.turn_end",
        "assistant.turn_start",
        "troupe.usage",
        "assistant.message",
        "assistant.turn_end",
        "subagent.completed",
        "subagent.deselected",
      ],
    });
    expect(model.requests[1]).toMatchObject({
      system: "You are the explorer.",
      messages: [{ role: "user", content: "look around" }],
    });
    const last = model.requests.at(-1)?.messages.at(-1);
    expect(last).toMatchObject({ role: "tool", content: expect.stringContaining("seen") });
    expect(dataOf(session.events, "troupe.task_state").map(({ to }) => to)).toEqual(["running", "completed"]);
  });

  it("a background agent returns its id at once, its end is notified, and only then is the session idle", async () => {
    const { session, model, heard } = await troupe([
      task("scout", "explorer", { mode: "background" }),
      says("waiting"),
      says("it found: seen"),
      forAgent("explorer", says("seen")),
    ]);
    expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer: "it found: seen" });
    expect(dataOf(session.events, "system.notification")).toMatchObject([
      { kind: { type: "agent_idle", agentId: "scout", agentType: "explorer" } },
    ]);
    expect(heard.filter(({ type }) => type === "session.idle")).toHaveLength(1);
    expect(story(session.events).filter((line) => /task_|notification/.test(line))).toEqual([
      "root troupe.task_created",
      "root troupe.task_state",
      "root troupe.task_state",
      "root system.notification",
      "root troupe.task_notice_delivered",
    ]);
    expect(model.requests).toHaveLength(4);
  });

  it("a subagent works in parallel with another one, and both answers return", async () => {
    const { session } = await troupe([
      calls(
        ["task", { description: "a", prompt: "a", agent_type: "explorer", name: "one" }],
        ["task", { description: "b", prompt: "b", agent_type: "writer", name: "two" }],
      ),
      says("both"),
      forAgent("explorer", says("from one")),
      forAgent("writer", says("from two")),
    ]);
    expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer: "both" });
    const results = dataOf(session.events, "tool.execution_complete").map(({ result }) => result?.content ?? "");
    expect(results.filter((text) => /from (one|two)/.test(text))).toHaveLength(2);
  });

  it("a subagent's failure is reported as such, and the main agent continues", async () => {
    const { session, model } = await troupe([
      task("scout", "explorer"),
      says("it failed"),
      forAgent("explorer", fails(400)),
    ]);
    expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer: "it failed" });
    expect(model.requests.at(-1)?.messages.at(-1)).toMatchObject({ role: "tool", isError: true });
    expect(dataOf(session.events, "subagent.failed")).toHaveLength(1);
    expect(dataOf(session.events, "session.error")).toEqual([]);
  });

  it("a subagent is cancelled when the answer that waits for it is stopped", async () => {
    const { session } = await troupe([task("scout", "explorer"), forAgent("explorer", stalls())]);
    const sent = session.sendAndWait({ prompt: "go" });
    await expect.poll(() => session.agents.tasks?.view("scout")?.status).toBe("running");
    session.abort();
    expect(await sent).toEqual({ kind: "aborted" });
    expect(session.agents.tasks?.view("scout")).toMatchObject({ status: "cancelled" });
  });

  it("a subagent can start agents of its own, down to the limit and no further", async () => {
    const nested = (name: string) => task(name, "explorer");
    const { session } = await troupe(
      [
        nested("one"),
        says("done"),
        forAgent(
          "explorer",
          nested("two"),
          nested("three"),
          nested("four"),
          says("deepest"),
          says("3"),
          says("2"),
          says("1"),
        ),
      ],
      [agent("explorer")],
    );
    await session.sendAndWait({ prompt: "go" });
    expect(session.agents.tasks?.list().map(({ id, parentId }) => [id, parentId])).toEqual([
      ["one", undefined],
      ["two", "one"],
      ["three", "two"],
    ]);
    const errors = dataOf(session.events, "tool.execution_complete").flatMap(({ error }) => error?.message ?? []);
    expect(errors).toEqual([expect.stringMatching(/Recursion limit/)]);
  });
});
