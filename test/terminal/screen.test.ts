import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { InputReader } from "../../src/terminal/input/stdin.ts";
import { frame, type LiveRegion, type Painted } from "../../src/terminal/screen/frame.ts";
import { Screen } from "../../src/terminal/screen/screen.ts";
import { widthOf } from "../../src/terminal/screen/width.ts";
import { type VirtualTerminal, virtualTerminal } from "./virtual-terminal.ts";

/** Draws frames on a virtual terminal the way `Screen` does, and keeps the bytes. */
function stage(terminal: VirtualTerminal, wrapsCaretLine: boolean) {
  let painted: Painted | undefined;
  const bytes: string[] = [];
  return {
    bytes,
    async draw(commit: readonly string[], liveRegion: LiveRegion): Promise<string> {
      const next = frame({ painted, commit, liveRegion, columns: terminal.size().columns, wrapsCaretLine });
      painted = next.painted;
      bytes.push(next.bytes);
      await terminal.write(next.bytes);
      return next.bytes;
    },
  };
}

const marker = (index: number): string => `shell line ${String(index).padStart(3, "0")}`;
/** The status line is recognised by its mark, the prompt by its arrow. */
const liveOf = (draft: string, extra: readonly string[] = []): LiveRegion => {
  const rows = [...extra, "== status: idle · understudy", `› ${draft}`];
  return { rows, caret: { row: rows.length - 1, column: 2 + widthOf(draft) } };
};

