import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { create } from "../../src/tools/files/create.ts";
import { askedDiff, fileWorkspace } from "./file-workspace.ts";
import { call, failureOf, makeFifo } from "./workspace.ts";

describe("create", () => {
  it("create makes a new file, says so with its size, and shows the diff to people", async () => {
    const { root, context, kept, mode } = fileWorkspace();
    const path = join(root, "new.txt");
    const diff = "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n";
    expect(await create.bind({ path, file_text: "one\ntwo\n" }).access(context)).toEqual([
      { kind: "write", path, intention: "Create file", diff },
    ]);
    expect(existsSync(path)).toBe(false);
    expect(await call(create, { path, file_text: "one\ntwo\n" }, context)).toEqual({
      content: `Created file ${path} with 8 characters`,
      detailedContent: diff,
    });
    expect(readFileSync(path, "utf8")).toBe("one\ntwo\n");
    expect(mode(path)).toBe((0o644 & ~process.umask()).toString(8));
    expect(kept.map(({ path: changed, before }) => [changed, before])).toEqual([[path, "missing"]]);
    expect(readdirSync(root)).toEqual(["new.txt"]);
  });

  it("create takes paths relative to the working folder and makes the folders they need", async () => {
    const { root, context, kept } = fileWorkspace();
    const { content } = await call(create, { path: "a/b/c.txt", file_text: "x" }, context);
    expect(content).toBe(`Created file ${join(root, "a/b/c.txt")} with 1 characters`);
    expect(kept[0]?.madeFolders).toEqual([join(root, "a"), join(root, "a/b")]);
  });

  it("create replaces a file only when the agent has read it, and keeps its mode", async () => {
    const { write, context, see, mode, kept } = fileWorkspace();
    const path = write("run.sh", "old");
    chmodSync(path, 0o755);
    expect(await failureOf(create, { path, file_text: "new" }, context)).toEqual({
      code: "failure",
      message: `${path} already exists and you have not read it, so it was not changed. View it first, or change parts of it with edit.`,
    });
    await see(path);
    await call(create, { path, file_text: "new" }, context);
    expect([readFileSync(path, "utf8"), mode(path)]).toEqual(["new", "755"]);
    expect(kept[0]?.before).toMatchObject({ content: Buffer.from("old"), mode: 0o755 });
    await call(create, { path, file_text: "newer" }, context);
    expect(readFileSync(path, "utf8")).toBe("newer");
  });

  it("create refuses to replace a file that changed since it was read, and names the sibling that changed it", async () => {
    const { write, context, see, another } = fileWorkspace();
    const path = write("a.txt", "1");
    await see(path);
    writeFileSync(path, "2");
    expect((await failureOf(create, { path, file_text: "3" }, context)).message).toBe(
      `${path} was changed since you last read it, so nothing was written. View it again, then repeat the change.`,
    );
    await see(path);
    const sibling = another("tester");
    sibling.files.noteRead(path, context.files.lastRead(path) ?? { size: 0, mtimeMs: 0, hash: "" });
    await call(create, { path, file_text: "sibling" }, sibling);
    expect((await failureOf(create, { path, file_text: "3" }, context)).message).toContain(
      'was changed by agent "tester"',
    );
    expect(readFileSync(path, "utf8")).toBe("sibling");
  });

  it("create writes through a link that stays inside, to its target", async () => {
    const { root, write, context, see } = fileWorkspace();
    const target = write("real.txt", "old");
    symlinkSync("real.txt", join(root, "link.txt"));
    await see(join(root, "link.txt"));
    const { content } = await call(create, { path: "link.txt", file_text: "new" }, context);
    expect(content).toBe(`Created file ${join(root, "link.txt")} with 3 characters`);
    expect(readFileSync(target, "utf8")).toBe("new");
  });

  it("create refuses links that lead outside: to a file, a folder, nothing, a chain, a dangling folder", async () => {
    const { root, outside, context } = fileWorkspace();
    symlinkSync(join(outside, "secret.txt"), join(root, "file"));
    symlinkSync(outside, join(root, "folder"));
    symlinkSync(join(root, "nothing"), join(root, "dangling"));
    symlinkSync(join(outside, "not-yet"), join(root, "dangling-out"));
    symlinkSync(join(outside, "not-yet"), join(root, "dangling-folder"));
    for (let link = 0; link < 45; link++) symlinkSync(`chain${link + 1}`, join(root, `chain${link}`));
    writeFileSync(join(root, "chain45"), "");
    const results: Record<string, unknown> = {};
    const paths = ["file", "folder/new.txt", "dangling-out", "dangling-folder/x/y.txt", "../work-evil/new.txt"];
    for (const path of paths) results[path] = (await failureOf(create, { path, file_text: "x" }, context)).code;
    expect(results).toEqual({
      file: "denied",
      "folder/new.txt": "denied",
      "dangling-out": "denied",
      "dangling-folder/x/y.txt": expect.stringMatching(/denied|failure/),
      "../work-evil/new.txt": "denied",
    });
    expect((await failureOf(create, { path: "dangling", file_text: "x" }, context)).message).toContain(
      "a symbolic link to something that does not exist",
    );
    expect((await failureOf(create, { path: "chain0", file_text: "x" }, context)).message).toContain("more than 40");
    expect(readdirSync(outside)).toEqual(["secret.txt"]);
    expect(readFileSync(join(outside, "secret.txt"), "utf8")).toBe("SECRET\n");
  });

  it("create refuses hard links, folders, pipes, read-only files and system folders", async () => {
    const { root, outside, write, context, see } = fileWorkspace();
    linkSync(join(outside, "secret.txt"), join(root, "twin.txt"));
    mkdirSync(join(root, "folder"));
    makeFifo(join(root, "pipe"));
    const fixed = write("fixed.txt", "x");
    chmodSync(fixed, 0o444);
    await see(fixed);
    const message = async (path: string) => (await failureOf(create, { path, file_text: "x" }, context)).message;
    expect(await message("twin.txt")).toContain("has 2 names (hard links)");
    expect(await message("folder")).toBe(`Path ${join(root, "folder")} is a folder, not a file.`);
    expect(await message("pipe")).toContain("is a named pipe");
    expect(await message("fixed.txt")).toContain("is read-only");
    expect(await message("/proc/self/environ")).toContain("system folder");
    expect(await message("")).toContain("path is empty");
    expect(await message("fixed.txt/below.txt")).toContain("does not exist");
  });

  it("create asks the policy about the real path, also when a link leads there", async () => {
    const space = fileWorkspace({
      reasonToRefuse: (path) => (path.includes("/.git/") ? "it is git's own." : undefined),
    });
    mkdirSync(join(space.root, ".git/hooks"), { recursive: true });
    symlinkSync(".git/hooks", join(space.root, "h"));
    for (const path of [".git/hooks/pre-commit", "h/pre-commit"]) {
      expect(await failureOf(create, { path, file_text: "x" }, space.context)).toMatchObject({ code: "denied" });
    }
    expect(readdirSync(join(space.root, ".git/hooks"))).toEqual([]);
  });

  it("create asks for permission for a protected path without opening it, and refuses it even after approval", async () => {
    const space = fileWorkspace({
      reasonToRefuse: (path) => (path.includes("/.git/") ? "it is git's own." : undefined),
    });
    mkdirSync(join(space.root, ".git"), { recursive: true });
    writeFileSync(join(space.root, ".git/config"), "[core]");
    const bound = create.bind({ path: ".git/config", file_text: "x" });
    expect(await bound.access(space.context)).toEqual([
      { kind: "write", path: join(space.root, ".git/config"), intention: "Create file", diff: "" },
    ]);
    await expect(bound.run(space.context)).rejects.toMatchObject({ code: "denied" });
    expect(readFileSync(join(space.root, ".git/config"), "utf8")).toBe("[core]");
  });

  it("create refuses a path whose target differs from the one that was approved", async () => {
    const { root, context } = fileWorkspace();
    mkdirSync(join(root, "a"));
    mkdirSync(join(root, "b"));
    symlinkSync("a", join(root, "now"));
    const bound = create.bind({ path: "now/x.txt", file_text: "x" });
    await bound.access(context);
    rmSync(join(root, "now"));
    symlinkSync("b", join(root, "now"));
    await expect(bound.run(context)).rejects.toThrow("no longer leads to the file");
    expect([readdirSync(join(root, "a")), readdirSync(join(root, "b"))]).toEqual([[], []]);
  });

  it("create changes nothing when the former content cannot be saved", async () => {
    const { write, context, see } = fileWorkspace();
    const path = write("a.txt", "old");
    await see(path);
    const files = { ...context.files, checkpoint: () => Promise.reject(new Error("the disk is full")) };
    expect((await failureOf(create, { path, file_text: "new" }, { ...context, files } as typeof context)).message).toBe(
      "Nothing was changed, because the previous content could not be saved: the disk is full",
    );
    expect(readFileSync(path, "utf8")).toBe("old");
  });

  it("create bounds the diff and the size", async () => {
    const { context } = fileWorkspace();
    const diff = await askedDiff(create, { path: "big.txt", file_text: "line of text\n".repeat(10_000) }, context);
    expect(diff.length).toBeLessThanOrEqual(20_000);
    expect(diff).toMatch(/\[the diff continues: \d+ more characters\]\n$/);
    const huge = { path: "huge.txt", file_text: "x".repeat(10 * 1024 * 1024 + 1) };
    expect((await failureOf(create, huge, { ...context, toolCallId: "call_2" })).message).toContain(
      "at most 10485760 can be written",
    );
    expect(
      (await failureOf(create, { path: "half", file_text: "a\ud83d" }, { ...context, toolCallId: "call_3" })).message,
    ).toContain("surrogate");
  });
});
