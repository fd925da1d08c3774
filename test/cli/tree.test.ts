import { describe, expect, it } from "vitest";
import { columnsOf } from "../../src/cli/output/columns.ts";
import { treeLines as drawnLines, type TreeLayout } from "../../src/cli/output/tree-lines.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { labelsFor, languages } from "../../src/protocol/labels.ts";
import { builtinRoles } from "../../src/tools/coordination/roles.ts";
import { SessionView } from "../../src/view/session-view.ts";
import { became, created, intends, running, said, spent, step, used } from "./stage.ts";

const drawing = { now: 5_000, width: 100, rows: 12, colour: false };

const treeLines = (main: string, { view }: SessionView, how: TreeLayout): string[] => drawnLines(main, view, how);

function tree(...events: readonly (SessionEvent | readonly SessionEvent[])[]): SessionView {
  const made = new SessionView();
  for (const event of events.flat()) made.apply(event as SessionEvent, 2_000);
  return made;
}

describe("the tree of agents", () => {
  it("the tree of agents has a line for each running agent, with state, time, tool, tokens and cost", () => {
    const agents = tree(
      created("scout"),
      running("scout"),
      used("glob", { pattern: "*" }, "scout"),
      spent(1_100, 0.0012, "scout"),
      created("deep", { parentId: "scout", mode: "sync" }),
      running("deep"),
      created("writer", { agentName: "general-purpose" }),
      became("writer", "queued", "running"),
      became("writer", "running", "idle", { reason: "finished" }),
      created("late"),
    );
    expect(treeLines("thinking · turn 2 · 5 s", agents, drawing)).toEqual([
      "… thinking · turn 2 · 5 s",
      "├ scout (explore) waiting for deep 3 s · glob * · 1 tool · 1,112 tokens · $0.0012",
      "│ └ deep (explore) running 3 s",
      "├ writer (general-purpose) idle",
      "└ late (explore) waiting for a free slot 3 s",
    ]);
  });

  it("ORC-47 the tree of agents shows the latest intent of an agent behind its tool, if there is room", () => {
    const agents = tree(created("scout"), running("scout"), intends("First I read the parser.\nThen more.", "scout"));
    const line = (width: number): string | undefined => treeLines("", agents, { ...drawing, width })[1];
    expect(line(100)).toBe("└ scout (explore) running 3 s · First I read the parser.");
    for (const event of used("view", { path: "src/parser.ts" }, "scout")) agents.apply(event, 3_000);
    expect(line(100)).toBe("└ scout (explore) running 3 s · view src/parser.ts · First I read the parser. · 1 tool");
    expect(line(60)).toBe("└ scout (explore) running 3 s · view src/parser.ts · 1 tool");
    agents.apply(became("scout", "running", "idle", { reason: "finished" }), 4_000);
    expect(line(100)).toBe("└ scout (explore) idle · 1 tool");
  });

  it("the tree of agents counts agents that ended without listing them, and distinguishes failures from successes", () => {
    const ended = (id: string, to: "completed" | "failed" | "cancelled"): SessionEvent[] => [
      created(id),
      ...running(id),
      became(id, "running", to),
    ];
    const agents = tree(
      ended("a", "completed"),
      ended("b", "completed"),
      ended("c", "failed"),
      ended("d", "cancelled"),
    );
    expect(treeLines("thinking", agents, drawing)).toEqual(["… thinking", "  2 finished, 1 failed, 1 stopped"]);
  });

  it("the tree of agents shows what an agent waits for: an approval or a provider", () => {
    const agents = tree(created("scout"), running("scout"));
    const state = (): string | undefined => treeLines("", agents, drawing)[1];
    agents.apply(said("troupe.retry", { attempt: 1, delayMs: 1, reason: "rate limited" } as never, "scout"), 3_000);
    expect(state()).toBe("└ scout (explore) waiting for the model: rate limited 3 s");
    agents.apply(said("assistant.turn_start", { turnId: "1" }, "scout"), 3_000);
    expect(state()).toBe("└ scout (explore) running 3 s");
  });

  it("the tree of agents is never longer than the rows it has, and counts the lines that it leaves out", () => {
    const many = Array.from({ length: 40 }, (_, index) => [created(`a${index}`), ...running(`a${index}`)]).flat();
    const lines = treeLines("thinking", tree(many), drawing);
    expect(lines).toHaveLength(12);
    expect(lines.at(-1)).toBe("  30 more at work");
    expect(treeLines("thinking", tree(many), { ...drawing, rows: 1 })).toEqual(["… thinking"]);
  });

  it("the tree of agents is never wider than the screen, also with wide characters, and keeps the numbers", () => {
    const agents = tree(
      created("scout"),
      running("scout"),
      used("bash", { command: "find 漢字漢字漢字 -name '*.ts' | xargs grep -l something" }, "scout"),
      spent(1_100, 0.5, "scout"),
    );
    const [, line = ""] = treeLines("thinking", agents, { ...drawing, width: 70 });
    expect(columnsOf(line)).toBeLessThanOrEqual(70);
    expect(line).toMatch(/bash find .*… · 1,112 tokens · \$0\.5000$/);
    for (const width of [20, 30, 45]) {
      for (const text of treeLines("thinking", agents, { ...drawing, width })) {
        expect(columnsOf(text)).toBeLessThanOrEqual(width);
      }
    }
  });

  it("the tree of agents shows no control sequences from others, and has no colour unless requested", () => {
    const agents = tree(
      created("scout\u001b[2J", { agentName: "e\nvil" }),
      became("scout\u001b[2J", "queued", "running"),
      used("bash", { command: "echo \u001b]0;title\u0007 \u001b[31m\r\n" }, "scout\u001b[2J"),
    );
    const plain = treeLines("thinking \u001b[H", agents, drawing).join("\n");
    expect(plain).not.toMatch(/[\u0000-\u0009\u000b-\u001f]/);
    expect(plain.split("\n")).toHaveLength(2);
    const coloured = treeLines("thinking", agents, { ...drawing, colour: true }).join("\n");
    expect(coloured).toContain("\u001b[1mscout\u001b[0m");
    expect(coloured.replace(/\u001b\[\d+m/g, "")).not.toContain("\u001b");
  });

  it("the tree of agents shows agents of an earlier process only when they work again", () => {
    const agents = new SessionView();
    const past = [created("old"), ...running("old"), became("old", "running", "idle", { reason: "interrupted" })];
    for (const event of past) agents.apply(event, 0);
    agents.apply(created("cut"), 0);
    agents.apply(became("cut", "queued", "running"), 0);
    agents.markPast();
    agents.apply(became("cut", "running", "idle", { reason: "interrupted" }), 0);
    expect(treeLines("x", agents, drawing)).toEqual(["… x"]);
    agents.apply(became("old", "idle", "queued"), 4_000);
    agents.apply(became("old", "queued", "running"), 4_000);
    expect(treeLines("x", agents, drawing)[1]).toBe("└ old (explore) running 1 s");
  });
});

describe("coordinated workers", () => {
  const worker = (id: string, role: string, title: string): SessionEvent[] => [
    created(id, { agentName: role, description: title, mode: "sync" }),
    step(id, { stepId: "provisioned-tools", title: "Tools", status: "info", note: "view" }),
    ...running(id),
  ];
  const prompt = said("user.message", { content: "look" });

  it("BLX-29 workers are shown in one group for each message, with status and summary when they are done", () => {
    const agents = tree(prompt, worker("a", "scout", "Scout"), worker("b", "review", "Review"));
    const lines = (): string[] => treeLines("waiting", agents, drawing).slice(1);
    const apply = (...events: readonly SessionEvent[]): void => {
      for (const event of events) agents.apply(event, 3_000);
    };
    apply(...used("glob", { pattern: "*" }, "a"));
    expect(lines()).toEqual([
      "└ 2 workers: 2 at work",
      "  ├ a (Scout) running 3 s · glob * · 1 tool",
      "  └ b (Review) running 3 s",
    ]);
    apply(
      became("b", "running", "completed", { reason: "finished" }),
      step("b", { stepId: "result", title: "Review", status: "blocked", note: "limit of 8 turns reached" }),
    );
    // A second call in answer to the same message joins the group.
    apply(...worker("c", "scout", "Scout 2"));
    expect(lines()).toEqual([
      "└ 3 workers: 2 at work, 1 blocked",
      "  ├ a (Scout) running 3 s · glob * · 1 tool",
      "  ├ b (Review) blocked · limit of 8 turns reached",
      "  └ c (Scout 2) running 2 s",
    ]);
    for (const id of ["a", "c"]) {
      apply(
        became(id, "running", "completed", { reason: "finished" }),
        step(id, { stepId: "result", title: id, status: "completed", note: `found by ${id}` }),
      );
    }
    expect(lines()[0]).toBe("└ 3 workers: 2 completed, 1 blocked");
    apply(prompt, ...worker("d", "review", "Review"));
    expect(lines()).toEqual(["└ 1 worker: 1 at work", "  └ d (Review) running 2 s", "  3 finished"]);
  });

  it("BLX-39 workers have names of roles and states in the requested language", () => {
    const agents = tree(
      prompt,
      worker("a", "scout", "Scout"),
      worker("b", "scout", "Scout 2"),
      worker("c", "review", "UI"),
    );
    agents.apply(became("b", "running", "completed", { reason: "finished" }), 3_000);
    agents.apply(step("b", { stepId: "result", title: "Scout 2", status: "blocked", note: "no" }), 3_000);
    const labels = labelsFor({ TROUPE_LANGUAGE: "de_DE.UTF-8" });
    expect(treeLines("x", agents, { ...drawing, labels }).slice(1)).toEqual([
      "└ 3 Worker: 2 in Arbeit, 1 blockiert",
      "  ├ a (Erkundung) läuft 3 s",
      "  ├ b (Erkundung 2) blockiert · no",
      // A title that the coordinator gave stays as it is.
      "  └ c (UI) läuft 3 s",
    ]);
    for (const unknown of [undefined, "", "xx", "german"])
      expect(labelsFor({ TROUPE_LANGUAGE: unknown })).toBe(languages.en);
  });

  it.each(Object.entries(languages))(
    "BLX-39 the language %s has a name for every role and state, and no other key",
    (_, labels) => {
      const roles = builtinRoles.map(({ id }) => `role.${id}`);
      const states = ["at_work", "queued", "running", "idle", "completed", "blocked", "failed", "cancelled"];
      const wanted = [...roles, ...states.map((state) => `status.${state}`), "worker", "workers"];
      expect(Object.keys(labels).toSorted()).toEqual(wanted.toSorted());
      for (const label of Object.values(labels)) expect(label.trim()).not.toBe("");
    },
  );

  it("BLX-29 steps of a worker are merged by their ids, and make room for running workers", () => {
    const agents = tree(prompt, worker("a", "scout", "Scout"));
    for (const note of ["1 call", "2 calls"]) {
      agents.apply(step("a", { stepId: "tool-view", title: "view", status: "running", note }), 3_000);
    }
    expect(
      [...(agents.view.agents.get("a")?.card?.steps.values() ?? [])].map(({ stepId, note }) => [stepId, note]),
    ).toEqual([
      ["provisioned-tools", "view"],
      ["tool-view", "2 calls"],
    ]);
    for (const event of worker("b", "review", "Review")) agents.apply(event, 3_000);
    agents.apply(became("a", "running", "completed", { reason: "finished" }), 3_000);
    agents.apply(step("a", { stepId: "result", title: "Scout", status: "completed", note: "one file" }), 3_000);
    expect(treeLines("", agents, { ...drawing, rows: 4 }).slice(1)).toEqual([
      "└ 2 workers: 1 completed, 1 at work",
      "  └ b (Review) running 2 s",
      "  1 finished",
    ]);
  });
});
