import { describe, expect, it } from "vitest";
import { bounded, unseenCharacters, visible, visibleLine } from "./visible.ts";

describe("visible text", () => {
  it("visible text keeps ordinary text unchanged", () => {
    const plain = "git commit -m 'Größe – naïve 日本 👍'\n\tindented\n\n    four\n";
    expect(visible(plain)).toBe(plain);
    expect(unseenCharacters(plain)).toBe(0);
  });

  it.each([
    ["an escape sequence", "ls \u001b[8m; rm -rf ~\u001b[0m", "ls <U+001B>[8m; rm -rf ~<U+001B>[0m"],
    ["a carriage return", "rm -rf ~\rls", "rm -rf ~<U+000D>ls"],
    ["a backspace", "rm\b\bls", "rm<U+0008><U+0008>ls"],
    ["reordering", "echo \u202egnirts\u202c", "echo <U+202E>gnirts<U+202C>"],
    ["isolates", "\u2066x\u2069", "<U+2066>x<U+2069>"],
    ["zero width", "l\u200bs\u2060\ufeff", "l<U+200B>s<U+2060><U+FEFF>"],
    ["tags", "a\u{e0041}", "a<U+E0041>"],
    ["unusual spaces", "a\u00a0b\u3000c\u2800d", "a<U+00A0>b<U+3000>c<U+2800>d"],
    ["fillers", "a\u3164b\u115f", "a<U+3164>b<U+115F>"],
    ["line separators", "a\u2028b\u0085c", "a<U+2028>b<U+0085>c"],
    ["private characters", "a\ue000", "a<U+E000>"],
    ["half a pair", "a\ud800", "a<U+D800>"],
    ["stacked marks", "a\u0300\u0300\u0300", "a<U+0300><U+0300><U+0300>"],
  ])("visible text shows the name of %s", (_, text, shown) => {
    expect(visible(text)).toBe(shown);
  });

  it("visible text counts long runs of blanks", () => {
    expect(visible(`ls${" ".repeat(2000)}; rm x`)).toBe("ls ··· 2,000 spaces ··· ; rm x");
    expect(visible(`ls${"\n".repeat(200)}rm x`)).toBe("ls\n··· 199 empty lines ···\nrm x");
    expect(visible(`ls${"\n  \t".repeat(200)}\nrm x`)).toBe("ls\n··· 200 empty lines ···\nrm x");
    expect(visible(`ls${"\t".repeat(50)}; rm x`)).toBe("ls ··· 50 tabs ··· ; rm x");
    expect(visible(`ls${"\u200b".repeat(2000)}; rm x`)).toBe("ls<U+200B>×2,000; rm x");
    expect(visible(`ls${" \t".repeat(500)}; rm x`).length).toBeLessThan(100);
  });

  it("a visible line has no line breaks, and bounded text says what is omitted", () => {
    expect(visibleLine("a\n\nb\tc")).toBe("a ⏎ b c");
    expect(bounded("x".repeat(100), 100)).toHaveLength(100);
    expect(bounded(`${"a".repeat(60)}${"b".repeat(60)}`, 20)).toBe(
      `${"a".repeat(10)} ··· 100 characters are not shown ··· ${"b".repeat(10)}`,
    );
  });
});
