import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { glob, globTool } from "../../src/tools/files/glob.ts";
import { contentOf, contextFor, failureOf, workspace } from "./workspace.ts";

function project() {
  const place = workspace();
  for (const path of ["src/index.ts", "src/lib/a.ts", "src/lib/b.css", ".github/ci.yml", "readme.md"])
    place.write(path);
  return place;
}

describe("glob", () => {
  test("glob finds paths relative to the working folder", async () => {
    const { root, write } = workspace();
    write("src/index.ts");
    write("readme.txt");
    expect(await contentOf(glob, { pattern: "**/*.ts" }, contextFor(root))).toBe("./src/index.ts");
  });

  test.each([
    ["**/*.ts", "./src/index.ts\n./src/lib/a.ts"],
    ["src/**/*.{ts,css}", "./src/index.ts\n./src/lib/a.ts\n./src/lib/b.css"],
    ["*.md", "./readme.md"],
    ["./*.md", "./readme.md"],
    ["src/index.ts", "./src/index.ts"],
    ["src/lib/", "./src/lib/a.ts\n./src/lib/b.css"],
    ["**", "./.github/ci.yml\n./readme.md\n./src/index.ts\n./src/lib/a.ts\n./src/lib/b.css"],
    ["**/*.py", "No files matched the pattern."],
    ["nowhere/**", "No files matched the pattern."],
    ["--pre=touch marker", "No files matched the pattern."],
    ["!**/*.ts", "No files matched the pattern."],
  ])("%s gives what it says, sorted", async (pattern, expected) => {
    const { root } = project();
    expect(await contentOf(glob, { pattern }, contextFor(root))).toBe(expected);
  });

  test("glob leaves installed packages out of a folder without .gitignore, unless the pattern names them", async () => {
    const { root, write } = workspace();
    for (const path of ["a.js", "node_modules/x/b.js", "sub/node_modules/y/c.js"]) write(path);
    const found = (pattern: string) => contentOf(glob, { pattern }, contextFor(root));
    expect(await found("**/*.js")).toBe("./a.js");
    expect(await found("node_modules/**")).toBe("./node_modules/x/b.js");
    expect(await found("**/node_modules/**/c.js")).toBe("./sub/node_modules/y/c.js");
  });

  test("glob takes absolute patterns and one or several places", async () => {
    const { root } = project();
    const context = contextFor(root);
    expect(await contentOf(glob, { pattern: `${root}/src/*.ts` }, context)).toBe("./src/index.ts");
    expect(await contentOf(glob, { pattern: "*.css", path: "src/lib" }, context)).toBe("./src/lib/b.css");
    expect(await contentOf(glob, { pattern: "*.ts", paths: ["src/lib", "src"] }, context)).toBe(
      "./src/lib/a.ts\n./src/index.ts",
    );
    expect(await contentOf(glob, { pattern: "**/a.ts", paths: ["src", "src/lib"] }, context)).toBe("./src/lib/a.ts");
  });

  test("glob shows absolute paths for files outside of the working folder", async () => {
    const { root, outside } = project();
    const context = contextFor(root, { roots: [root, outside] });
    expect(await contentOf(glob, { pattern: "*", path: outside }, context)).toBe(`${outside}/secret.txt`);
    expect(await contentOf(glob, { pattern: "../work-evil/*" }, context)).toBe(`${outside}/secret.txt`);
  });

  test("glob omits ignored files, .git and links, unless an ignored folder is named", async () => {
    const { root, outside, write } = project();
    write(".git/HEAD");
    write(".gitignore", "dist/\nsecret.ts\n");
    write("dist/out.ts");
    write("src/secret.ts");
    symlinkSync(outside, join(root, "link"));
    symlinkSync(join(outside, "secret.txt"), join(root, "link.ts"));
    expect(await contentOf(glob, { pattern: "**/*.ts" }, contextFor(root))).toBe("./src/index.ts\n./src/lib/a.ts");
    expect(await contentOf(glob, { pattern: "**/*" }, contextFor(root))).not.toMatch(/HEAD|dist|secret/);
    expect(await contentOf(glob, { pattern: "dist/**" }, contextFor(root))).toBe("./dist/out.ts");
  });

  test("glob denies paths outside the roots, by path, pattern or link", async () => {
    const { root, outside } = project();
    symlinkSync(outside, join(root, "link"));
    for (const input of [
      { pattern: "*", path: outside },
      { pattern: "../work-evil/*" },
      { pattern: `${outside}/*` },
      { pattern: "link/*" },
      { pattern: "*", path: "link" },
      { pattern: "../no-such-folder/*" },
    ]) {
      expect((await failureOf(glob, input, contextFor(root))).code).toBe("denied");
    }
  });

  test("glob reports a place that is missing or is not a folder", async () => {
    const { root } = project();
    expect((await failureOf(glob, { pattern: "*", path: "no" }, contextFor(root))).message).toBe(
      `Path ${root}/no does not exist. Please provide a valid path.`,
    );
    expect((await failureOf(glob, { pattern: "*", path: "readme.md" }, contextFor(root))).message).toBe(
      `${root}/readme.md is a file; glob searches folders.`,
    );
  });

  test("glob shows 1,000 files and counts the rest; a name with a line break stays one line", async () => {
    const { root } = workspace();
    mkdirSync(join(root, "many"));
    for (let index = 0; index < 1003; index++) writeFileSync(join(root, "many", `f${10_000 + index}`), "");
    writeFileSync(join(root, "two\nlines"), "");
    const lines = (await contentOf(glob, { pattern: "many/*" }, contextFor(root))).split("\n");
    expect([lines.length, lines[0], lines[1000]]).toEqual([1001, "./many/f10000", "[3 more files not shown]"]);
    expect(await contentOf(glob, { pattern: "two*" }, contextFor(root))).toBe('"./two\\nlines"');
  });

  test("glob ends when aborted", async () => {
    const { root } = project();
    const signal = AbortSignal.abort(new Error("stopped by the user"));
    expect((await failureOf(globTool(), { pattern: "**" }, contextFor(root, { signal }))).message).toBe(
      "stopped by the user",
    );
  });
});
