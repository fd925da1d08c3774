import { describe, expect, it } from "vitest";
import { says } from "../../src/model/faux/faux-step.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { dataOf } from "../support/stage.ts";
import { of, onStage, starts, toolNames } from "./stage.ts";

const poet = { name: "poet", displayName: "The Poet", prompt: "You are poet.", tools: ["view", "task"] };

describe("the agent that leads a session", () => {
  it("SDK-13 SDK-16 is chosen before the first request, with its prompt and tools, and that is said", async () => {
    const options = { agent: "poet", workspace: { agents: [poet] } };
    await onStage([says("hello")], options, async ({ session, first }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(first("main").system).toContain("You are poet.");
      expect(toolNames(first("main")).filter((name) => !name.endsWith("_agent") && name !== "list_agents")).toEqual([
        "view",
        "task",
      ]);
      expect(dataOf(session.events, "subagent.selected")).toEqual([
        { agentName: "poet", agentDisplayName: "The Poet", tools: ["view", "task"] },
      ]);
    });
  });

  it("SDK-14 a name that nobody has is an error that says what was meant", async () => {
    const made = onStage([], { agent: "peot", workspace: { agents: [poet] } }, async () => undefined);
    await expect(made).rejects.toMatchObject({ message: "Custom agent 'peot' not found.", hint: "Did you mean poet?" });
  });

  it("SDK-20 can be let go of: the event says so and the main agent is itself again", async () => {
    const options = { agent: "poet", workspace: { agents: [poet] } };
    await onStage([says("one"), says("two")], options, async ({ session, reopen, requests }) => {
      await session.sendAndWait({ prompt: "go" });
      const again = await reopen({ agent: "default" });
      await again.sendAndWait({ prompt: "go on" });
      expect(dataOf(again.events, "subagent.deselected")).toEqual([{}]);
      expect(requests("main").map(({ system }) => system.includes("You are poet."))).toEqual([true, false]);
    });
  });
});

describe("the tree of agents", () => {
  it("SDK-21 SDK-22 SDK-38 can be built from what a subscriber of the session hears, call by call", async () => {
    const steps = [
      starts("a", "general-purpose"),
      says("ok"),
      of("a", starts("b", "explore"), says("done")),
      of("b", says("deep")),
    ];
    await onStage(steps, {}, async ({ session, heard }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(treeOf(heard)).toEqual({ main: { a: { b: {} } } });
      const workers = heard.filter(({ type }) => type.startsWith("subagent."));
      expect(workers.map(({ type, agentId }) => [type, agentId])).toEqual([
        ["subagent.started", "a"],
        ["subagent.started", "b"],
        ["subagent.completed", "b"],
        ["subagent.completed", "a"],
      ]);
      const answers = heard.filter(({ type }) => type === "assistant.message");
      expect(answers.map(({ agentId }) => agentId)).toEqual([undefined, "a", "b", "a", undefined]);
    });
  });
});

/** Who made the call by which an agent was started is its parent. */
function treeOf(events: readonly SessionEvent[]): object {
  const callers = new Map<string, string>();
  const nodes = new Map<string, object>([["main", {}]]);
  for (const event of events) {
    if (event.type === "tool.execution_start") callers.set(event.data.toolCallId, event.agentId ?? "main");
    if (event.type !== "subagent.started" || event.agentId === undefined) continue;
    const node = {};
    nodes.set(event.agentId, node);
    Object.assign(nodes.get(callers.get(event.data.toolCallId) ?? "") ?? {}, { [event.agentId]: node });
  }
  return { main: nodes.get("main") };
}
