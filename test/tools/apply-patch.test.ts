import { chmodSync, existsSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { applyPatch } from "../../src/tools/files/apply-patch.ts";
import { fileWorkspace } from "./file-workspace.ts";
import { call, failureOf } from "./workspace.ts";

const envelope = (...lines: string[]): string => ["*** Begin Patch", ...lines, "*** End Patch", ""].join("\n");

describe("apply_patch", () => {
  it("updates, adds, deletes and moves in one step, and shows one diff for each file", async () => {
    const { root, write, context, see, mode } = fileWorkspace();
    write("a.ts", "one\ntwo\nthree\n");
    write("gone.txt", "bye\n");
    chmodSync(write("run.sh", "echo 1\n"), 0o755);
    await see("gone.txt");
    const patch = envelope(
      "*** Update File: a.ts",
      "@@",
      " one",
      "-two",
      "+2",
      " three",
      "*** Add File: new/b.ts",
      "+hello",
      "*** Delete File: gone.txt",
      "*** Update File: run.sh",
      "*** Move to: bin/run.sh",
      "@@",
      "-echo 1",
      "+echo 2",
    );
    const accesses = await applyPatch.bind({ patch }).access(context);
    expect(accesses.map((access) => access.kind === "write" && access.path)).toEqual(
      ["a.ts", "new/b.ts", "bin/run.sh", "gone.txt", "run.sh"].map((name) => join(root, name)),
    );
    const { content, detailedContent } = await call(applyPatch, { patch }, context);
    expect(content.replaceAll(root, "")).toBe(
      "Patch applied:\nupdated /a.ts\ncreated /new/b.ts\nmoved /run.sh to /bin/run.sh\ndeleted /gone.txt",
    );
    expect(detailedContent).toContain("--- a/run.sh\n+++ b/bin/run.sh\n@@ -1,1 +1,1 @@\n-echo 1\n+echo 2\n");
    expect(detailedContent).toContain("--- a/gone.txt\n+++ /dev/null\n");
    expect(readFileSync(join(root, "a.ts"), "utf8")).toBe("one\n2\nthree\n");
    expect(readFileSync(join(root, "new/b.ts"), "utf8")).toBe("hello\n");
    expect([existsSync(join(root, "gone.txt")), existsSync(join(root, "run.sh"))]).toEqual([false, false]);
    expect(mode(join(root, "bin/run.sh"))).toBe("755");
  });

  it("apply_patch accepts a unified diff as git writes it, and one with wrong line counts", async () => {
    const { root, write, context } = fileWorkspace();
    write("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    write("b.txt", "x\ny");
    write("old.txt", "q\n");
    write("d.txt", "gone\n");
    const patch = [
      "diff --git a/a.txt b/a.txt",
      "index 111..222 100644",
      "--- a/a.txt",
      "+++ b/a.txt",
      "@@ -1,3 +1,3 @@",
      " 1",
      "-2",
      "+two",
      " 3",
      "@@ -7,9 +7,9 @@ section",
      " 7",
      "-8",
      "+eight",
      " 9",
      "--- b.txt\t2026-01-01",
      "+++ b.txt",
      "@@ -1,2 +1,2 @@",
      " x",
      "-y",
      "\\ No newline at end of file",
      "+z",
      "--- /dev/null",
      "+++ b/c.txt",
      "@@ -0,0 +1 @@",
      "+new",
      "\\ No newline at end of file",
      "diff --git a/old.txt b/moved.txt",
      "similarity index 100%",
      "rename from old.txt",
      "rename to moved.txt",
      "diff --git a/d.txt b/d.txt",
      "deleted file mode 100644",
      "--- a/d.txt",
      "+++ /dev/null",
      "@@ -1 +0,0 @@",
      "-gone",
      "",
    ].join("\n");
    await call(applyPatch, { patch }, context);
    const read = (name: string) => (existsSync(join(root, name)) ? readFileSync(join(root, name), "utf8") : null);
    expect(["a.txt", "b.txt", "c.txt", "moved.txt", "old.txt", "d.txt"].map(read)).toEqual([
      "1\ntwo\n3\n4\n5\n6\n7\neight\n9\n",
      "x\nz\n",
      "new",
      "q\n",
      null,
      null,
    ]);
  });

  it.each([
    ["CRLF and no final line break", "a\r\nb\r\nc", ["@@", " a", "-b", "+x", "+y"], "a\r\nx\r\ny\r\nc"],
    ["a line after the last", "a\nb", ["@@", " b", "+c"], "a\nb\nc"],
    ["an anchor chooses", "f:\n  x\ng:\n  x\n", ["@@ g:", "-  x", "+  y"], "f:\n  x\ng:\n  y\n"],
    ["nothing but an addition goes to the end", "a\n", ["@@", "+b"], "a\nb\n"],
    ["end of file", "x\na\nx\n", ["@@", "-x", "+y", "*** End of File"], "x\na\ny\n"],
    ["byte order mark", "\ufeffa\nb\n", ["@@", "-a", "+c", " b"], "\ufeffc\nb\n"],
    ["two changes in order", "a\nb\nc\nb\n", ["@@ a", "-b", "+1", "@@", "-b", "+2"], "a\n1\nc\n2\n"],
    ["an empty line without its space", "a\n\nb\n", ["@@", " a", "", "-b", "+c"], "a\n\nc\n"],
  ])("apply_patch writes the expected file: %s", async (_, before, lines, after) => {
    const { write, context } = fileWorkspace();
    const path = write("a.txt", before);
    await call(applyPatch, { patch: envelope("*** Update File: a.txt", ...lines) }, context);
    expect(readFileSync(path, "utf8")).toBe(after);
  });

  it("apply_patch ignores white space with a note, and does not change unchanged lines", async () => {
    const { write, context } = fileWorkspace();
    const path = write("a.ts", "if (x) {\n\tone();  \n\ttwo();\n}\n");
    const patch = envelope("*** Update File: a.ts", "@@", " if (x) {", "   one();", "-  two();", "+\tthree();");
    const { content } = await call(applyPatch, { patch }, context);
    expect(content).toBe(
      `Patch applied:\nupdated ${path}\nNote: change 1 of ${path} (line 4 of the patch) fits line 1 only when white space is ignored; check the indentation.`,
    );
    expect(readFileSync(path, "utf8")).toBe("if (x) {\n\tone();  \n\tthree();\n}\n");
  });

  it.each([
    [
      "does not fit",
      ["*** Update File: a.txt", "@@", " one", "-three", "+3"],
      'change 1 of PATH (line 4 of the patch) does not fit: it agrees with the file from line 1 on, but at line 2 the file has "two" where the patch has "three". Nothing was changed.',
    ],
    [
      "fits twice",
      ["*** Update File: a.txt", "@@", "-x", "+y"],
      "change 1 of PATH (line 4 of the patch) fits 2 places, on lines 3 and 4. Add more lines around it, or a line such as `@@ function name` before it. Nothing was changed.",
    ],
    [
      "anchor missing",
      ["*** Update File: a.txt", "@@ nowhere", "-x", "+y"],
      'change 1 of PATH (line 4 of the patch): the line "nowhere" after @@ is not in the file. Nothing was changed.',
    ],
    ["adds what is there", ["*** Add File: a.txt", "+x"], "PATH already exists; the patch must update it, not add it."],
    [
      "deletes what nobody read",
      ["*** Delete File: a.txt"],
      "PATH already exists and you have not read it, so it was not changed. View it first, or change parts of it with edit.",
    ],
    [
      "stray line",
      ["*** Update File: a.txt", "@@", "oops"],
      "The patch cannot be read, line 4: a line of a change begins with a space, `+` or `-`. Nothing was changed.",
    ],
    [
      "changes nothing",
      ["*** Update File: a.txt", "@@", "-two", "+two"],
      "The patch changes nothing: the files already have this content.",
    ],
  ])("apply_patch explains why a patch does not apply: %s", async (_, lines, message) => {
    const { write, context } = fileWorkspace();
    const path = write("a.txt", "one\ntwo\nx\nx\n");
    const failure = await failureOf(applyPatch, { patch: envelope(...lines) }, context);
    expect(failure.message).toBe(message.replaceAll("PATH", path));
    expect(readFileSync(path, "utf8")).toBe("one\ntwo\nx\nx\n");
  });

  it("apply_patch refuses a patch that was cut off or names nothing", async () => {
    const { context } = fileWorkspace();
    const cut = "*** Begin Patch\n*** Add File: a.txt\n+x";
    expect((await failureOf(applyPatch, { patch: cut }, context)).message).toContain("`*** End Patch` is missing");
    expect((await failureOf(applyPatch, { patch: "hello" }, context)).message).toContain("names no file to change");
  });

  it("apply_patch changes no file when one of them does not fit, is stale, or leads outside", async () => {
    const { root, outside, write, context, see } = fileWorkspace();
    write("a.txt", "a\n");
    const b = write("b.txt", "b\n");
    await see("b.txt");
    writeFileSync(b, "b2\n");
    symlinkSync(outside, join(root, "out"));
    const first = ["*** Update File: a.txt", "@@", "-a", "+A"];
    for (const rest of [
      ["*** Update File: b.txt", "@@", "-b2", "+B"],
      ["*** Update File: b.txt", "@@", "-zzz", "+B"],
      ["*** Update File: missing.txt", "@@", "-b", "+B"],
      ["*** Add File: out/x.txt", "+x"],
    ]) {
      await failureOf(applyPatch, { patch: envelope(...first, ...rest) }, context);
      expect(readFileSync(join(root, "a.txt"), "utf8")).toBe("a\n");
    }
    expect(existsSync(join(outside, "x.txt"))).toBe(false);
  });

  it("apply_patch reverts every file when a write fails half-way", async () => {
    const { root, write, context } = fileWorkspace();
    write("a.txt", "a\n");
    const b = write("b.txt", "b\n");
    const patch = envelope(
      ...["*** Update File: a.txt", "@@", "-a", "+A"],
      ...["*** Add File: new/deep/c.txt", "+c"],
      ...["*** Update File: b.txt", "@@", "-b", "+B"],
    );
    // Somebody changes the last file after it was looked at, before its turn to be written.
    const files = { ...context.files, checkpoint: async () => writeFileSync(b, "other\n") };
    const failure = await failureOf(applyPatch, { patch }, { ...context, files } as typeof context);
    expect(failure.message).toBe(`Path ${b} was changed while it was being opened. Try again.`);
    expect(readFileSync(join(root, "a.txt"), "utf8")).toBe("a\n");
    expect(existsSync(join(root, "new"))).toBe(false);
    expect(readFileSync(b, "utf8")).toBe("other\n");
  });
});
