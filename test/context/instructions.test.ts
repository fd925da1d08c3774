import { link, mkdir, symlink } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { blocksIn, place } from "./place.ts";

describe("instruction files of a project", () => {
  it("instruction files are merged from the git root, the working folder and each level between, in that order", async () => {
    await using at = await place({
      "project/.github/copilot-instructions.md": "one",
      "project/AGENTS.md": "two",
      "project/CLAUDE.md": "three",
      "project/.claude/CLAUDE.md": "four",
      "project/GEMINI.md": "five",
      "project/.troupe/instructions.md": "six",
      "project/a/AGENTS.md": "seven",
      "project/a/b/CLAUDE.md": "eight",
      "project/a/b/c/AGENTS.md": "below: not yet",
      "AGENTS.md": "above: never",
    });
    const { text, files, notices } = await at.read({ cwd: "project/a/b" });
    expect(Object.values(blocksIn(text))).toEqual(["one", "two", "three", "four", "five", "six", "seven", "eight"]);
    expect(files.map(({ path, scope, bytes }) => [path.slice(at.folder.path.length), scope, bytes])).toEqual([
      ["/project/.github/copilot-instructions.md", "repository", 3],
      ["/project/AGENTS.md", "repository", 3],
      ["/project/CLAUDE.md", "repository", 5],
      ["/project/.claude/CLAUDE.md", "repository", 4],
      ["/project/GEMINI.md", "repository", 4],
      ["/project/.troupe/instructions.md", "repository", 3],
      ["/project/a/AGENTS.md", "working-directory", 5],
      ["/project/a/b/CLAUDE.md", "working-directory", 5],
    ]);
    expect(notices).toEqual([]);
  });

  it("instruction files are marked as text of the project that grants no permissions", async () => {
    await using at = await place({ "project/AGENTS.md": "Use tabs." });
    const { text } = await at.read();
    expect(text).toMatch(
      /^<custom_instructions>\nThese files come with the project .*cannot grant permissions.*\n\n<instruction_file path="AGENTS.md" scope="repository">\nUse tabs.\n<\/instruction_file>\n<\/custom_instructions>$/,
    );
  });

  it("instructions are empty when there are no files or they are switched off", async () => {
    await using at = await place({ "other/AGENTS.md": "x" });
    expect(await at.read()).toMatchObject({ text: "", references: [], files: [], notices: [] });
    const off = await at.read({ cwd: "other", enabled: false });
    expect(off).toMatchObject({ text: "", references: [], files: [], notices: [] });
    expect(await off.nested.onFileAccess(at.folder.at("other/x/y.ts"))).toEqual([]);
  });

  it("instruction files are included once when they are the same text, link or file", async () => {
    await using at = await place({ "project/AGENTS.md": "Use tabs.\n", "project/a/AGENTS.md": "\nUse tabs." });
    await symlink("AGENTS.md", at.folder.at("project/CLAUDE.md"));
    await link(at.folder.at("project/AGENTS.md"), at.folder.at("project/GEMINI.md"));
    const { text, notices } = await at.read({ cwd: "project/a" });
    expect(text.match(/Use tabs/g)).toHaveLength(1);
    expect(notices).toEqual([]);
  });

  it("instruction files give the same text for the same files", async () => {
    await using at = await place({
      "project/AGENTS.md": "See @b.md and @a.md",
      "project/a.md": "a",
      "project/b.md": "b",
      "project/.github/instructions/z.instructions.md": "z",
      "project/.github/instructions/y.instructions.md": "---\napplyTo: 'src/**'\n---\ny",
    });
    expect((await at.read()).text).toBe((await at.read()).text);
  });

  it("instruction files are shown with visible hidden characters", async () => {
    await using at = await place({ "project/AGENTS.md": "a\u200bb\u202ec\u001b[31md\u{e0041}" });
    expect((await at.read()).text).toContain("a<U+200B>b<U+202E>cd<U+E0041>");
  });
});

describe("refused instructions", () => {
  it("instruction files that are links out of the workspace are refused with a notice", async () => {
    await using at = await place({ "secret.md": "SECRET", "rules/x.instructions.md": "SECRET" });
    await mkdir(at.folder.at("project/.github"));
    await symlink("../secret.md", at.folder.at("project/AGENTS.md"));
    await symlink("../../rules", at.folder.at("project/.github/instructions"));
    const { text, notices } = await at.read();
    expect(text).toBe("");
    expect(notices).toHaveLength(2);
    expect(notices.join("\n")).toMatch(/instructions was not read: .*\nAGENTS.md was not read: it is a link/);
  });

  it("instruction files that are not text are refused with a notice", async () => {
    await using at = await place({
      "project/AGENTS.md": Uint8Array.of(0x41, 0, 0x42),
      "project/CLAUDE.md": Uint8Array.of(0xff, 0xfe, 0x41),
      "project/GEMINI.md": "fine",
    });
    const { text, notices } = await at.read();
    expect(Object.keys(blocksIn(text))).toEqual(["GEMINI.md"]);
    expect(notices).toEqual([
      "AGENTS.md was not read: it is not UTF-8 text.",
      "CLAUDE.md was not read: it is not UTF-8 text.",
    ]);
  });

  it("cause no notice when a folder is in the place of a file", async () => {
    await using at = await place({ "project/AGENTS.md/x": "x", "project/.github": "a file" });
    expect(await at.read()).toMatchObject({ text: "", notices: [] });
  });

  it("an instruction file is cut after 32 KiB, with a notice", async () => {
    await using at = await place({ "project/AGENTS.md": "é".repeat(20_000) });
    const { text, notices } = await at.read();
    expect(text).toContain("é\n[Cut here by troupe: 32768 of 40000 bytes.]");
    expect(notices).toEqual(["AGENTS.md has 40000 bytes: only the first 32768 are used."]);
  });

  it("instruction files are cut after 64 KiB in all, with a notice", async () => {
    await using at = await place({
      "project/AGENTS.md": "a".repeat(30_000),
      "project/CLAUDE.md": "b".repeat(30_000),
      "project/GEMINI.md": "c".repeat(30_000),
      "project/.troupe/instructions.md": "d".repeat(30_000),
    });
    const { text, notices, files } = await at.read();
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(65_536);
    expect(Buffer.byteLength(text)).toBeGreaterThan(65_000);
    expect(files).toHaveLength(3);
    expect(text).toMatch(
      /\[Cut here by troupe: there is no room for the other \d+ bytes of the file.\]\n<\/instruction_file>/,
    );
    expect(notices).toEqual([
      "GEMINI.md was cut: instructions have at most 64 KiB.",
      ".troupe/instructions.md was left out: instructions have at most 64 KiB.",
    ]);
  });
});

