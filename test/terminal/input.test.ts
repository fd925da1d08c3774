import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { suggestions } from "../../src/terminal/input/completion.ts";
import { PromptEditor } from "../../src/terminal/input/editor.ts";
import { Keymap, keyTable } from "../../src/terminal/input/key-table.ts";
import { type Input, InputReader } from "../../src/terminal/input/stdin.ts";
import { clipRow, widestOf, wrapPlain } from "../../src/terminal/screen/width.ts";

const PASTE = ["\u001b[200~", "\u001b[201~"] as const;

function read(chunks: readonly (string | Uint8Array)[]): Input[] {
  const seen: Input[] = [];
  const reader = new InputReader((input) => seen.push(input));
  for (const chunk of chunks) reader.read(chunk);
  reader.close();
  return seen;
}

describe("input", () => {
  it("terminal input reads a paste the same however its bytes are split", async () => {
    await fc.assert(
      fc.property(
        fc.string({ unit: "grapheme", maxLength: 200 }).filter((text) => !text.includes("\u001b")),
        fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 40 }),
        (text, sizes) => {
          const bytes = Buffer.from(`x${PASTE[0]}${text}${PASTE[1]}y`);
          const chunks: Uint8Array[] = [];
          for (let at = 0, index = 0; at < bytes.length; index++) {
            const size = sizes[index % sizes.length] ?? 1;
            chunks.push(bytes.subarray(at, at + size));
            at += size;
          }
          const pastes = read(chunks).filter((input) => input.kind === "paste");
          expect(pastes).toEqual([{ kind: "paste", text: Buffer.from(text).toString("utf8") }]);
        },
      ),
    );
  });

  it("terminal input names keys, and reports focus, the keyboard protocol and the cursor apart from them", () => {
    expect(
      read(["\u0003", "\u001b[Z", "\r", "\n", "\u001b[I", "\u001b[?1u", "\u001b[9;80R", "\u001b[1;2R", "a"]),
    ).toEqual([
      { kind: "key", data: "\u0003", id: "ctrl+c" },
      { kind: "key", data: "\u001b[Z", id: "shift+tab" },
      { kind: "key", data: "\r", id: "enter" },
      { kind: "key", data: "\n", id: "ctrl+j" },
      { kind: "focus", isFocused: true },
      { kind: "kitty" },
      { kind: "cursor", column: 80 },
      { kind: "key", data: "\u001b[1;2R", id: undefined },
      { kind: "key", data: "a", id: "a" },
    ]);
  });

  it("the key table binds no key twice", () => {
    const keys = keyTable.flatMap((binding) => binding.keys);
    expect(new Set(keys).size).toBe(keys.length);
  });

  it("two keys in a row are one binding, and the first is forgotten after a while", () => {
    const keymap = new Keymap();
    expect(keymap.find("ctrl+x", 0)).toBe("wait");
    expect(keymap.find("ctrl+e", 100)).toBe("editor");
    expect(keymap.find("ctrl+x", 200)).toBe("wait");
    expect(keymap.find("ctrl+e", 9_000)).toBeUndefined();
  });

  it("the caret is at the position of the text, also in several lines and behind wide characters", () => {
    const editor = new PromptEditor(() => undefined);
    for (const key of ["日", "本"]) editor.handle(key);
    editor.newLine();
    for (const key of "abc") editor.handle(key);
    expect(editor.render(40, 5)).toEqual({ rows: ["日本", "abc"], caret: { row: 1, column: 3 } });
    editor.handle("\u001b[A");
    expect(editor.render(40, 5).caret).toEqual({ row: 0, column: 4 });
  });

  it("the prompt's editor undoes, kills and yanks", () => {
    const editor = new PromptEditor(() => undefined);
    for (const key of "one two") editor.handle(key);
    editor.handle("\u0017");
    expect(editor.text).toBe("one ");
    editor.handle("\u0019");
    expect(editor.text).toBe("one two");
    editor.handle("\u001f");
    expect(editor.text).toBe("one ");
  });

  it("a paste is sent unchanged, with a marker for content that cannot be edited", () => {
    const editor = new PromptEditor(() => undefined);
    editor.handle("a");
    editor.paste("tab\tand \u001b[2J");
    expect(editor.shown).toBe("a[paste #1 12 chars]");
    expect(editor.text).toBe("atab\tand \u001b[2J");
    expect(editor.take()).toBe("atab\tand \u001b[2J");
    expect(editor.isEmpty).toBe(true);
  });

  it("completion offers commands by name first and files by path, with a range behind them", () => {
    const sources = {
      commands: () => [
        { name: "model", description: "Choose the model" },
        { name: "compact", description: "Shorten the conversation of the model" },
      ],
      files: () => ["src/", "src/a.ts", "src/abc.ts", "readme.md"],
    };
    expect(suggestions({ text: "/mo", isFirstLine: true }, sources).map(({ text }) => text)).toEqual([
      "/model ",
      "/compact ",
    ]);
    expect(suggestions({ text: "/mo", isFirstLine: false }, sources)).toEqual([]);
    expect(suggestions({ text: "see @src/a.ts:3-9", isFirstLine: true }, sources)[0]).toMatchObject({
      text: "@src/a.ts:3-9 ",
      replaces: 13,
    });
  });

  it("the prompt never makes a row wider than allowed, whatever its content", async () => {
    await fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 120 }), fc.integer({ min: 2, max: 60 }), (text, columns) => {
        const line = text.replaceAll("\n", " ");
        expect(widestOf(clipRow(`\u001b[2m${line}\u001b[22m`, columns))).toBeLessThanOrEqual(columns);
        for (const row of wrapPlain(line, columns)) expect(widestOf(row)).toBeLessThanOrEqual(Math.max(columns, 12));
      }),
    );
  });
});
