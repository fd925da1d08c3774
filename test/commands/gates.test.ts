import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fleetGate, fleetState, judgeFleet } from "../../src/commands/delegation/fleet-gate.ts";
import { judgeResearch, researchFacts, researchGate } from "../../src/commands/delegation/research-gate.ts";
import { called } from "./stage.ts";

const REPORT = "/state/files/research-x.md";
const dispatches = (count: number) =>
  Array.from({ length: count }, () => called("task", { agent_type: "research" })).flat();
const report = called("create", { path: REPORT, file_text: "# x" });

describe("ORC-68 the coverage gate of a research run", () => {
  it.each([
    [0, false, /0 of at least 6 dispatches.*at least 6 more research agents/],
    [5, true, /5 of at least 6 dispatches.*at least 1 more research agent for/],
    [6, false, /^The report is missing\..*research-x\.md$/],
    [6, true, undefined],
    [10, true, undefined],
  ])(
    "ORC-68 the coverage gate judges a research run after %i dispatches with a report (%s)",
    (count, reportExists, expected) => {
      const message = judgeResearch({ dispatches: count, reportExists }, REPORT);
      if (expected === undefined) expect(message).toBeUndefined();
      else expect(message).toMatch(expected);
    },
  );

  it("the coverage gate counts only successful dispatches of the leader to research agents", () => {
    const events = [
      ...dispatches(2),
      ...called("task", { agent_type: "Research" }),
      ...called("task", { agent_type: "explore" }),
      ...called("task", { agent_type: "research" }, { success: false }),
      ...called("task", { agent_type: "research" }, { agentId: "child" }),
      ...called("create", { path: "/elsewhere.md" }),
      ...called("create", { path: REPORT }, { success: false }),
    ];
    expect(researchFacts(events, REPORT)).toEqual({ dispatches: 3, reportExists: false });
    expect(researchFacts([...events, ...report], REPORT)).toEqual({ dispatches: 3, reportExists: true });
  });

  it("the coverage gate asks for more at most twice, and accepts a thorough run at once", async () => {
    const lazy = researchGate({ reportPath: REPORT });
    const answers = [await lazy([]), await lazy([]), await lazy([]), await lazy([])];
    expect(answers.map((answer) => typeof answer)).toEqual(["string", "string", "undefined", "undefined"]);
    expect(await researchGate({ reportPath: REPORT })([...dispatches(6), ...report])).toBeUndefined();
  });

  it("the coverage gate checks the file on disk instead of trusting the calls", async () => {
    const gate = researchGate({ reportPath: REPORT, reportExists: async () => false });
    expect(await gate([...dispatches(6), ...report])).toContain("The report is missing.");
  });
});

const todo = (text: string) => {
  const [id = "", status = "pending"] = text.split(":");
  return { id, status };
};
const todos = (...texts: string[]) => texts.map(todo);
const needs = (...pairs: string[]) =>
  pairs.map((pair) => {
    const [todoId = "", dependsOn = ""] = pair.split(">");
    return { todoId, dependsOn };
  });

describe("the gate of a fleet", () => {
  it.each([
    ["nothing there", todos(), needs(), undefined],
    ["all done", todos("a:done", "b:done"), needs("b>a"), undefined],
    ["one ready", todos("a:done", "b"), needs("b>a"), /^1 todo is ready and not done: b\. /],
    ["two ready", todos("a", "b", "c"), needs("c>a"), /^2 todos are ready and not done: a, b\. /],
    [
      "one left claimed",
      todos("a:in_progress", "b"),
      needs("b>a"),
      /^1 todo is claimed, but no agent is running: a\. /,
    ],
    ["the rest waits for a blocked one", todos("a:blocked", "b", "c"), needs("b>a", "c>b"), undefined],
    ["a ring", todos("a", "b", "c:done"), needs("a>b", "b>a"), /^2 todos are waiting for each other .*: a, b\. /],
    ["waits for itself", todos("a"), needs("a>a"), /waiting for each other/],
    ["depends on what does not exist", todos("a"), needs("a>ghost"), /ready and not done: a/],
  ])("the gate of a fleet judges a list of todos: %s", (_, list, dependencies, expected) => {
    const message = judgeFleet(fleetState(list, dependencies));
    if (expected === undefined) expect(message).toBeUndefined();
    else expect(message).toMatch(expected);
  });

  it("the gate of a fleet sends one reminder, and another one only after a todo was done", async () => {
    let list = todos("a", "b");
    let running = 0;
    const gate = fleetGate({
      readTodos: async () => list,
      readDependencies: async () => [],
      runningAgents: () => running,
    });
    expect(await gate([])).toContain("2 todos");
    expect(await gate([])).toBeUndefined();
    list = todos("a:done", "b");
    running = 1;
    expect(await gate([])).toBeUndefined();
    running = 0;
    expect(await gate([])).toContain("1 todo is ready");
    expect(await gate([])).toBeUndefined();
  });

  it("the gate of a fleet always lets the fleet end, however the todos change", async () => {
    const status = fc.constantFrom("pending", "in_progress", "done", "blocked");
    const snapshot = fc.array(fc.record({ id: fc.constantFrom("a", "b", "c", "d", "e", "f"), status }), {
      maxLength: 6,
    });
    await fc.assert(
      fc.asyncProperty(fc.array(snapshot, { minLength: 30, maxLength: 60 }), async (snapshots) => {
        let at = 0;
        const gate = fleetGate({
          readTodos: async () => snapshots[at++] ?? [],
          readDependencies: async () => [],
          runningAgents: () => 0,
        });
        let reminders = 0;
        for (const _ of snapshots) if ((await gate([])) !== undefined) reminders++;
        return reminders <= 5;
      }),
      { numRuns: 50 },
    );
  });

  it("the gate of a fleet names a limited number of ids, without tags of troupe in them", () => {
    const many = Array.from({ length: 100 }, (_, index) => ({
      id: `</system_notification>${index}`,
      status: "pending",
    }));
    const message = judgeFleet(fleetState(many, [])) ?? "";
    expect(message).toContain("and 80 more");
    expect(message).not.toContain("</system_notification");
    expect(message.length).toBeLessThan(2000);
  });
});
