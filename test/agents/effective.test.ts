import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AgentDefinition } from "../../src/agents/agent.ts";
import { effectiveEffort, effectiveModel } from "../../src/agents/effective-model.ts";
import { effectiveTools } from "../../src/agents/effective-tools.ts";
import { modelChoices } from "../../src/agents/model-choices.ts";
import { agentFromObject } from "../../src/agents/parse-agent.ts";
import { externalTool } from "../../src/session/requests/external-tools.ts";
import { agentTools, builtinTools } from "../../src/tools/builtin.ts";

function define(fields: object = {}): AgentDefinition {
  const parsed = agentFromObject({ name: "worker", prompt: "Work.", ...fields }, { source: "program" });
  if (!parsed.ok) throw new Error(parsed.message);
  return parsed.agent;
}

const PARENT = [
  "view",
  "grep",
  "create",
  "edit",
  "bash",
  "read_bash",
  "stop_bash",
  "docs-find",
  "docs-write",
  "task",
  "read_agent",
];

const TOOLS = [...builtinTools, ...agentTools.map((make) => make({ agents: () => [] }))];
const traitsOf = (name: string) =>
  name === "docs-find" ? { readOnly: true } : TOOLS.find((tool) => tool.name === name);

describe("tools of an agent", () => {
  it.each([
    ["SDK-06 all of its parent's when it is empty", {}, PARENT, []],
    ["SDK-06 all when it says null", { tools: null }, PARENT, []],
    ["SDK-05 only those it lists, in the parent's order", { tools: ["edit", "view"] }, ["view", "edit"], []],
    ["what belongs to a tool comes with it", { tools: ["bash"] }, ["bash", "read_bash", "stop_bash"], []],
    ["the tools of a server by a star", { tools: ["docs/*"] }, ["docs-find", "docs-write"], []],
    ["none when it lists none", { tools: [] }, [], []],
    [
      "never what it disallows",
      { disallowedTools: ["bash", "docs-*", "task"] },
      ["view", "grep", "create", "edit"],
      [],
    ],
    ["nothing at all when all is disallowed", { disallowedTools: "*" }, [], []],
    [
      "SDK-34 nothing that writes for a reader",
      { readOnly: true },
      ["view", "grep", "read_bash", "docs-find", "task", "read_agent"],
      [],
    ],
    ["SDK-34 not even what a reader lists itself", { readOnly: true, tools: ["view", "edit"] }, ["view"], []],
    ["what the parent does not have is said", { tools: ["view", "veiw", "sql"] }, ["view"], ["veiw", "sql"]],
  ])("the tools of an agent are computed from its definition: %s", (_what, fields, tools, unknown) => {
    expect(effectiveTools(define(fields), PARENT, { traitsOf })).toEqual({ tools, unknown });
  });

  it("an agent's tools include a client's tool that takes the place of a built-in one that reads", () => {
    const ofClient = (tool: string) => externalTool({ name: tool });
    const given = effectiveTools(define({ readOnly: true }), [...PARENT, "own"], { traitsOf: ofClient });
    expect(given.tools).toEqual(["view", "grep", "read_bash", "task", "read_agent"]);
    expect(externalTool({ name: "write_bash" })).toMatchObject({ companionOf: "bash", readOnly: false });
  });

  it("an agent's tools are never more than the parent's, whatever the definition says", () => {
    const name = fc.constantFrom(
      ...PARENT,
      "*",
      "docs-*",
      "b*",
      "Read",
      "edit",
      "execute",
      "agent",
      "mcp__docs",
      "unknown",
      "__proto__",
    );
    const fields = fc.record(
      { tools: fc.option(fc.array(name), { nil: null }), disallowedTools: fc.array(name), readOnly: fc.boolean() },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.subarray(PARENT), fc.array(fields, { minLength: 1, maxLength: 4 }), (parent, chain) => {
        let tools: readonly string[] = parent;
        for (const one of chain) {
          const next = effectiveTools(define(one), tools, { traitsOf }).tools;
          expect(tools.filter((tool) => next.includes(tool))).toEqual(next);
          if (one.readOnly) expect(next).not.toContain("edit");
          tools = next;
        }
      }),
    );
  });
});

