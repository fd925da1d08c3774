import { describe, expect, it } from "vitest";
import { columnsOf, Tree, treeLines } from "../../src/cli/tree.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { became, created, running, said, spent, used } from "./stage.ts";

const drawing = { now: 5_000, width: 100, rows: 12, colour: false };

function tree(...events: readonly (SessionEvent | readonly SessionEvent[])[]): Tree {
  const made = new Tree();
  for (const event of events.flat()) made.apply(event as SessionEvent, 2_000);
  return made;
}

describe("the tree of agents", () => {
  it("has a line for everyone at work, below whoever started them, with state, time, tool, tokens and cost", () => {
    const company = tree(
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
    expect(treeLines("thinking · turn 2 · 5 s", company, drawing)).toEqual([
      "… thinking · turn 2 · 5 s",
      "├ scout (explore) waiting for deep 3 s · glob * · 1,112 tokens · $0.0012",
      "│ └ deep (explore) running 3 s",
      "├ writer (general-purpose) idle",
      "└ late (explore) waiting for a free place 3 s",
    ]);
  });

  it("only counts those that ended, and tells failures from successes", () => {
    const ended = (id: string, to: "completed" | "failed" | "cancelled"): SessionEvent[] => [
      created(id),
      ...running(id),
      became(id, "running", to),
    ];
    const company = tree(
      ended("a", "completed"),
      ended("b", "completed"),
      ended("c", "failed"),
      ended("d", "cancelled"),
    );
    expect(treeLines("thinking", company, drawing)).toEqual(["… thinking", "  2 finished, 1 failed, 1 stopped"]);
  });

  it("says what someone waits for: an approval, a provider", () => {
    const company = tree(created("scout"), running("scout"));
    const state = (): string | undefined => treeLines("", company, drawing)[1];
    company.apply(said("troupe.retry", { attempt: 1, delayMs: 1, reason: "rate limited" } as never, "scout"), 3_000);
    expect(state()).toBe("└ scout (explore) waiting for the model: rate limited 3 s");
    company.apply(said("assistant.turn_start", { turnId: "1" }, "scout"), 3_000);
    expect(state()).toBe("└ scout (explore) running 3 s");
  });

  it("is never longer than the rows it has, and says how many are left out", () => {
    const many = Array.from({ length: 40 }, (_, index) => [created(`a${index}`), ...running(`a${index}`)]).flat();
    const lines = treeLines("thinking", tree(many), drawing);
    expect(lines).toHaveLength(12);
    expect(lines.at(-1)).toBe("  30 more at work");
    expect(treeLines("thinking", tree(many), { ...drawing, rows: 1 })).toEqual(["… thinking"]);
  });

  it("is never wider than the screen, also with wide characters, and keeps the numbers", () => {
    const company = tree(
      created("scout"),
      running("scout"),
      used("bash", { command: "find 漢字漢字漢字 -name '*.ts' | xargs grep -l something" }, "scout"),
      spent(1_100, 0.5, "scout"),
    );
    const [, line = ""] = treeLines("thinking", company, { ...drawing, width: 70 });
    expect(columnsOf(line)).toBeLessThanOrEqual(70);
    expect(line).toMatch(/bash find .*… · 1,112 tokens · \$0\.5000$/);
    for (const width of [20, 30, 45]) {
      for (const text of treeLines("thinking", company, { ...drawing, width })) {
        expect(columnsOf(text)).toBeLessThanOrEqual(width);
      }
    }
  });

  it("lets no foreign word drive the terminal, and has no colour unless asked", () => {
    const company = tree(
      created("scout\u001b[2J", { agentName: "e\nvil" }),
      became("scout\u001b[2J", "queued", "running"),
      used("bash", { command: "echo \u001b]0;title\u0007 \u001b[31m\r\n" }, "scout\u001b[2J"),
    );
    const plain = treeLines("thinking \u001b[H", company, drawing).join("\n");
    expect(plain).not.toMatch(/[\u0000-\u0009\u000b-\u001f]/);
    expect(plain.split("\n")).toHaveLength(2);
    const coloured = treeLines("thinking", company, { ...drawing, colour: true }).join("\n");
    expect(coloured).toContain("\u001b[1mscout\u001b[0m");
    expect(coloured.replace(/\u001b\[\d+m/g, "")).not.toContain("\u001b");
  });

  it("knows agents of an earlier process, and shows them only when they work again", () => {
    const company = new Tree();
    const past = [created("old"), ...running("old"), became("old", "running", "idle", { reason: "interrupted" })];
    for (const event of past) company.apply(event, 0, "past");
    expect({ lines: treeLines("x", company, drawing), isEmpty: company.isEmpty }).toEqual({
      lines: ["… x"],
      isEmpty: true,
    });
    company.apply(created("cut"), 0, "past");
    company.apply(became("cut", "queued", "running"), 0, "past");
    company.apply(became("cut", "running", "idle", { reason: "interrupted" }), 0);
    expect(treeLines("x", company, drawing)).toEqual(["… x"]);
    company.apply(became("old", "idle", "queued"), 4_000);
    company.apply(became("old", "queued", "running"), 4_000);
    expect(treeLines("x", company, drawing)[1]).toBe("└ old (explore) running 1 s");
  });
});
