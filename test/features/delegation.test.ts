import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import { dataOf } from "../support/stage.ts";
import { of, onStage, resultsOf, starts, texts, toolNames } from "./stage.ts";

const built = ["explore", "task", "general-purpose", "rubber-duck", "code-review", "research"];

describe("the task tool", () => {
  it("ORC-01 ORC-03 ORC-26 SDK-23 SDK-24 the task tool returns the answer, and only the main agent answers the user", async () => {
    const steps = [
      starts("scout", "explore"),
      says("In short: it is a lighthouse."),
      of("scout", says("It is a lighthouse at sea.")),
    ];
    await onStage(steps, {}, async ({ session, requests, first, heard }) => {
      expect(await session.sendAndWait({ prompt: "what is it?" })).toEqual({
        kind: "done",
        answer: "In short: it is a lighthouse.",
      });
      expect(texts(first("scout"))).toEqual(["@scout look around"]);
      expect(requests("main")).toHaveLength(2);
      expect(requests("main")[1]?.messages.at(-1)).toMatchObject({
        role: "tool",
        content: expect.stringContaining("It is a lighthouse at sea."),
      });
      const toUser = heard.filter(({ type, agentId }) => type === "assistant.message" && agentId === undefined);
      expect(JSON.stringify(toUser)).not.toContain("at sea");
    });
  });

  it("ORC-02 ORC-12 ORC-30 the task tool is offered with its fields and advice, and refuses a call without a prompt", async () => {
    const steps = [calls(["task", { description: "d", agent_type: "explore", name: "n" }]), says("ok")];
    await onStage(steps, {}, async ({ session, first }) => {
      await session.sendAndWait({ prompt: "go" });
      const tool = first("main").tools.find(({ name }) => name === "task");
      const schema = tool?.parameters as { required: string[]; properties: Record<string, unknown> };
      expect(schema.required.toSorted()).toEqual(["agent_type", "description", "name", "prompt"]);
      expect(Object.keys(schema.properties)).toEqual(expect.arrayContaining(["model", "mode"]));
      expect(tool?.description).toContain("Prefer a custom agent to a built-in one");
      expect(tool?.description).toContain("Never start one agent and then wait or poll");
      expect(dataOf(session.events, "tool.execution_complete")).toMatchObject([
        { success: false, error: { message: expect.stringContaining("prompt") } },
      ]);
      expect(session.agents.tasks?.list()).toEqual([]);
    });
  });

  it("ORC-04 the task tool fails for an unknown type and names all agents", async () => {
    const files = { ".github/agents/poet.md": "---\nname: poet\ndescription: writes verse\n---\nYou are a poet.\n" };
    await onStage([starts("x", "painter"), says("ok")], { files }, async ({ session }) => {
      await session.sendAndWait({ prompt: "go" });
      const [message = ""] = resultsOf(session.events, "task");
      expect(message.split(": ").at(-1)?.replace(".", "").split(", ")).toEqual(["poet", ...built]);
      expect(session.agents.tasks?.list()).toEqual([]);
    });
  });

  it("ORC-05 SDK-37 the task tool checks the requested model of a worker before it starts, and uses it", async () => {
    const steps = [
      starts("a", "explore", { model: "alpha/enormous" }),
      starts("b", "explore", { model: "alpha/small" }),
      says("ok"),
      of("b", says("small words")),
    ];
    await onStage(steps, {}, async ({ session, first, requests }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(resultsOf(session.events, "task")[0]).toMatch(
        /^There is no model "alpha\/enormous"\..*Valid models: .*alpha\/large, alpha\/small/,
      );
      expect(first("main").model).toBe("large");
      expect(first("b").model).toBe("small");
      expect(requests("a")).toEqual([]);
      expect(session.agents.tasks?.list().map(({ id }) => id)).toEqual(["b"]);
    });
  });

  it("ORC-06 the task tool replaces a much more expensive model by the session's, and reports that", async () => {
    const steps = [starts("a", "explore", { model: "beta/dear" }), says("ok"), of("a", says("cheap words"))];
    await onStage(steps, {}, async ({ session, first }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(first("a").model).toBe("large");
      expect(dataOf(session.events, "session.warning").map(({ message }) => message)).toEqual([
        expect.stringContaining("was downgraded from beta/dear to alpha/large"),
      ]);
      expect(dataOf(session.events, "troupe.task_created")).toMatchObject([{ model: "alpha/large" }]);
    });
    const files = { "home:settings.json": JSON.stringify({ subagents: { maxCostRatio: 100 } }) };
    await onStage(steps, { files }, async ({ session, first }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(first("a").model).toBe("dear");
    });
  });

  it.each([
    ["explore", "explore", { model: "small", effortLevel: "low" }, { model: "small", reasoning_effort: "low" }],
    ["rubber-duck", "rubber-duck", { model: "complementary" }, { model: "other" }],
  ])(
    "ORC-07 ORC-08 the task tool gives %s another model only where settings request it",
    async (_name, type, setting, expected) => {
      const steps = [starts("a", type), says("ok"), of("a", says("words"))];
      const files = { "home:settings.json": JSON.stringify({ subagents: { agents: { [type]: setting } } }) };
      await onStage(steps, { files }, async ({ session, firstBody }) => {
        await session.sendAndWait({ prompt: "go" });
        expect(firstBody("a")).toMatchObject(expected);
      });
      await onStage(steps, {}, async ({ session, firstBody }) => {
        await session.sendAndWait({ prompt: "go" });
        expect(firstBody("a")).toMatchObject({ model: "large" });
        expect(firstBody("a")).not.toHaveProperty("reasoning_effort");
      });
    },
  );

  it.each([
    ["six levels unless told otherwise", {}, 6],
    ["two when told so", { COPILOT_SUBAGENT_MAX_DEPTH: "2" }, 2],
  ])(
    "ORC-09 ORC-56 the task tool starts agents of agents down to %s, and no further",
    async (_what, environment, most) => {
      const chain = Array.from({ length: most }, (_, level) =>
        of(`n${level + 1}`, starts(`n${level + 2}`, "general-purpose"), says(`end ${level + 1}`)),
      );
      const steps = [starts("n1", "general-purpose"), says("ok"), ...chain];
      await onStage(steps, { environment }, async ({ session, first, requests }) => {
        await session.sendAndWait({ prompt: "go" });
        expect(session.agents.tasks?.list().map(({ id }) => id)).toEqual(chain.map((_, index) => `n${index + 1}`));
        for (let level = 1; level < most; level++) expect(toolNames(first(`n${level}`))).toContain("task");
        expect(toolNames(first(`n${most}`))).not.toContain("task");
        expect(requests(`n${most}`)[1]?.messages.at(-1)).toMatchObject({
          role: "tool",
          content: expect.stringContaining("Tool 'task' does not exist"),
        });
        // Notices are for the main agent alone: what an agent starts answers in the call.
        expect(dataOf(session.events, "system.notification")).toEqual([]);
      });
    },
  );

  it("ORC-11 SDK-04 the task tool offers built-in and user types, and those added while the session runs", async () => {
    const steps = [says("one"), starts("ode", "court-poet"), says("two"), of("ode", says("a rhyme"))];
    const poet = "---\nname: Court Poet\ndescription: rhymes\n---\nRhyme.\n";
    await onStage(steps, { files: { ".github/agents/readme.txt": "" } }, async (stage) => {
      const { session, folder, heard, requests } = stage;
      await session.sendAndWait({ prompt: "go" });
      writeFileSync(join(folder, ".github/agents/poet.md"), poet);
      await expect
        .poll(() => dataOf(heard, "session.custom_agents_updated"))
        .toMatchObject([{ agents: [{ name: "Court Poet", source: "project" }], errors: [] }]);
      await session.sendAndWait({ prompt: "go on" });
      const [before, after] = requests("main").map(({ tools }) => tools.find(({ name }) => name === "task"));
      expect(typesIn(before)).toEqual(built);
      expect(typesIn(after)).toEqual(["Court Poet", ...built]);
      expect(after?.description).toContain("- Court Poet: rhymes");
      expect(resultsOf(session.events, "task")).toEqual([expect.stringContaining("a rhyme")]);
    });
  });

  it("ORC-28 ORC-46 a subagent's background task answers in the call, and each agent sees only its messages", async () => {
    const steps = [
      starts("outer", "general-purpose"),
      says("ok"),
      of("outer", starts("inner", "explore", { mode: "background" }), says("outer done")),
      of("inner", says("inner done")),
    ];
    await onStage(steps, {}, async ({ session, first, requests }) => {
      await session.sendAndWait({ prompt: "the secret word is Pomegranate" });
      expect(requests("outer")[1]?.messages.at(-1)).toMatchObject({
        role: "tool",
        content: expect.stringContaining("inner done"),
      });
      expect(texts(first("inner"))).toEqual(["@inner look around"]);
      expect(JSON.stringify([...requests("inner"), ...requests("outer")])).not.toContain("Pomegranate");
    });
  });
});

function typesIn(tool: { readonly parameters: unknown } | undefined): readonly string[] {
  const schema = tool?.parameters as { properties: { agent_type: { enum: string[] } } } | undefined;
  return schema?.properties.agent_type.enum ?? [];
}
