import { describe, expect, it } from "vitest";
import { taskLines } from "../../src/cli/commands/tasks.ts";
import { listLines } from "../../src/cli/output/list-lines.ts";
import type { StoredTask } from "../../src/runtime/agents/stored-tasks.ts";

const rows = [
  {
    cells: ["0f0e0d0c-0000-4000-8000-000000000001", "2026-11-18 14:14", "1 turn"],
    text: "a title ".repeat(12),
    end: "/work/a",
  },
  {
    cells: ["0f0e0d0c-0000-4000-8000-000000000002", "2026-11-18 14:15", "12 turns"],
    text: "日本語のタイトル".repeat(6),
    end: "/work/b",
  },
];
const lines = (width: number | undefined) => listLines(rows, { width, textWidth: 60 }).trimEnd().split("\n");

describe("a list", () => {
  it("a list on the terminal has one line for each entry in files and on wide terminals", () => {
    expect(lines(undefined)).toHaveLength(2);
    expect(lines(200)).toEqual(lines(undefined));
  });

  it("a list on the terminal shortens its text where the terminal is narrower", () => {
    const narrow = lines(110);
    expect(narrow).toHaveLength(2);
    expect(Math.max(...narrow.map((line) => line.length))).toBeLessThanOrEqual(110);
    expect(narrow[0]).toMatch(/a ti.*… {2}\/work\/a$/);
  });

  it("a list on the terminal uses several lines for an entry that would wrap, and keeps ids whole", () => {
    const stacked = lines(60);
    expect(stacked.slice(0, 4)).toEqual([
      "0f0e0d0c-0000-4000-8000-000000000001  2026-11-18 14:14",
      "  1 turn",
      expect.stringMatching(/^ {2}a title a title .*…$/),
      "  /work/a",
    ]);
    expect(Math.max(...stacked.map((line) => line.length))).toBeLessThanOrEqual(60);
  });

  it("a list on the terminal is empty without entries", () => {
    expect(listLines([], { width: 60, textWidth: 60 })).toBe("");
  });
});

it("a list of agents does not wrap on a narrow terminal", () => {
  const task = {
    ...{ id: "scout", depth: 1, agentType: "general-purpose", status: "idle", reason: "interrupted", turns: 0 },
    ...{ toolCalls: 12, tokens: 4_861, costUsd: 0, createdAt: 0, description: "look at the tests" },
  } as unknown as StoredTask;
  const shown = taskLines([task], 480_000, 60).trimEnd().split("\n");
  expect(Math.max(...shown.map((line) => line.length))).toBeLessThanOrEqual(60);
  expect(shown.at(-1)).toBe("  look at the tests");
  expect(taskLines([task], 480_000, undefined)).toMatch(
    /^scout {2}general-purpose {2}idle .* 8 min {2}look at the tests\n$/,
  );
});
