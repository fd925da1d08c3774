import { symlink } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { importedPaths } from "../../src/context/instruction-imports.ts";
import { blocksIn, place } from "./place.ts";

describe("the search for imports", () => {
  it.each([
    ["See @docs/a.md and (@b.md), @./c.md.", ["/p/docs/a.md", "/p/b.md", "/p/c.md"]],
    ["@README\n@../x.md", ["/p/README", "/x.md"]],
    ["@/etc/passwd", ["/etc/passwd"]],
    ["me@example.com, `@a.md`, ``@b`c.md``", []],
    ["```\n@a.md\n```\n@b.md\n~~~~md\n@c.md\n~~~\n@d.md\n~~~~\n@e.md", ["/p/b.md", "/p/e.md"]],
    ["a `lone backtick and @a.md", ["/p/a.md"]],
    ["@a.md @a.md @./a.md", ["/p/a.md"]],
    ["@ and @@ and @", ["/p/@"]],
  ])("the search for imports finds the imported paths of %j", (text, expected) => {
    expect(importedPaths(text, "/p")).toEqual(expected);
  });
});

describe("imports", () => {
  it("imports are relative to the importing file, and cycles end", async () => {
    await using at = await place({
      "project/AGENTS.md": "root @docs/a.md @nobody",
      "project/docs/a.md": "a @b.md",
      "project/docs/b.md": "b @a.md @../AGENTS.md",
      "project/CLAUDE.md": "@docs/b.md",
    });
    const { text, notices } = await at.read();
    expect(blocksIn(text)).toEqual({
      "AGENTS.md": "root @docs/a.md @nobody",
      "docs/a.md": "a @b.md",
      "docs/b.md": "b @a.md @../AGENTS.md",
      "CLAUDE.md": "@docs/b.md",
    });
    expect(text).toContain('<instruction_file path="docs/b.md" scope="repository" imported_by="docs/a.md">');
    expect(notices).toEqual([]);
  });

  it("imports in instructions never read files outside of the workspace, hidden files or denied files", async () => {
    await using at = await place({
      "project/AGENTS.md":
        "@../secret.md @link.md @folder/secret.md @.env @sub/.ssh/key.md @denied.md @missing.md @/etc/hostname-of-nobody",
      "secret.md": "SECRET",
      "outside/secret.md": "SECRET",
      "project/.env": "SECRET",
      "project/sub/.ssh/key.md": "SECRET",
      "project/denied.md": "SECRET",
    });
    await symlink("../secret.md", at.folder.at("project/link.md"));
    await symlink("../outside", at.folder.at("project/folder"));
    const { text, notices } = await at.read({ mayRead: (path) => !path.endsWith("denied.md") });
    expect(text).not.toContain("SECRET");
    expect(notices).toEqual([
      `AGENTS.md imports ${at.folder.at("secret.md")}, which was not read: it is outside the folder of the importing file.`,
      "link.md was not read: it is a link to a place outside its folder.",
      "folder/secret.md was not read: it is a link to a place outside its folder.",
      "AGENTS.md imports .env, which was not read: hidden files are not imported.",
      "AGENTS.md imports sub/.ssh/key.md, which was not read: hidden files are not imported.",
      "AGENTS.md imports denied.md, which was not read: reading it is denied.",
    ]);
  });

  it("imports stay inside the user's folder when they are in the user's instructions", async () => {
    await using at = await place({
      "home/instructions.md": "@more.md @../project/x.md",
      "home/more.md": "MORE",
      "project/x.md": "SECRET",
    });
    const { text, notices } = await at.read();
    expect(text).toContain("MORE");
    expect(text).not.toContain("SECRET");
    expect(notices).toHaveLength(1);
  });

  it("imports end five levels deep, and after twenty files", async () => {
    await using deep = await place({
      "project/AGENTS.md": "@1.md",
      ...Object.fromEntries([1, 2, 3, 4, 5, 6].map((level) => [`project/${level}.md`, `@${level + 1}.md`])),
    });
    const chain = await deep.read();
    expect(Object.keys(blocksIn(chain.text))).toEqual(["AGENTS.md", "1.md", "2.md", "3.md", "4.md", "5.md"]);
    expect(chain.notices).toEqual([
      "5.md imports 6.md, which was not read: imports can be nested 5 levels deep at most.",
    ]);

    const names = Array.from({ length: 25 }, (_, index) => `f${index}.md`);
    await using wide = await place({
      "project/AGENTS.md": names.map((name) => `@${name}`).join(" "),
      ...Object.fromEntries(names.map((name) => [`project/${name}`, `text of ${name}`])),
    });
    const many = await wide.read();
    expect(many.files).toHaveLength(21);
    expect(many.notices).toHaveLength(5);
  });
});
