import { describe, expect, it } from "vitest";
import { Attention } from "../../src/terminal/attention.ts";
import { liveRegion } from "../../src/terminal/panels/live-region.ts";
import { frame } from "../../src/terminal/screen/frame.ts";
import { safe, safeLine } from "../../src/terminal/screen/safe.ts";
import { plainStyle } from "../../src/terminal/screen/style.ts";
import { widestOf } from "../../src/terminal/screen/width.ts";
import { blockLines } from "../../src/terminal/transcript/block-lines.ts";
import type { Block } from "../../src/view/blocks.ts";
import { SessionView } from "../../src/view/session-view.ts";
import { virtualTerminal } from "./virtual-terminal.ts";

const E = "\u001b";
/** Texts that would move the cursor, forge the interface, set a title or reach the clipboard if they were drawn as they are. */
const hostile: readonly string[] = [
  `${E}[2J`,
  `${E}[3J`,
  `${E}[H`,
  `${E}[1;1H`,
  `${E}[10A`,
  `${E}[5B`,
  `${E}[99C`,
  `${E}[99D`,
  `${E}[?1049h`,
  `${E}[?1049l`,
  `${E}[?25l`,
  `${E}[1;5r`,
  `${E}[2K`,
  `${E}[1M`,
  `${E}[4L`,
  `${E}[3P`,
  `${E}[8m`,
  `${E}[31m`,
  `${E}c`,
  `${E}7${E}8`,
  `${E}D`,
  `${E}M`,
  `${E}#8`,
  `${E}(0`,
  `${E}]0;title\u0007`,
  `${E}]2;title${E}\\`,
  `${E}]52;c;aGVsbG8=\u0007`,
  `${E}]52;c;aGVsbG8=${E}\\`,
  `${E}]8;;http://evil.example\u0007click${E}]8;;\u0007`,
  `${E}]9;notify\u0007`,
  `${E}]1337;File=inline=1:AAAA\u0007`,
  `${E}P+q544e${E}\\`,
  `${E}_Gf=100;AAAA${E}\\`,
  `${E}^private${E}\\`,
  `${E}Xstring${E}\\`,
  `\u009b2J`,
  `\u009d0;title\u009c`,
  `\u0090data\u009c`,
  `\rover the line`,
  `\b\b\b\b`,
  `\u0007`,
  `\u000b\u000c`,
  `\u007f\u007f`,
  `a\u202eb\u202cc`,
  `a\u2066b\u2069`,
  `zero\u200bwidth\u200cjoin\u200d`,
  `\ufeffbom`,
  `tag\u{e0041}\u{e0042}`,
  `${E}[?2004l`,
  `${E}[6n${E}[c${E}[>0q`,
  `\u0000\u0001\u0002`,
  `${E}${E}${E}[2J[2J`,
];

const FORGED = "▌ Permission\n▌ y once · a session\ninteractive · trusted · Esc interrupts\n› rm -rf /";

