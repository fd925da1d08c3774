import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { processorTime } from "../../test/support/work.ts";
import { sanitise, sanitiseLine } from "./text.ts";

const ESC = "\u001b";
const HARMFUL =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\u{d800}-\u{dfff}\u{e0000}-\u{e0fff}]/u;

/** Pieces that mean something to a terminal, to be thrown together in any order. */
const pieces = [
  ...[ESC, `${ESC}[`, `${ESC}]`, `${ESC}P`, `${ESC}_`, `${ESC}^`, `${ESC}X`, `${ESC}\\`, "\u0007", "\u009b", "\u009d"],
  ...["\u0090", "\u0098", "\u009e", "\u009f", "\u009c", "31m", "2J", "52;c;cm0=", "8;;https://evil.example", "0;title"],
  ...["\r", "\r\n", "\n", "\t", "\b", "\u0000", "\u007f", "\u202e", "\u200b", "\u{e0041}", "\ud83d", "\ude00", "😀"],
  ...["\udb40", "\udc41", "\ufe0f", "❤\ufe0f", "\u2028", "\u00ad", "a", "m", "\\", "[", "]", " ", ";", "é", "漢"],
];

describe("sanitise", () => {
  it.each([
    ["colours and cursor moves", `a${ESC}[31mb${ESC}[2J${ESC}[1;1Hc`, "abc"],
    ["the title of the window", `a${ESC}]0;title\u0007b`, "ab"],
    ["the clipboard", `a${ESC}]52;c;cm0gLXJm${ESC}\\b`, "ab"],
    [
      "device control, application and privacy strings",
      `a${ESC}Pq#0${ESC}\\b${ESC}_x${ESC}\\c${ESC}^y${ESC}\\d`,
      "abcd",
    ],
    ["eight-bit introducers", "a\u009b31mb\u009d0;t\u009cc\u0090q\u009cd", "abcd"],
    ["bells, backspaces and nulls", "a\u0007\u0007b\bc\u0000d\u007fe", "abcde"],
    ["a carriage return that would overwrite", "safe\rrm -rf", "saferm -rf"],
    ["line ends of Windows", "a\r\nb", "a\nb"],
    ["character sets and resets", `a${ESC}(0b${ESC}cc${ESC}7d`, "abcd"],
  ])("I01: sanitise drops %s", (_, given, shown) => {
    expect(sanitise(given)).toBe(shown);
  });

  it("I01: sanitise does not let a string without an end hide what follows", () => {
    expect(sanitise(`a${ESC}]0;evil\nnext line`)).toBe("a0;evil\nnext line");
    expect(sanitise("a\u009dquoted\u0080 text")).toBe("aquoted text");
  });

  it("sanitise shows the target of a link", () => {
    expect(sanitise(`${ESC}]8;;https://evil.example/\u202ex\u0007click${ESC}]8;;\u0007`)).toBe(
      "<https://evil.example/<U+202E>x>click",
    );
  });

  it.each([
    ["reordering", "a\u202eb\u2066c", "a<U+202E>b<U+2066>c"],
    ["zero width", "a\u200bb\ufeffc\u2060d\u00ade", "a<U+200B>b<U+FEFF>c<U+2060>d<U+00AD>e"],
    ["tag characters", "a\u{e0041}\u{e0001}", "a<U+E0041><U+E0001>"],
    ["selectors that carry data", "a\u{e0100}\ufe01\ufe0f", "a<U+E0100><U+FE01><U+FE0F>"],
    ["annotations and line separators", "a\ufff9b\u2028c\u2029", "a<U+FFF9>b<U+2028>c<U+2029>"],
    ["halves of characters", "a\ud83db\ude00", "a<U+D83D>b<U+DE00>"],
  ])("sanitise makes %s visible", (_, given, shown) => {
    expect(sanitise(given)).toBe(shown);
  });

  it("sanitise does not change ordinary text of any script", () => {
    const text = "naïve\tcafé – “quotes”\n漢字 العربية עברית 😀 ❤️ ✔︎ → ⠋ │ ░\n";
    expect(sanitise(text)).toBe(text);
  });

  it("I01: sanitise is idempotent and leaves no control character in arbitrary text", () => {
    const anything = fc
      .array(fc.oneof(fc.constantFrom(...pieces), fc.string({ unit: "binary" })))
      .map((parts) => parts.join(""));
    fc.assert(
      fc.property(anything, (text) => {
        const shown = sanitise(text);
        expect(shown).not.toMatch(HARMFUL);
        expect(sanitise(shown)).toBe(shown);
      }),
      { numRuns: 600 },
    );
  });

  it("sanitise takes time proportional to the text's length, whatever its content", () => {
    for (const piece of [`${ESC}]`, `${ESC}[`, "\u009d", "\u0090x", `${ESC}[1;`, "\ud83d", "\u200b", `${ESC}P a`]) {
      const spent = processorTime();
      sanitise(piece.repeat(200_000 / piece.length));
      expect(spent()).toBeLessThan(1000);
    }
  });

  it("sanitiseLine keeps a name on its line", () => {
    expect(sanitiseLine("a\n\tb\u001b[2Jc")).toBe("a bc");
  });
});
