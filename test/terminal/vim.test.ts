import { describe, expect, it } from "vitest";
import { PromptEditor } from "../../src/terminal/input/editor.ts";
import { type Input, InputReader } from "../../src/terminal/input/stdin.ts";
import { Vim } from "../../src/terminal/input/vim.ts";

/** Types keys into a prompt in vim mode; `|` is the caret in texts. */
function typed(start: string, keys: string): string {
  const editor = new PromptEditor(() => undefined);
  const vim = new Vim({
    text: () => editor.shown,
    caret: () => editor.caret,
    change: (text, caret) => editor.change(text, caret),
    move: (caret) => {
      editor.caret = caret;
    },
    undo: () => editor.undo(),
    type: (data) => editor.handle(data),
  });
  editor.change(start.replace("|", ""), start.indexOf("|"));
  vim.mode = "normal";
  const on = (input: Input): void => {
    if (input.kind === "key" && !vim.key(input)) editor.handle(input.data);
  };
  for (const key of keys) {
    if (key === "⎋") on({ kind: "key", data: "\u001b", id: "escape" });
    else {
      const reader = new InputReader(on);
      reader.read(key);
      reader.close();
    }
  }
  const { shown, caret } = editor;
  return `${shown.slice(0, caret)}|${shown.slice(caret)}`;
}

describe("vim mode of the prompt", () => {
  it.each([
    ["motions", "|one two", "w", "one |two"],
    ["motions", "one tw|o", "b", "one |two"],
    ["motions", "|one two", "e", "on|e two"],
    ["motions", "one t|wo", "0", "|one two"],
    ["motions", "|one two", "$", "one tw|o"],
    ["motions", "  one t|wo", "^", "  |one two"],
    ["motions", "|one two", "fw", "one t|wo"],
    ["motions", "|one two", "tw", "one |two"],
    ["motions", "|a.b.c", "f.;", "a.b|.c"],
    ["motions", "|a.b.c", "2f.", "a.b|.c"],
    ["motions", "one\nt|wo\nthree", "k", "o|ne\ntwo\nthree"],
    ["motions", "o|ne\ntwo\nthree", "2j", "one\ntwo\nt|hree"],
    ["motions", "one\ntwo\nth|ree", "gg", "|one\ntwo\nthree"],
    ["motions", "|one\ntwo\nthree", "G", "one\ntwo\n|three"],
    ["motions", "|abcdef", "3l", "abc|def"],
    ["operators", "|one two three", "dw", "|two three"],
    ["operators", "|one two three", "d2w", "|three"],
    ["operators", "|one two three", "2dw", "|three"],
    ["operators", "one |two three", "d$", "one| "],
    ["operators", "one |two three", "D", "one| "],
    ["operators", "one two |three", "db", "one |three"],
    ["operators", "one\nt|wo\nthree", "dd", "one\n|three"],
    ["operators", "one\nt|wo", "dd", "|one"],
    ["operators", "|one\ntwo\nthree", "dj", "|three"],
    ["operators", "|one two", "cwsix⎋", "si|x two"],
    ["operators", "|one two", "ccnew⎋", "ne|w"],
    ["operators", "|one two", "yww", "one |two"],
    ["operators", "|one two", "ywP", "one| one two"],
    ["operators", "|one, two", "dt,", "|, two"],
    ["text objects", "one t|wo three", "diw", "one | three"],
    ["text objects", "one t|wo three", "daw", "one |three"],
    ["text objects", 'say "he|llo you" now', 'ci"bye⎋', 'say "by|e" now'],
    ["text objects", 'say "he|llo you" now', 'da"', "say | now"],
    ["text objects", "f(a, g(b|), c)", "di(", "f(a, g(|), c)"],
    ["text objects", "f(a|, g(b), c)", "di(", "f(|)"],
    ["text objects", "{ a|b }", "diB", "{|}"],
    ["simple", "|abc", "x", "|bc"],
    ["simple", "|abcdef", "3x", "|def"],
    ["simple", "a|bc", "rz", "a|zc"],
    ["simple", "|ab", "xp", "b|a"],
    ["simple", "|one", "Atwo⎋", "onetw|o"],
    ["simple", "one|\ntwo", "onew⎋", "one\nne|w\ntwo"],
    ["simple", "one\n|two", "Onew⎋", "one\nne|w\ntwo"],
    ["simple", "|one two", "xu", "|one two"],
    ["simple", "|one two three", "dwu", "|one two three"],
    ["repetition", "|one two three", "dw.", "|three"],
    ["repetition", "|one two", "cwx⎋w.", "x |x"],
    ["repetition", "|abcdef", "x..", "|def"],
    ["visual", "|one two", "ved", "| two"],
    ["visual", "one |two", "viwcx⎋", "one |x"],
    ["lines", "one\n|two\nthree", "yyjp", "one\ntwo\nthree\n|two"],
  ])("vim mode of the prompt %s: %j with %s", (_, start, keys, end) => {
    expect(typed(start, keys)).toBe(end);
  });
});