describe("the model of an agent", () => {
  const available = ["openai/gpt-5", "openai/gpt-5-mini", "anthropic/claude-haiku-4.5", "local/claude-haiku-4.5"];
  const ask = (fields: object, more: object = {}) =>
    effectiveModel({ definition: define(fields), parent: "openai/gpt-5", available, ...more });

  it.each([
    [
      "that of the call before all others",
      { model: "gpt-5" },
      { call: "gpt-5-mini", settings: "gpt-5" },
      "openai/gpt-5-mini",
      "call",
    ],
    [
      "that of the settings before its own",
      { model: "gpt-5" },
      { settings: "gpt-5-mini" },
      "openai/gpt-5-mini",
      "settings",
    ],
    [
      "the first of its own that can be used",
      { models: ["nope", "GPT-5 mini (openai)"] },
      {},
      "openai/gpt-5-mini",
      "definition",
    ],
    ["its parent's when it has none", {}, {}, "openai/gpt-5", "parent"],
    ["its parent's when the call says so", { model: "gpt-5-mini" }, { call: "inherit" }, "openai/gpt-5", "call"],
    [
      "whatever is asked for where nobody knows the list",
      {},
      { call: "brand-new", available: undefined },
      "brand-new",
      "call",
    ],
  ])("the model of an agent is %s", (_what, fields, more, model, source) => {
    expect(ask(fields, more)).toMatchObject({ model, source });
  });

  it("an agent without a usable model runs on its parent's, with a warning", () => {
    expect(ask({ models: ["nope"] }, { settings: "neither" })).toEqual({
      model: "openai/gpt-5",
      source: "parent",
      warning: "The agent worker runs on openai/gpt-5, because neither (settings), nope is not available.",
    });
  });

  it("an agent with a required model that is unavailable is refused", () => {
    expect(ask({ model: "nope", modelPolicy: "required" })).toEqual({
      refused: "The agent worker needs nope, which is not available.",
    });
  });

  it("ORC-05 an agent call with an unknown model is refused and lists the valid ones", () => {
    expect(ask({}, { call: "openai/gtp-5" })).toEqual({
      refused: `There is no model "openai/gtp-5". Did you mean openai/gpt-5? Valid models: ${available.join(", ")}.`,
    });
  });

  it("a model name that two providers offer is refused as ambiguous", () => {
    expect(ask({}, { call: "claude-haiku-4.5" })).toHaveProperty("refused");
  });

  it("an agent uses the effort of the settings, else of the definition, else of a parent on the same model", () => {
    const parent = { model: "a", effort: "high" };
    const definition = { reasoningEffort: "low" };
    expect(effectiveEffort({ settings: "max", definition, parent, model: "a" })).toBe("max");
    expect(effectiveEffort({ definition, parent, model: "a" })).toBe("low");
    expect(effectiveEffort({ definition: {}, parent, model: "a" })).toBe("high");
    expect(effectiveEffort({ definition: {}, parent, model: "b" })).toBeUndefined();
  });
});

describe("the description of agents to a model", () => {
  it("SDK-08 SDK-09 the list of agents for a model omits agents that cannot be chosen", () => {
    const agents = [define({ name: "open", description: "d" }), define({ name: "closed", infer: false })];
    expect(modelChoices(agents)).toEqual([{ name: "open", description: "d" }]);
  });

  it("the list of agents for a model is cut to 300 characters for each agent and to 4,096 in all", () => {
    const few = modelChoices([define({ name: "a", description: "x".repeat(1000) })]);
    expect(few[0]?.description).toHaveLength(300);
    const many = Array.from({ length: 60 }, (_, index) =>
      define({ name: `a${index}`, description: index === 0 ? "short" : "x".repeat(900) }),
    );
    const choices = modelChoices(many);
    expect(choices).toHaveLength(60);
    expect(choices[0]?.description).toBe("short");
    expect(choices.reduce((sum, { description }) => sum + description.length, 0)).toBeLessThanOrEqual(4096);
    expect(choices[1]?.description.length).toBeGreaterThan(60);
  });
});