describe("the renderer of the main screen", () => {
  it("the renderer writes nothing when nothing changed", async () => {
    const terminal = virtualTerminal({ columns: 80, rows: 24 });
    const { draw } = stage(terminal, true);
    await draw(["one"], liveOf("x"));
    expect(await draw([], liveOf("x"))).toBe("");
  });

  it("the renderer writes only the rows that changed", async () => {
    const terminal = virtualTerminal({ columns: 80, rows: 24 });
    const { draw } = stage(terminal, true);
    await draw([], liveOf("x", ["agent one", "agent two"]));
    const bytes = await draw([], liveOf("xy", ["agent one", "agent two"]));
    expect(bytes).not.toContain("agent");
    expect(bytes).not.toContain("status");
    expect(terminal.lines()).toEqual(["agent one", "agent two", "== status: idle · understudy", "› xy"]);
  });

  it("the renderer removes rows that are gone", async () => {
    const terminal = virtualTerminal({ columns: 80, rows: 24 });
    const { draw } = stage(terminal, true);
    await draw(["done"], liveOf("", ["a", "b", "c"]));
    await draw([], liveOf(""));
    expect(terminal.lines()).toEqual(["done", "== status: idle · understudy", "›"]);
    expect(terminal.cursor()).toEqual({ row: 2, column: 2 });
  });

  it("the renderer puts the terminal's cursor on the caret, also behind wide characters", async () => {
    const terminal = virtualTerminal({ columns: 40, rows: 10 });
    const { draw } = stage(terminal, true);
    await draw(["日本語"], liveOf("日本"));
    expect(terminal.cursor()).toEqual({ row: 2, column: 6 });
  });

  it("the renderer's output never clears the screen or the scrollback or sets a scroll region", async () => {
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
    "the renderer keeps every line and exactly one live region through 100 random resizes: %s",
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

/** Rows as wide as the screen, such as the status line, so that a narrower terminal wraps them. */
const wideLive = (columns: number, below = 0): LiveRegion => {
  const wide = (mark: string): string => mark.padEnd(columns - 1, mark);
  const rows = ["agent one", wide("-"), wide("="), "== status: idle · understudy", "› a draft"];
  const more = Array.from({ length: below }, () => wide("."));
  return { rows: [...rows, ...more], caret: { row: 4, column: 9 } };
};

/** A screen whose writes travel: the terminal takes them when they are delivered, and may have another size by then. */
function travelling({ columns, below = 0 }: { columns: number; below?: number }) {
  const terminal = virtualTerminal({ columns, rows: 24 });
  const size = { columns, rows: 24 };
  const writes: string[] = [];
  const screen = new Screen({
    write: (bytes) => writes.push(bytes) > 0,
    onDrain: () => undefined,
    size: () => size,
    liveRegion: ({ columns: width }) => wideLive(width, below),
    wrapsCaretLine: true,
  });
  const reader = new InputReader((input) => {
    if (input.kind === "cursor") screen.reported(input.column);
  });
  terminal.onAnswer((bytes) => reader.read(bytes));
  const deliver = async (bytes = writes.shift()): Promise<void> => {
    const delivery = terminal.write(bytes ?? "");
    await vi.advanceTimersByTimeAsync(1);
    await delivery;
  };
  return {
    terminal,
    screen,
    writes,
    deliver,
    /** The program learns of a size. */
    learn(to: number) {
      size.columns = to;
      screen.resized();
    },
    /** Fires the timers, and delivers what is written until nothing more is. */
    async settle(): Promise<void> {
      for (;;) {
        await vi.advanceTimersByTimeAsync(200);
        if (writes.length === 0) return;
        while (writes.length > 0) await deliver();
      }
    },
  };
}

describe("a resize while a frame travels", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const long = Array.from({ length: 12 }, (_, index) => `line ${index} ${"word ".repeat((index * 17) % 40)}end`);
  // A terminal that is resized within a line which it has begun to wrap may mix this line up: xterm.js does, for any program.
  const committed = [...long, "the last line but one", "the last line"];

  /** The lines after the frame for `drawnFor` columns has met a terminal that becomes `to` wide after `split` bytes. */
  async function linesAfter({ drawnFor, to, split }: { drawnFor: number; to: number; split: number }) {
    const { terminal, screen, writes, learn, deliver, settle } = travelling({ columns: 120 });
    screen.commit(long);
    await settle();
    terminal.resize(drawnFor, 24);
    learn(drawnFor);
    screen.commit(committed.slice(long.length));
    await vi.advanceTimersByTimeAsync(200);
    const bytes = writes.splice(0).join("");
    await deliver(bytes.slice(0, split));
    terminal.resize(to, 24);
    await deliver(bytes.slice(split));
    learn(to);
    await settle();
    return { shown: terminal.lines(), length: bytes.length };
  }

  const missing = (lines: readonly string[], shown: readonly string[]): string[] =>
    lines.filter((line) => !shown.some((one) => one.includes(line)));

  it.each([
    ["wider", { drawnFor: 60, to: 120 }],
    ["narrower", { drawnFor: 60, to: 40 }],
    ["narrower, from a width that was kept", { drawnFor: 120, to: 60 }],
    ["wider, from a width that was kept", { drawnFor: 120, to: 180 }],
  ])("a resize during a frame loses no committed line, whichever byte it comes after: %s", async (_, sizes) => {
    const { length } = await linesAfter({ ...sizes, split: 0 });
    for (let split = 0; split <= length; split++) {
      const { shown } = await linesAfter({ ...sizes, split });
      expect(missing(committed, shown), `after ${split} of ${length} bytes`).toEqual([]);
    }
  });

  it.each([[60], [200]])(
    "a resize leaves one live region when the frame arrives in time: %i columns",
    async (drawnFor) => {
      const { shown } = await linesAfter({ drawnFor, to: drawnFor, split: 0 });
      expect(shown).toEqual([...committed, ...wideLive(drawnFor).rows]);
    },
  );

  it("a resize loses no committed line, in whichever order sizes and frames arrive", async () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant("resize" as const), columns: fc.integer({ min: 30, max: 200 }) }),
      fc.record({ kind: fc.constant("learn" as const) }),
      fc.record({ kind: fc.constant("commit" as const), words: fc.integer({ min: 0, max: 60 }) }),
      fc.record({ kind: fc.constant("deliver" as const) }),
      fc.record({ kind: fc.constant("wait" as const), milliseconds: fc.integer({ min: 1, max: 200 }) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 40, maxLength: 120 }), async (steps) => {
        const { terminal, screen, writes, learn, deliver, settle } = travelling({ columns: 100 });
        const lines = [...long];
        screen.commit(long);
        await settle();
        for (const one of steps) {
          if (one.kind === "resize") terminal.resize(one.columns, 24);
          else if (one.kind === "learn") learn(terminal.size().columns);
          else if (one.kind === "deliver") await (writes.length > 0 && deliver());
          else if (one.kind === "wait") await vi.advanceTimersByTimeAsync(one.milliseconds);
          else {
            lines.push(`line ${lines.length} ${"word ".repeat(one.words)}end`);
            screen.commit(lines.slice(-1));
          }
        }
        learn(terminal.size().columns);
        await settle();
        expect(missing(lines, terminal.lines())).toEqual([]);
      }),
      { numRuns: 40 },
    );
  });
});

