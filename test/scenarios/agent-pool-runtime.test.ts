import { describe, expect, it } from "vitest";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import { of, onStage, resultsOf, starts, toolNames } from "../features/stage.ts";

const MAX_REQUEST_CHARACTERS = 20_000;

describe("agents and workers in a whole session", () => {
  it.each(["alpha/large", "beta/other"])(
    "BLX-01, BLX-24: workers read the workspace and hand in a result over %s",
    (model) =>
      onStage(
        [
          calls(["subagents_run", { agents: [{ id: "w", role: "scout", task: "@worker what is here?" }] }]),
          says("There is a file."),
          of(
            "worker",
            calls(["glob", { pattern: "*" }]),
            calls(["submit_result", { status: "completed", summary: "a.txt" }]),
          ),
        ],
        { model: { name: model }, files: { "a.txt": "hello" } },
        async ({ session, requests, first }) => {
          expect(await session.sendAndWait({ prompt: "ask a scout" })).toEqual({
            kind: "done",
            answer: "There is a file.",
          });
          expect(toolNames(first("main"))).toContain("subagents_run");
          expect(toolNames(first("main"))).not.toContain("submit_result");
          const names = toolNames(first("worker"));
          expect(names).toEqual(expect.arrayContaining(["view", "glob", "grep", "bash", "submit_result"]));
          const own = ["environment_detect", "memory_read", "plan_read", "submit_result"];
          expect(toolNames(first("main"))).toEqual(expect.arrayContaining(names.filter((name) => !own.includes(name))));
          expect(requests("worker").at(-1)?.messages.at(-1)?.content).toContain("a.txt");
          expect(resultsOf(session.events, "subagents_run")[0]).toMatch(/"status":"completed","summary":"a\.txt"/);
        },
      ),
  );

  it("the first request stays small with all built-in tools and agents", () =>
    onStage([says("hello")], {}, async ({ session, first }) => {
      await session.sendAndWait({ prompt: "hi" });
      const { system, messages, tools } = first("main");
      const shown = tools.map(({ name, description, parameters }) => ({ name, description, parameters }));
      const size = JSON.stringify({ system, messages, tools: shown }).length;
      expect(size).toBeLessThanOrEqual(MAX_REQUEST_CHARACTERS);
    }));

  it("SDK-25 SDK-41: an agent has a tool hidden from the main agent if it lists it or has no list", () =>
    onStage(
      [
        starts("lists", "lister"),
        starts("takes", "taker"),
        says("end"),
        of("lists", says("1")),
        of("takes", says("2")),
      ],
      {
        tools: { choice: { hiddenFromMain: ["glob"] } },
        files: {
          "home:agents/lister.md": "---\nname: lister\ndescription: lists\ntools: [view, glob]\n---\nList.",
          "home:agents/taker.md": "---\nname: taker\ndescription: takes\n---\nTake.",
        },
      },
      async ({ session, first }) => {
        await session.sendAndWait({ prompt: "go" });
        expect(toolNames(first("main"))).not.toContain("glob");
        expect(toolNames(first("lists"))).toEqual(["view", "glob"]);
        expect(toolNames(first("takes"))).toEqual(expect.arrayContaining(["view", "glob"]));
      },
    ));

  it("subagents cannot declare the whole task done", () =>
    onStage(
      [
        starts("kid", "general-purpose"),
        calls(["task_complete", { summary: "all of it" }]),
        of("kid", calls(["task_complete", { summary: "forged" }]), says("tried")),
      ],
      { mode: "autopilot" },
      async ({ session, first }) => {
        await session.sendAndWait({ prompt: "go" });
        expect(toolNames(first("main"))).toContain("task_complete");
        expect(toolNames(first("kid"))).not.toContain("task_complete");
        const ends = session.events.filter(({ type }) => type === "session.task_complete");
        expect(ends).toMatchObject([{ data: { summary: "all of it" } }]);
        expect(ends.map(({ agentId }) => agentId)).toEqual([undefined]);
      },
    ));

  it("subagents and workers have at most the rights of the main agent", () =>
    onStage(
      [
        starts("kid", "general-purpose"),
        calls(["subagents_run", { agents: [{ id: "w", role: "scout", task: "@worker look" }] }]),
        says("end"),
        of("kid", calls(["bash", { command: "echo hi" }]), says("tried")),
        of("worker", calls(["submit_result", { status: "completed", summary: "ok" }])),
      ],
      {
        agents: { main: "chief" },
        files: {
          "home:agents/chief.md":
            "---\nname: chief\ndescription: leads\ntools: [view, task, subagents_run]\n---\nLead.",
        },
      },
      async ({ session, first }) => {
        await session.sendAndWait({ prompt: "go" });
        const mine = toolNames(first("main"));
        expect(mine).toContain("view");
        expect(mine).not.toContain("bash");
        expect(mine).toEqual(expect.arrayContaining(toolNames(first("kid"))));
        expect(toolNames(first("worker"))).toEqual([
          ...["view", "environment_detect", "memory_read", "plan_read", "submit_result"],
        ]);
        const errors = session.events.flatMap(({ agentId, type, data }) =>
          agentId === "kid" && type === "tool.execution_complete" ? [data.error?.message] : [],
        );
        expect(errors).toEqual([expect.stringMatching(/^Tool 'bash' does not exist/)]);
      },
    ));
});
