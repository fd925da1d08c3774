import { chmodSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { edit } from "../../src/tools/files/edit.ts";
import type { LockWait } from "../../src/tools/tool.ts";
import { fileWorkspace } from "./file-workspace.ts";
import { call, failureOf } from "./workspace.ts";

describe("edit", () => {
  it("edit replaces the only match, reports the replacement and shows the diff", async () => {
    const { root, write, context, mode } = fileWorkspace();
    const path = write("src/a.ts", "const a = 1;\nconst b = 2;\n");
    chmodSync(path, 0o640);
    expect(await call(edit, { path: "src/a.ts", old_str: "b = 2", new_str: "b = 3" }, context)).toEqual({
      content: `File ${path} updated with changes.`,
      detailedContent: "--- a/src/a.ts\n+++ b/src/a.ts\n@@ -1,2 +1,2 @@\n const a = 1;\n-const b = 2;\n+const b = 3;\n",
    });
    expect([readFileSync(path, "utf8"), mode(path)]).toEqual(["const a = 1;\nconst b = 3;\n", "640"]);
    expect(readdirSync(join(root, "src"))).toEqual(["a.ts"]);
  });

  it.each([
    ["CRLF, matched over lines", "a\r\nb\r\nc\r\n", "a\nb", "x\ny", "x\r\ny\r\nc\r\n"],
    ["CRLF, one line becomes two", "a\r\nb\r\n", "b", "b\nc", "a\r\nb\r\nc\r\n"],
    ["CRLF given as it is", "a\r\nb\r\n", "a\r\nb", "a\nb", "a\nb\r\n"],
    ["mixed, the place decides", "a\nb\r\nc\nd", "b", "b\nx", "a\nb\r\nx\r\nc\nd"],
    ["no final line break", "a\nb", "b", "c", "a\nc"],
    ["byte order mark", "\ufeffa\nb\n", "a\n", "x\n", "\ufeffx\nb\n"],
    ["deleting", "a\nb\nc\n", "b\n", "", "a\nc\n"],
    ["dollar signs are text", "a\n", "a", "$& $1 $$", "$& $1 $$\n"],
    ["into an empty file", "", "", "a\n", "a\n"],
    ["more than the basic plane", "a 🎭 b\r\n", "🎭 b", "c\nd", "a c\r\nd\r\n"],
  ])("edit writes the expected file: %s", async (_, before, old_str, new_str, after) => {
    const { write, context } = fileWorkspace();
    const path = write("a.txt", before);
    await call(edit, { path, old_str, new_str }, context);
    expect(readFileSync(path, "utf8")).toBe(after);
  });

  it.each([
    [
      "several places",
      "a\nb\na\nb\na\n",
      "a\nb",
      "old_str occurs 2 times in PATH, on lines 1 and 3. Nothing was changed. Add surrounding lines to old_str until it fits only one place.",
    ],
    [
      "overlapping places",
      "aaa\n",
      "aa",
      "old_str occurs 2 times in PATH, on line 1. Nothing was changed. Add surrounding lines to old_str until it fits only one place.",
    ],
    [
      "other white space",
      "if (x) {\n\treturn 1;\n}\n",
      "if (x) {\n  return 1;\n}",
      "old_str was not found in PATH; nothing was changed. Apart from white space it is on line 1 (tabs and spaces differ). The file has:\n1. if (x) {\n2. \treturn 1;\n3. }",
    ],
    [
      "line numbers of view",
      "one\ntwo\n",
      "1. one\n2. two",
      "old_str was not found in PATH; nothing was changed. It begins its lines with the numbers that view shows, which are not part of the file: leave them out.",
    ],
    [
      "similar lines",
      "function total(items) {\n  return 0;\n}\n",
      "function totals(item) {",
      "old_str was not found in PATH; nothing was changed. The most similar lines are:\n1. function total(items) {",
    ],
    [
      "nothing like it",
      "one\ntwo\n",
      "completely different",
      "old_str was not found in PATH; nothing was changed. No line of the file resembles the first line of old_str. View the file, and copy the text exactly.",
    ],
    [
      "nothing to look for",
      "one\n",
      "",
      "old_str is empty. Give the text to replace, or write the whole file with create.",
    ],
  ])("edit explains a match that fails: %s", async (_, before, old_str, message) => {
    const { write, context } = fileWorkspace();
    const path = write("a.txt", before);
    const failure = await failureOf(edit, { path, old_str, new_str: "new" }, context);
    expect(failure).toEqual({ code: "failure", message: message.replaceAll("PATH", path) });
    expect(readFileSync(path, "utf8")).toBe(before);
  });

  it("edit refuses files that are not UTF-8 text or are missing, and a replacement that changes nothing", async () => {
    const { root, write, context } = fileWorkspace();
    write("binary", Buffer.from([1, 0, 2]));
    write("latin", Buffer.from([0x61, 0xe9, 0x62]));
    write("wide", Buffer.from([0xff, 0xfe, 0x61, 0x00]));
    write("text", "a");
    const message = async (path: string, old_str = "a", new_str = "b") =>
      (await failureOf(edit, { path, old_str, new_str }, context)).message;
    expect(await message("binary")).toContain("is a binary file; only UTF-8 text can be edited");
    expect(await message("latin")).toContain("is not valid UTF-8");
    expect(await message("wide")).toContain("is UTF-16 text");
    expect(await message("none")).toBe(`Path ${join(root, "none")} does not exist. Please provide a valid path.`);
    expect(await message("text", "a", "a")).toBe("old_str and new_str are the same: there is nothing to change.");
  });

  it("edit refuses a file that changed since the agent read or wrote it", async () => {
    const { write, context, see } = fileWorkspace();
    const path = write("a.txt", "one\ntwo\n");
    await see(path);
    await call(edit, { path, old_str: "one", new_str: "1" }, context);
    await call(edit, { path, old_str: "two", new_str: "2" }, context);
    writeFileSync(path, "1\n2\nthree\n");
    const failure = await failureOf(edit, { path, old_str: "2", new_str: "II" }, context);
    expect(failure.message).toContain("was changed since you last read it");
    await expect(edit.bind({ path, old_str: "2", new_str: "II" }).access(context)).rejects.toThrow("was changed");
    await see(path);
    await call(edit, { path, old_str: "2", new_str: "II" }, context);
    expect(readFileSync(path, "utf8")).toBe("1\nII\nthree\n");
  });

  it("edit loses nothing when one turn makes many edits of one file under two names", async () => {
    const { root, write, context } = fileWorkspace();
    const path = write("a.txt", Array.from({ length: 40 }, (_, index) => `line ${index};\n`).join(""));
    symlinkSync("a.txt", join(root, "b.txt"));
    await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        call(
          edit,
          { path: index % 2 ? "a.txt" : "b.txt", old_str: `line ${index};`, new_str: `done ${index};` },
          { ...context, toolCallId: `call_${index}`, signal: new AbortController().signal },
        ),
      ),
    );
    expect(readFileSync(path, "utf8").match(/done/g)).toHaveLength(40);
  });

  it("edit names the file and the agent that it waits for, and reports the end of the wait", async () => {
    const { write, context, another } = fileWorkspace();
    const path = write("a.txt", "a\n");
    const waits: LockWait[] = [];
    let release = (): void => {};
    const other = another("scout");
    const held = other.files.alone([path], other, () => new Promise<void>((done) => (release = done)));
    const lockWait = (wait: LockWait): void => {
      waits.push(wait);
      release();
    };
    await call(edit, { path, old_str: "a", new_str: "b" }, { ...context, lockWait });
    await held;
    await call(edit, { path, old_str: "b", new_str: "c" }, { ...context, lockWait });
    expect(waits).toEqual([
      { path, holder: "scout", isOver: false },
      { path, holder: "scout", isOver: true },
    ]);
  });

  it("edit stops waiting for its turn when the call is cancelled", async () => {
    const { write, context } = fileWorkspace();
    const path = write("a.txt", "a\n");
    const stop = new AbortController();
    let release = (): void => {};
    const held = context.files.alone([path], context, () => new Promise<void>((done) => (release = done)));
    const waiting = call(edit, { path, old_str: "a", new_str: "b" }, { ...context, signal: stop.signal });
    setTimeout(() => stop.abort(new Error("cancelled")), 10);
    await expect(waiting).rejects.toThrow("cancelled");
    release();
    await held;
    await call(edit, { path, old_str: "a", new_str: "c" }, context);
    expect(readFileSync(path, "utf8")).toBe("c\n");
  });
});