describe("a terminal that does not reflow", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** A terminal that cuts its rows, as xterm does, and a screen that knows by its answer, or does not know. */
  async function cutting({ isKnown = true } = {}) {
    const terminal = virtualTerminal({ columns: 100, rows: 24, reflows: false });
    const size = { columns: 100, rows: 24 };
    let written: Promise<void> = Promise.resolve();
    const screen = new Screen({
      write(bytes) {
        written = written.then(() => terminal.write(bytes));
        return true;
      },
      onDrain: () => undefined,
      size: () => size,
      liveRegion: ({ columns }) => wideLive(columns),
      wrapsCaretLine: true,
    });
    const reader = new InputReader((input) => {
      if (input.kind === "cursor") screen.reported(input.column);
      if (input.kind === "terminal") screen.identified(input.name);
    });
    terminal.onAnswer((bytes) => reader.read(bytes));
    if (isKnown) reader.read("\u001bP>|XTerm(379)\u001b\\");
    const settle = async (milliseconds = 200): Promise<void> => {
      const delivery = written;
      await vi.advanceTimersByTimeAsync(milliseconds);
      await delivery;
      await vi.advanceTimersByTimeAsync(1);
      await written;
    };
    return {
      terminal,
      screen,
      settle,
      async resize(columns: number, rows = 24) {
        await settle(1);
        terminal.resize(columns, rows);
        Object.assign(size, { columns, rows });
        screen.resized();
      },
    };
  }

  const lines = Array.from(
    { length: 9 },
    (_, index) => `line ${index} ${"word ".repeat((index * 17) % 40)}end ${index}`,
  );
  const withoutBlanks = (line: string): string => line.replaceAll(" ", "");
  /** Rows that were written for another width have blanks between them. */
  const missing = (shown: readonly string[], wanted: readonly string[] = lines): string[] =>
    wanted.filter((line) => !shown.some((one) => withoutBlanks(one).includes(withoutBlanks(line))));

  it("gets the lines that it has cut once more, in place of what is left of them", async () => {
    const { terminal, screen, settle, resize } = await cutting();
    screen.commit(lines);
    await settle();
    await resize(40);
    await settle();
    const shown = terminal.lines();
    expect(missing(shown)).toEqual([]);
    expect(shown.filter((line) => line === "line 0 end 0")).toHaveLength(1);
    expect(shown.filter((line) => line.startsWith("line 8"))).toHaveLength(1);
    expect(shown.filter((line) => line.startsWith("== status"))).toHaveLength(1);
  });

  it("loses no committed line when its window is narrow for a moment only, or while an overlay is open", async () => {
    const { terminal, screen, settle, resize } = await cutting();
    screen.commit(lines);
    await settle();
    await resize(40);
    await resize(100);
    await settle();
    expect(missing(terminal.lines())).toEqual([]);
    screen.openOverlay();
    await settle();
    await resize(50);
    await settle();
    screen.closeOverlay();
    await settle();
    expect(missing(terminal.lines())).toEqual([]);
  });

  it("loses no row to a frame for a terminal that would have wrapped its rows", async () => {
    const { terminal, screen, settle, resize } = await cutting();
    const short = Array.from({ length: 30 }, (_, index) => `short line ${index}`);
    screen.commit(short);
    await settle();
    await resize(60);
    await settle();
    expect(terminal.lines()).toEqual([...short, ...wideLive(60).rows]);
  });

  it("loses no committed line through random resizes, and keeps one live region", async () => {
    const step = fc.record({
      columns: fc.integer({ min: 30, max: 200 }),
      rows: fc.integer({ min: 12, max: 60 }),
      commits: fc.array(fc.integer({ min: 0, max: 60 }), { maxLength: 3 }),
      wait: fc.constantFrom(1, 200),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60 }), async (steps) => {
        const { terminal, screen, settle, resize } = await cutting();
        const all: string[] = [];
        for (const { columns, rows, commits, wait } of steps) {
          const fresh = commits.map((words, index) => `line ${all.length + index} ${"word ".repeat(words)}end`);
          all.push(...fresh);
          screen.commit(fresh);
          await settle(wait);
          await resize(columns, rows);
        }
        await settle();
        const shown = terminal.lines();
        expect(missing(shown, all)).toEqual([]);
        expect(shown.filter((line) => line.startsWith("== status"))).toHaveLength(1);
      }),
      { numRuns: 12, interruptAfterTimeLimit: 20_000 },
    );
  });
});
