import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { frame, type Live, type Painted } from "../../src/terminal/screen/frame.ts";
import { widthOf } from "../../src/terminal/screen/width.ts";
import { type VirtualTerminal, virtualTerminal } from "./virtual-terminal.ts";

/** Draws frames on a virtual terminal the way `Screen` does, and keeps the bytes. */
function stage(terminal: VirtualTerminal, wrapsCaretLine: boolean) {
  let painted: Painted | undefined;
  const bytes: string[] = [];
  return {
    bytes,
    async draw(commit: readonly string[], live: Live): Promise<string> {
      const next = frame({ painted, commit, live, columns: terminal.size().columns, wrapsCaretLine });
      painted = next.painted;
      bytes.push(next.bytes);
      await terminal.write(next.bytes);
      return next.bytes;
    },
  };
}

const marker = (index: number): string => `shell line ${String(index).padStart(3, "0")}`;
/** The status line is recognised by its mark, the prompt by its arrow. */
const liveOf = (draft: string, extra: readonly string[] = []): Live => {
  const rows = [...extra, "== status: idle · understudy", `› ${draft}`];
  return { rows, caret: { row: rows.length - 1, column: 2 + widthOf(draft) } };
};

describe("the renderer of the main screen", () => {
  it("writes nothing when nothing changed", async () => {
    const terminal = virtualTerminal({ columns: 80, rows: 24 });
    const { draw } = stage(terminal, true);
    await draw(["one"], liveOf("x"));
    expect(await draw([], liveOf("x"))).toBe("");
  });

  it("writes only the rows that changed", async () => {
    const terminal = virtualTerminal({ columns: 80, rows: 24 });
    const { draw } = stage(terminal, true);
    await draw([], liveOf("x", ["agent one", "agent two"]));
    const bytes = await draw([], liveOf("xy", ["agent one", "agent two"]));
    expect(bytes).not.toContain("agent");
    expect(bytes).not.toContain("status");
    expect(terminal.lines()).toEqual(["agent one", "agent two", "== status: idle · understudy", "› xy"]);
  });

  it("takes away rows that are gone", async () => {
    const terminal = virtualTerminal({ columns: 80, rows: 24 });
    const { draw } = stage(terminal, true);
    await draw(["done"], liveOf("", ["a", "b", "c"]));
    await draw([], liveOf(""));
    expect(terminal.lines()).toEqual(["done", "== status: idle · understudy", "›"]);
    expect(terminal.cursor()).toEqual({ row: 2, column: 2 });
  });

  it("puts the cursor of the terminal on the caret, also behind wide characters", async () => {
    const terminal = virtualTerminal({ columns: 40, rows: 10 });
    const { draw } = stage(terminal, true);
    await draw(["日本語"], liveOf("日本"));
    expect(terminal.cursor()).toEqual({ row: 2, column: 6 });
  });

  it("contains no sequence that clears the screen, the scrollback or sets a scroll region", async () => {
    const terminal = virtualTerminal({ columns: 60, rows: 12 });
    const { draw, bytes } = stage(terminal, true);
    for (let index = 0; index < 50; index++) await draw([marker(index)], liveOf("x".repeat(index)));
    const all = bytes.join("");
    expect(all).not.toMatch(/\u001b\[[23]J|\u001b\[\d*;?\d*r|\u001b\[\?1049/);
  });

  it.each([
    ["a terminal that wraps the caret's line anew", true],
    ["a terminal that cuts the caret's line", false],
  ])(
    "keeps every line and exactly one live region through 100 random resizes: %s",
    async (_, wrapsCaretLine) => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(
            fc.record({
              columns: fc.integer({ min: 40, max: 200 }),
              rows: fc.integer({ min: 12, max: 60 }),
              commits: fc.array(fc.string({ minLength: 0, maxLength: 300, unit: "grapheme-ascii" }), { maxLength: 3 }),
              draft: fc.string({ maxLength: 30, unit: "grapheme-ascii" }),
              agents: fc.integer({ min: 0, max: 3 }),
            }),
            { minLength: 100, maxLength: 100 },
          ),
          async (steps) => {
            const terminal = virtualTerminal({ columns: 80, rows: 24, wrapsCaretLine });
            const { draw } = stage(terminal, wrapsCaretLine);
            const shell = Array.from({ length: 400 }, (_, index) => marker(index));
            await terminal.write(shell.map((line) => `${line}\r\n`).join(""));
            const committed = [...shell];
            let live = liveOf("");
            await draw([], live);
            for (const step of steps) {
              terminal.resize(step.columns, step.rows);
              const lines = step.commits.map((text, index) => `c${committed.length + index} ${text}`.trimEnd());
              committed.push(...lines);
              live = liveOf(
                step.draft.trimEnd(),
                Array.from({ length: step.agents }, (_, index) => `agent ${index} runs`),
              );
              await draw(lines, live);
            }
            const shown = terminal.lines();
            expect(shown.filter((line) => line.startsWith("== status"))).toHaveLength(1);
            expect(shown).toEqual([...committed, ...live.rows.map((row) => row.trimEnd())]);
          },
        ),
        { numRuns: 8 },
      );
    },
    120_000,
  );
});
