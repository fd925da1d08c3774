import { describe, expect, it } from "vitest";
import { listLines } from "../../src/cli/output/list-lines.ts";

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
  it("has one line for each entry in files and on wide terminals", () => {
    expect(lines(undefined)).toHaveLength(2);
    expect(lines(200)).toEqual(lines(undefined));
  });

  it("shortens the text where the terminal is narrower", () => {
    const narrow = lines(110);
    expect(narrow).toHaveLength(2);
    expect(Math.max(...narrow.map((line) => line.length))).toBeLessThanOrEqual(110);
    expect(narrow[0]).toMatch(/a ti.*… {2}\/work\/a$/);
  });

  it("takes several lines for an entry that would wrap, and keeps ids whole", () => {
    const stacked = lines(60);
    expect(stacked.slice(0, 4)).toEqual([
      "0f0e0d0c-0000-4000-8000-000000000001  2026-11-18 14:14",
      "  1 turn",
      expect.stringMatching(/^ {2}a title a title .*…$/),
      "  /work/a",
    ]);
    expect(Math.max(...stacked.map((line) => line.length))).toBeLessThanOrEqual(60);
  });

  it("is empty without entries", () => {
    expect(listLines([], { width: 60, textWidth: 60 })).toBe("");
  });
});
