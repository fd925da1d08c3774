import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { says } from "../../src/model/faux/faux-step.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { submit } from "../../src/runtime/submit.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { dataOf } from "../support/stage.ts";
import { of, onStage, starts, toolNames } from "./stage.ts";

const poet = { name: "poet", displayName: "The Poet", prompt: "You are poet.", tools: ["view", "task"] };

describe("the agent that leads a session", () => {
  it("SDK-13 SDK-16 the lead agent is chosen before the first request, with prompt and tools, and announced", async () => {
    const options = { agents: { main: "poet" }, workspace: { agents: [poet] } };
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

  it("SDK-14 an unknown name of the lead agent is an error with a suggestion", async () => {
    const made = onStage([], { agents: { main: "peot" }, workspace: { agents: [poet] } }, async () => undefined);
    await expect(made).rejects.toMatchObject({
      message: "Custom agent 'peot' not found.",
      hint: expect.stringContaining("Did you mean poet? Agents: poet, "),
    });
  });

  it("SDK-20 a deselected lead agent is reported by an event, and the default main agent is active again", async () => {
    const options = { agents: { main: "poet" }, workspace: { agents: [poet] } };
    await onStage([says("one"), says("two")], options, async ({ session, reopen, requests }) => {
      await session.sendAndWait({ prompt: "go" });
      const again = await reopen({ agents: { main: "default" } });
      await again.sendAndWait({ prompt: "go on" });
      expect(dataOf(again.events, "subagent.deselected")).toEqual([{}]);
      expect(requests("main").map(({ system }) => system.includes("You are poet."))).toEqual([true, false]);
    });
  });
});

describe("an agent chosen while the session is open", () => {
  const server = fileURLToPath(new URL("./task-server.mjs", import.meta.url));
  const files = {
    "home:settings.json": JSON.stringify({ model: "alpha/large" }),
    "home:skills/rhyme/SKILL.md": "---\nname: rhyme\ndescription: rhymes\n---\nMoon rhymes with June.\n",
  };

  it("SDK-15 SDK-20 an agent chosen in an open session works as if chosen at creation, and can be deselected", async () => {
    await using folder = await tempFolder();
    const mcpServers = { garden: { command: process.execPath, args: [server, join(folder.path, "log"), "plain"] } };
    const bard = {
      ...poet,
      name: "bard",
      prompt: "You are bard.",
      tools: ["view", "garden-dig"],
      skills: ["rhyme"],
      model: "alpha/small",
      reasoningEffort: "low",
      mcpServers,
    };
    const steps = [says("one"), says("two"), says("three"), says("four")];
    const workspace = { agents: [poet, bard] };
    // Nobody names a model, so that agents may.
    const options = { files, workspace, model: { name: undefined } };
    await onStage(steps, options, async ({ session, requests, heard }) => {
      const choice = session.workspace.services?.agents;
      await session.sendAndWait({ prompt: "go" });
      await submit(session, "/agent bard");
      await session.sendAndWait({ prompt: "sing" });
      await choice?.select("poet");
      await session.sendAndWait({ prompt: "and you" });
      await choice?.select(undefined);
      await session.sendAndWait({ prompt: "go on" });
      const seen = requests("main").map(({ system, model, tools }) => ({
        who: /You are (poet|bard)\./.exec(system)?.[1],
        rhymes: system.includes("Moon rhymes with June."),
        model,
        digs: tools.some(({ name }) => name === "garden-dig"),
        views: tools.some(({ name }) => name === "view"),
        edits: tools.some(({ name }) => name === "edit"),
      }));
      const plain = { who: undefined, rhymes: false, model: "large", digs: false, views: true };
      expect(seen).toEqual([
        { ...plain, edits: true },
        { ...plain, who: "bard", rhymes: true, model: "small", digs: true, edits: false },
        { ...plain, who: "poet", edits: false },
        { ...plain, edits: true },
      ]);
      expect(heard.filter(({ type }) => type.startsWith("subagent.")).map(({ type, data }) => [type, data])).toEqual([
        ["subagent.selected", { agentName: "bard", agentDisplayName: "The Poet", tools: ["view", "garden-dig"] }],
        ["subagent.selected", { agentName: "poet", agentDisplayName: "The Poet", tools: ["view", "task"] }],
        ["subagent.deselected", {}],
      ]);
      expect(dataOf(session.events, "session.model_change").slice(1)).toMatchObject([
        { previousModel: "large", newModel: "small", reasoningEffort: "low", cause: "agent" },
        { previousModel: "small", newModel: "large", previousReasoningEffort: "low", cause: "agent" },
      ]);
      expect(session.mainAgent.reasoningEffort).toBeUndefined();
      await expect(choice?.select("brad")).rejects.toMatchObject({ message: "Custom agent 'brad' not found." });
      expect(choice?.selected()).toBeUndefined();
    });
  });

  it("SDK-15 SDK-20 a deselected agent takes its MCP servers with it, also after a resume", async () => {
    await using folder = await tempFolder();
    const mcpServers = { garden: { command: process.execPath, args: [server, join(folder.path, "log"), "plain"] } };
    const digger = { name: "digger", prompt: "You are digger.", mcpServers };
    const options = { agents: { main: "digger" }, workspace: { agents: [digger, poet] } };
    await onStage([says("one"), says("two"), says("three")], options, async ({ session, requests, reopen }) => {
      await session.sendAndWait({ prompt: "go" });
      await submit(session, "/agent poet");
      await session.sendAndWait({ prompt: "go on" });
      const again = await reopen({ agents: {} });
      await again.sendAndWait({ prompt: "still you" });
      expect(requests("main").map(({ system }) => /You are (\w+)\./.exec(system)?.[1])).toEqual([
        "digger",
        "poet",
        "poet",
      ]);
      expect(requests("main").map((request) => toolNames(request).includes("garden-dig"))).toEqual([
        true,
        false,
        false,
      ]);
    });
  });
});

describe("the tree of agents", () => {
  it("SDK-16 SDK-20 SDK-40 each agent of six dispatches has a pair of selected and deselected events", async () => {
    const names = ["a", "b", "c", "d", "e", "f"];
    const agents = [
      { name: "poet", displayName: "The Poet", prompt: "You are poet.", description: "rhymes", tools: ["view"] },
    ];
    const steps = [
      ...names.map((name) => starts(name, "poet")),
      says("done"),
      ...names.map((name) => of(name, says("found"))),
    ];
    await onStage(steps, { workspace: { agents } }, async ({ session }) => {
      await session.sendAndWait({ prompt: "go" });
      const own = session.events.filter(({ type }) => type.startsWith("subagent."));
      expect(own.map(({ type, agentId }) => [agentId, type])).toEqual(
        names.flatMap((name) =>
          ["selected", "started", "completed", "deselected"].map((step) => [name, `subagent.${step}`]),
        ),
      );
      const who = { agentName: "poet", agentDisplayName: "The Poet" };
      expect(dataOf(session.events, "subagent.selected")).toEqual(names.map(() => ({ ...who, tools: ["view"] })));
      expect(dataOf(session.events, "subagent.deselected")).toEqual(names.map(() => ({})));
      expect(dataOf(session.events, "subagent.started").map(({ agentDescription }) => agentDescription)).toEqual(
        names.map(() => "rhymes"),
      );
    });
  });

  it("SDK-21 SDK-22 SDK-38 the tree of agents can be built from the events of a subscriber, call by call", async () => {
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
        ["subagent.selected", "a"],
        ["subagent.started", "a"],
        ["subagent.selected", "b"],
        ["subagent.started", "b"],
        ["subagent.completed", "b"],
        ["subagent.deselected", "b"],
        ["subagent.completed", "a"],
        ["subagent.deselected", "a"],
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
