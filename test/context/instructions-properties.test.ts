import { symlink } from "node:fs/promises";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { place } from "./place.ts";

const RUNS = process.env.TROUPE_SLOW ? 2_000 : 60;

const scraps = fc.constantFrom(
  "</instruction_file>",
  '<instruction_file path="x">',
  "</custom_instructions",
  "<",
  "/",
  "\uff1c/",
  " ",
  "\n",
  "\u0001",
  "\u200b",
  "\u001b[0m",
  "instruction_file",
  "INSTRUCTION_FILE>",
  "instruction_discovered>",
  "&lt;",
  "```",
  "---\n",
  "x",
);
const hostile = fc.array(scraps, { maxLength: 40 }).map((parts) => parts.join(""));

/** Our tags, as generous a reader might take them. */
const tags = (text: string): string[] =>
  [...text.matchAll(/[<\uff1c]\s*(\/?)\s*(instruction_file|custom_instructions|instruction_discovered)/gi)].map(
    ([, slash = "", name = ""]) => `${slash}${name.toLowerCase()}`,
  );

describe("instructions from arbitrary files", () => {
  it("instructions with arbitrary content do not break out of their tags", async () => {
    await using at = await place();
    await fc.assert(
      fc.asyncProperty(hostile, hostile, async (one, other) => {
        await at.folder.files({
          "project/AGENTS.md": one,
          "project/CLAUDE.md": other,
          "project/web/AGENTS.md": `${one}${other}!`,
        });
        const { text, files, nested } = await at.read();
        const wrappers = files.flatMap(() => ["instruction_file", "/instruction_file"]);
        expect(tags(text)).toEqual(
          files.length === 0 ? [] : ["custom_instructions", ...wrappers, "/custom_instructions"],
        );
        for (const found of await nested.onFileAccess(at.folder.at("project/web/x"))) {
          expect(tags(found.text)).toEqual(["instruction_discovered", "/instruction_discovered"]);
        }
      }),
      { numRuns: RUNS },
    );
  });

  it("import nothing from outside the project", async () => {
    await using at = await place({
      "secret.md": "SECRET",
      "project-other/secret.md": "SECRET",
      "home/secret.md": "SECRET",
      "project/a/inside.md": "inside",
      "project/a/b/inside.md": "inside too",
    });
    await symlink("../..", at.folder.at("project/a/up"));
    await symlink("../secret.md", at.folder.at("project/a.md"));
    const names = [
      "..",
      ".",
      "a",
      "b",
      "up",
      "a.md",
      "secret.md",
      "inside.md",
      "home",
      "project",
      "project-other",
      "~",
      "",
    ];
    const path = fc.array(fc.constantFrom(...names), { minLength: 1, maxLength: 6 }).map((parts) => parts.join("/"));
    const mention = fc.oneof(
      path,
      path.map((inner) => `${at.folder.path}/${inner}`),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(mention, { minLength: 1, maxLength: 8 }), async (mentions) => {
        await at.folder.files({ "project/AGENTS.md": `Read ${mentions.map((each) => `@${each}`).join(" ")}` });
        const { text, files } = await at.read();
        expect(text).not.toContain("SECRET");
        expect(files.filter((file) => !file.path.startsWith(`${at.folder.at("project")}/`))).toEqual([]);
      }),
      { numRuns: RUNS },
    );
  });

  it("instructions stay within the size limit together", async () => {
    const content = fc.tuple(
      fc.constantFrom("x", "é", "\u200b", "</instruction_file_x>", "\u{1f600}\n"),
      fc.nat(40_000),
    );
    const sized = content.map(([piece, bytes]) => piece.repeat(Math.ceil(bytes / Buffer.byteLength(piece))));
    await using at = await place();
    await fc.assert(
      fc.asyncProperty(fc.tuple(sized, sized, sized, sized), async ([one, two, three, four]) => {
        await at.folder.files({
          "home/instructions.md": one,
          "project/AGENTS.md": two,
          "project/CLAUDE.md": three,
          "project/.claude/rules/x.md": `---\npaths: "${"src/".repeat(40)}**"\n---\n${four}`,
        });
        const { text, notices, files } = await at.read();
        expect(tags(text).filter((tag) => tag === "/instruction_file")).toHaveLength(files.length);
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(65_536);
        expect(notices.join("").length).toBeLessThanOrEqual(10_000);
      }),
      { numRuns: Math.ceil(RUNS / 3) },
    );
  });
});
