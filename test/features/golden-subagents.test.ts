import { describe, expect, it } from "vitest";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import { beginning, golden, of, onStage, resultsOf, texts, turn } from "./stage.ts";

describe("golden: coordinated subagents", () => {
  it("BLX-02 BLX-13 BLX-22 BLX-23 BLX-25 golden: workers read one workspace, and return only what they submit", async () => {
    const submits = (summary: string) => calls(["submit_result", { status: "completed", summary }]);
    const agents = [
      { id: "slow", role: "scout", task: "@slow what is here?" },
      { id: "quick", role: "review", task: "@quick is it right?" },
    ];
    const steps = [
      calls(["subagents_run", { agents }]),
      says("Both looked."),
      of("slow", calls(["glob", { pattern: "*" }]), calls(["view", { path: "a.txt" }]), submits("one file")),
      of("quick", calls(["view", { path: "a.txt" }]), submits("it is right")),
    ];
    const options = { files: { "a.txt": "hello" }, model: { reasoningEffort: "high" as const } };
    await onStage(steps, options, async ({ session, requests, first, firstBody, folder }) => {
      await session.sendAndWait({ prompt: "ask a scout and a reviewer" });
      expect(golden(session.events)).toEqual({
        agents: {
          root: [...beginning, ...turn([["troupe.permission", "troupe.permission"]]), ...turn()],
          slow: worker(2),
          quick: worker(1),
        },
        tasks: {
          slow: ["created", "state running", "state completed", "notice_delivered read"],
          quick: ["created", "state running", "state completed", "notice_delivered read"],
        },
      });
      // Same provider, model, effort and folder as the coordinator.
      expect(firstBody("main")).toMatchObject({ model: "large", reasoning_effort: "high" });
      for (const id of ["slow", "quick"]) {
        expect([id, firstBody(id)]).toMatchObject([id, { model: "large", reasoning_effort: "high" }]);
        expect(first(id).system).toContain(`Working folder: ${folder}`);
      }
      expect(resultsOf(session.events, "view")).toEqual([
        expect.stringContaining("hello"),
        expect.stringContaining("hello"),
      ]);
      const [result = "{}"] = resultsOf(session.events, "subagents_run");
      expect(JSON.parse(result).agents.map(({ id, summary }: Record<string, string>) => [id, summary])).toEqual([
        ["slow", "one file"],
        ["quick", "it is right"],
      ]);
      expect(first("slow").model).toBe(first("main").model);
      expect(first("slow").system).toContain(session.workspace.cwd);
      expect(requests("main").map((request) => texts(request).length)).toEqual([1, 3]);
    });
  });
});

/** What it was given, its life with one step for each kind of tool, and its result. */
function worker(looks: number): string[] {
  const look = turn([[]]);
  const looking = Array.from({ length: looks }, () => [...look.slice(0, 3), "troupe.subagent_step", ...look.slice(3)]);
  return [
    "troupe.subagent_step",
    "subagent.started",
    "user.message",
    ...looking.flat(),
    ...turn([[]]),
    "subagent.completed",
    ...Array.from({ length: looks + 1 }, () => "troupe.subagent_step"),
  ];
}
