import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findAgent, normaliseName, suggestAgent } from "../../src/agents/names.ts";

const agents = [
  { id: "code-review", name: "code-review" },
  { id: "notes", name: "Release Notes" },
  { id: "db_expert", name: "Database Expert" },
  { id: "lint", name: "lint", pluginName: "Tidy Tools" },
  { id: "re-view", name: "re-view" },
  { id: "rev-iew", name: "rev-iew" },
];

describe("names of agents", () => {
  it.each([
    ["code-review", "code-review"],
    [" Code Review ", "code-review"],
    ["CODE_REVIEW", "code-review"],
    ["codereview", "code-review"],
    ["release notes", "notes"],
    ["release-notes", "notes"],
    ["notes", "notes"],
    ["DB expert", "db_expert"],
    ["tidy-tools:lint", "lint"],
    ["review", undefined],
    ["", undefined],
    ["constructor", undefined],
  ])("%j finds %j", (wanted, id) => {
    expect(findAgent(wanted, agents)?.id).toBe(id);
  });

  it("a close name of an agent is suggested for an unknown one", () => {
    expect(suggestAgent("code-reveiw", agents)).toBe("code-review");
    expect(suggestAgent("relase notes", agents)).toBe("Release Notes");
    expect(suggestAgent("something else", agents)).toBeUndefined();
  });

  it("agent names do not change when normalised twice, and are found in any spelling", () => {
    const letter = fc.constantFrom("a", "B", "z", "é", "0", "9");
    const word = fc.string({ unit: letter, minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(
        fc.array(word, { minLength: 1, maxLength: 4 }),
        fc.array(fc.constantFrom(" ", "_", "-", "  ")),
        (words, signs) => {
          const name = words.join("-");
          const written = words
            .map((one, index) => (index === 0 ? one : `${signs[index] ?? "_"}${one.toUpperCase()}`))
            .join("");
          expect(normaliseName(normaliseName(written))).toBe(normaliseName(written));
          expect(findAgent(` ${written}`, [{ id: name, name }])?.name).toBe(name);
        },
      ),
    );
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (name) => {
        expect(normaliseName(normaliseName(name))).toBe(normaliseName(name));
      }),
    );
  });
});