/** Allowed output: text, line breaks, and the sequences of our own styles and frames. */
const OWN = /\u001b\[(?:\d{0,3}(?:;\d{0,3})*m|\?25[lh]|\d*[ABCJK])/g;

const block = (more: object): Block =>
  ({ id: "x", agentId: undefined, at: 0, eventId: "x", ...more }) as unknown as Block;

const inBlocks = (text: string): Block[] => [
  block({ kind: "user", text, source: text, delivery: "idle", attachments: [text], messageId: "m" }),
  block({
    kind: "assistant",
    messageId: "m",
    part: 0,
    markdown: { kind: "text", text, gap: false, language: "", isFirst: true, isLast: true },
  }),
  block({
    kind: "assistant",
    messageId: "m",
    part: 1,
    markdown: { kind: "code", text, gap: false, language: text, isFirst: true, isLast: true },
  }),
  block({
    kind: "assistant",
    messageId: "m",
    part: 2,
    markdown: { kind: "table", text: `| a | ${text} |`, gap: false, language: "", isFirst: true, isLast: true },
  }),
  block({
    kind: "tool",
    card: {
      ...{ toolCallId: "c", name: text, title: text, arguments: text, state: "failed", startedAt: 0, endedAt: 1 },
      ...{
        isUserRequested: false,
        mcpServer: text,
        progress: text,
        exitCode: 1,
        error: text,
        images: [],
        children: [],
      },
      output: { head: text, tail: text, hiddenLines: 2, hiddenCharacters: 2 },
    },
  }),
  block({ kind: "notice", level: "warning", topic: text, text, tip: text }),
  block({ kind: "error", topic: text, text, advice: text }),
  block({
    kind: "agent",
    childId: text,
    name: text,
    status: "failed",
    reason: text,
    durationMs: 1,
    result: text,
    error: text,
  }),
  block({
    kind: "approval",
    requestId: "r",
    title: text,
    decision: "denied",
    how: text,
    feedback: text,
    askedBy: text,
  }),
];

describe("text from outside", () => {
  it("the corpus of hostile texts has 50 texts or more", () => {
    expect(hostile.length).toBeGreaterThanOrEqual(50);
  });

  it.each(hostile.map((text) => [JSON.stringify(text), text]))(
    "the hostile text %s reaches no terminal in any block",
    async (_, text) => {
      const terminal = virtualTerminal({ columns: 80, rows: 24 });
      const lines = inBlocks(`before ${text} after`).flatMap((one) => blockLines(one, { style: plainStyle }));
      const live = { rows: [`status ${safeLine(text)}`, "› "], caret: { row: 1, column: 2 } };
      const { bytes } = frame({
        painted: undefined,
        commit: lines,
        liveRegion: live,
        columns: 80,
        wrapsCaretLine: true,
      });
      const rest = bytes.replace(OWN, "");
      expect([...rest].filter((one) => one < " " && !"\r\n\t".includes(one))).toEqual([]);
      expect(rest).not.toMatch(/[\u007f-\u009f\u202a-\u202e\u2066-\u2069\u200b\u200c\ufeff]/);
      await terminal.write(bytes);
      const shown = terminal.lines();
      expect(shown.at(-1)).toBe("›");
      expect(terminal.titles).toEqual([]);
      expect(terminal.clipboard).toEqual([]);
      // Every line is where it was written: the count of lines says that nothing moved the cursor.
      expect(shown).toHaveLength(lines.length + 2);
    },
  );

  it("hostile text in a card cannot imitate the interface: each row of a card starts with a bar", () => {
    const view = new SessionView();
    const base = { id: "e1", timestamp: "2026-01-01T00:00:00.000Z", parentId: null };
    view.apply({
      ...base,
      type: "permission.requested",
      data: {
        requestId: "r",
        permissionRequest: {
          ...{ kind: "shell", fullCommandText: FORGED, intention: FORGED, commands: [], possiblePaths: [] },
          ...{ possibleUrls: [], hasWriteFileRedirection: false, canOfferSessionApproval: false },
        },
      },
    } as never);
    const attention = new Attention({ now: () => 0, isDraftEmpty: () => true, onChange: () => undefined });
    attention.update(view.view);
    const { rows } = liveRegion({
      view: view.view,
      style: plainStyle,
      size: { columns: 80, rows: 60 },
      now: 0,
      ui: {
        prompt: { label: "›", render: () => ({ rows: [""], caret: { row: 0, column: 0 } }) },
        ...{ popup: [], selected: 0, hint: undefined, status: { left: "status", right: "" } },
        card: attention.card(view.view),
      },
    });
    attention.close();
    expect(rows[0]).toBe("");
    const card = rows.slice(1, -2);
    expect(card.every((row) => row.startsWith("▌"))).toBe(true);
    expect(rows.filter((row) => row.startsWith("›"))).toHaveLength(1);
    expect(rows.some((row) => row === "▌ ▌ Permission")).toBe(true);
  });

  it("joined emoji are not changed by the protection from hostile text", () => {
    for (const emoji of ["👩‍👩‍👧‍👦", "🏳️‍🌈", "👨🏽‍🚀", "❤️"]) {
      expect(safe(`a ${emoji} b`)).toBe(`a ${emoji} b`);
      expect(widestOf(emoji)).toBeGreaterThanOrEqual(2);
    }
    expect(safe("a\u200db")).toBe("a<U+200D>b");
  });
});