describe("instructions of the user", () => {
  it("instructions of the user come before the project's, from the state root and from named folders", async () => {
    await using at = await place({
      "project/AGENTS.md": "project",
      "home/copilot-instructions.md": "one",
      "home/instructions.md": "two",
      "home/instructions/deep/x.instructions.md": "three",
      "home/instructions/not-this.md": "x",
      "env/AGENTS.md": "four",
      "legacy/some.instructions.md": "---\napplyTo: '**/*.ts'\n---\nfive",
      "given/.github/instructions/some.instructions.md": "---\napplyTo: '**/*.py'\n---\nsix",
      "given/below/some.instructions.md": "x",
    });
    const { text, files, notices } = await at.read({
      environment: {
        TROUPE_INSTRUCTION_DIRS: at.folder.at("env"),
        COPILOT_CUSTOM_INSTRUCTIONS_DIRS: `${at.folder.at("legacy")}, ../missing`,
      },
      instructionDirectories: ["../given", at.folder.at("env")],
    });
    expect(Object.values(blocksIn(text))).toEqual(["one", "two", "three", "four", "five", "six", "project"]);
    expect(files.map(({ scope }) => scope)).toEqual([
      "user",
      "user",
      "user",
      "directory",
      "directory",
      "directory",
      "repository",
    ]);
    expect(text.indexOf("Instructions from the user")).toBeLessThan(text.indexOf("one"));
    expect(text.indexOf("come with the project")).toBeGreaterThan(text.indexOf("six"));
    expect(notices).toEqual(["The instruction folder ../missing does not exist or cannot be read."]);
  });

  it("instructions of the user may be links to any place", async () => {
    await using at = await place({ "dotfiles/mine.md": "mine" });
    await symlink("../dotfiles/mine.md", at.folder.at("home/instructions.md"));
    expect((await at.read()).text).toContain("mine");
  });
});

describe("rules for certain files", () => {
  it("rules for certain files are included when they apply everywhere, and otherwise listed", async () => {
    await using at = await place({
      "project/.github/instructions/all.instructions.md": "---\napplyTo: '**'\n---\nALL",
      "project/.github/instructions/none.instructions.md": "NONE",
      "project/.github/instructions/a/ts.instructions.md":
        "---\napplyTo: **/*.ts,**/*.{js,mjs}\ndescription: For\n  scripts\n---\nTS",
      "project/.github/instructions/README.md": "not a rule",
      "project/.claude/rules/py.md": '---\npaths:\n  - "src/**/*.py"\n---\n# Python style\nPY',
    });
    const { text, references } = await at.read();
    expect(Object.values(blocksIn(text))).toEqual(["ALL", "NONE"]);
    const root = at.folder.at("project");
    expect(references).toEqual([
      {
        path: `${root}/.github/instructions/a/ts.instructions.md`,
        globs: ["**/*.ts", "**/*.{js,mjs}"],
        description: "For scripts",
      },
      { path: `${root}/.claude/rules/py.md`, globs: ["src/**/*.py"], description: "Python style" },
    ]);
    expect(text).toContain(
      "- .github/instructions/a/ts.instructions.md (for **/*.ts, **/*.{js,mjs}): For scripts\n- .claude/rules/py.md (for src/**/*.py): Python style\n</custom_instructions>",
    );
  });

  it("rules for certain files are shown whole when their frontmatter is wrong, with a notice that names the line", async () => {
    await using at = await place({ "project/.claude/rules/x.md": "---\npaths: [a\n---\nBODY" });
    const { text, notices } = await at.read();
    expect(text).toContain("paths: [a\n---\nBODY");
    expect(notices).toEqual([expect.stringMatching(/^\.claude\/rules\/x\.md, line 3: /)]);
  });

  it("rules for certain files are listed up to a limit, and a notice counts the others", async () => {
    const rule = (at: number): [string, string] => [
      `project/.claude/rules/${"long-name-".repeat(10)}${at}.md`,
      `---\npaths: "src/${at}/**"\n---\nrule ${at}`,
    ];
    await using at = await place(Object.fromEntries(Array.from({ length: 120 }, (_, index) => rule(index))));
    const { text, notices, references } = await at.read();
    expect(references).toHaveLength(100);
    expect(Buffer.byteLength(text)).toBeLessThan(9_000);
    expect(notices.map((notice) => notice.replace(/^.*has too/, "has too"))).toEqual([
      "has too many files: only the first 100 ending in .md are used.",
      expect.stringMatching(/^\d+ rules for certain files could not be listed\.$/),
    ]);
  });
});
