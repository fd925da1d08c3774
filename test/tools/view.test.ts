import { chmodSync, mkdirSync, symlinkSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { view } from "../../src/tools/files/view.ts";
import { processorTime } from "../support/work.ts";
import { call, contentOf, contextFor, failureOf, makeFifo, workspace } from "./workspace.ts";

const PNG = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");

describe("view of a file", () => {
  test("view numbers the lines of a file, and a trailing line break gives one more line", async () => {
    const { root, write } = workspace();
    write("a.txt", "Hi Universe\nGoodbye World\n");
    expect(await call(view, { path: "a.txt" }, contextFor(root))).toEqual({
      content: "1. Hi Universe\n2. Goodbye World\n3.",
    });
  });

  test.each([
    ["", "1."],
    ["one", "1. one"],
    ["\n\n", "1. \n2. \n3."],
    ["a\r\nb\r\n", "1. a\n2. b\n3."],
    ["\ufeffwith mark", "1. with mark"],
    [Buffer.from([0x61, 0xff, 0x62, 0xc3]), "1. a\ufffdb\ufffd"],
    [Buffer.from("\ufeffwide\n", "utf16le"), "1. wide\n2."],
    ["x".repeat(2000), `1. ${"x".repeat(2000)}`],
    ["x".repeat(2001), `1. ${"x".repeat(2000)}… [line cut]`],
    [`${"x".repeat(2000)}\r\ny`, `1. ${"x".repeat(2000)}\n2. y`],
  ])("view shows the content of a file with line numbers: %j", async (text, expected) => {
    const { root, write } = workspace();
    write("a.txt", text);
    expect(await contentOf(view, { path: join(root, "a.txt") }, contextFor(root))).toBe(expected);
  });

  test("view does not split characters that lie across two reads", async () => {
    const { root, write } = workspace();
    write("a.txt", `${"x\n".repeat(32_767)}y€\n`);
    expect(await contentOf(view, { path: "a.txt", view_range: [32_768, -1] }, contextFor(root))).toBe(
      "32768. y€\n32769.",
    );
  });

  test.each([
    [[2, 2], "2. line2"],
    [[2, 3], "2. line2\n3. line3"],
    [[3, -1], "3. line3\n4."],
    [[3, 99], "3. line3\n4."],
    [[4, 4], "4."],
  ])("view with view_range %j shows the real line numbers", async (view_range, expected) => {
    const { root, write } = workspace();
    write("a.txt", "line1\nline2\nline3\n");
    expect(await contentOf(view, { path: "a.txt", view_range }, contextFor(root))).toBe(expected);
  });

  test.each([
    [[5, 6], "view_range starts at line 5, but ROOT/a.txt has only 4 lines."],
    [[0, 2], "view_range [0, 2] is not valid: it needs 1 ≤ start ≤ end, or an end of -1 for the end of the file."],
    [[3, 2], "view_range [3, 2] is not valid: it needs 1 ≤ start ≤ end, or an end of -1 for the end of the file."],
  ])("view with the invalid view_range %j explains what is wrong", async (view_range, message) => {
    const { root, write } = workspace();
    write("a.txt", "line1\nline2\nline3\n");
    expect(await failureOf(view, { path: "a.txt", view_range }, contextFor(root))).toEqual({
      code: "failure",
      message: message.replace("ROOT", root),
    });
  });

  test("view of a path that does not exist asks for a valid path", async () => {
    const { root } = workspace();
    expect(await failureOf(view, { path: "no.txt" }, contextFor(root))).toEqual({
      code: "failure",
      message: `Path ${root}/no.txt does not exist. Please provide a valid path.`,
    });
  });

  test("outside the roots is denied", async () => {
    const { root, outside } = workspace();
    symlinkSync(join(outside, "secret.txt"), join(root, "link"));
    const denial = await failureOf(view, { path: "link" }, contextFor(root));
    expect(denial.code).toBe("denied");
    expect(denial.message).toContain(`--add-dir ${outside} or --allow-all-paths`);
    expect(await contentOf(view, { path: "link" }, contextFor(root, { roots: [] }))).toBe("1. SECRET\n2.");
  });

  test("view of a named pipe fails at once", async () => {
    const { root } = workspace();
    makeFifo(join(root, "pipe"));
    expect((await failureOf(view, { path: "pipe" }, contextFor(root))).message).toContain("is a named pipe");
  });

  test.skipIf(process.getuid?.() === 0)(
    'view of a file without read permission reports "permission denied"',
    async () => {
      const { root, write } = workspace();
      chmodSync(write("locked.txt", "x"), 0);
      expect((await failureOf(view, { path: "locked.txt" }, contextFor(root))).message).toContain("permission denied");
    },
  );

  test("view of a binary file reports its size and that it has no text", async () => {
    const { root, write } = workspace();
    write("a.bin", Buffer.from([0x7f, 0x45, 0, 1, 2]));
    expect(await failureOf(view, { path: "a.bin" }, contextFor(root))).toEqual({
      code: "failure",
      message: `${root}/a.bin is a binary file (5 bytes) and has no text to show.`,
    });
  });

  test("view of a file over 10 MiB requires a range or force, and stays bounded", async () => {
    const { root, write } = workspace();
    write("big.log", `${"0123456789abcde\n".repeat(700_000)}end`);
    const context = contextFor(root);
    const refusal = await failureOf(view, { path: "big.log" }, context);
    expect(refusal.message).toMatch(/big\.log is large \(11200003 bytes\)\. Give a view_range/);
    expect(await contentOf(view, { path: "big.log", view_range: [700_001, -1] }, context)).toBe("700001. end");
    const forced = await contentOf(view, { path: "big.log", forceReadLargeFiles: true }, context);
    expect(forced.length).toBeLessThan(257 * 1024);
    const lastShown = forced.split("\n").length - 1;
    expect(forced).toMatch(new RegExp(`\n\\[Cut here; .+view_range \\[${lastShown + 1}, -1\\]\\.\\]$`));
  });

  test("view reads a file only as far as it needs to", async () => {
    const { root, write } = workspace();
    const path = write("sparse.txt", `first\n${"text ".repeat(2000)}\n`);
    truncateSync(path, 50 * 1024 ** 3);
    const spent = processorTime();
    expect(await contentOf(view, { path, view_range: [1, 1] }, contextFor(root))).toBe("1. first");
    expect(spent()).toBeLessThan(1000);
  });

  test("view ends when aborted, however long the file is", async () => {
    const { root, write } = workspace();
    const path = write("sparse.txt", `first\n${"text ".repeat(2000)}\n`);
    truncateSync(path, 50 * 1024 ** 3);
    const signal = AbortSignal.timeout(50);
    expect((await failureOf(view, { path, view_range: [9, 9] }, contextFor(root, { signal }))).message).toContain(
      "timeout",
    );
  });
});

describe("view of an image", () => {
  test.each([
    ["image/png", PNG],
    ["image/jpeg", Buffer.from("ffd8ffe000104a464946", "hex")],
    ["image/gif", Buffer.from("GIF89a....")],
    ["image/webp", Buffer.from("RIFF\n\0\0\0WEBPVP8 ")],
  ])("view returns %s as an image whatever the file is called", async (mimeType, bytes) => {
    const { root, write } = workspace();
    const path = write("picture.dat", bytes);
    expect(await call(view, { path }, contextFor(root))).toEqual({
      content: "Viewed image file successfully.",
      images: [{ mimeType, data: bytes.toString("base64"), description: `Image file at path ${path}` }],
    });
  });

  test("view accepts an image of 5 MiB and not a byte more", async () => {
    const { root, write } = workspace();
    const path = write("big.png", PNG);
    truncateSync(path, 5 * 1024 * 1024);
    expect((await call(view, { path }, contextFor(root))).images).toHaveLength(1);
    truncateSync(path, 5 * 1024 * 1024 + 1);
    expect((await failureOf(view, { path }, contextFor(root))).message).toBe(
      `Image ${path} has 5242881 bytes; images above 5242880 bytes are not shown.`,
    );
  });
});

describe("view of a folder", () => {
  test("view of a folder lists exactly the names, sorted, with hidden ones and folders", async () => {
    const { root, write } = workspace();
    for (const name of ["readme.txt", ".env", "src/a.ts"]) write(name);
    expect(await contentOf(view, { path: root }, contextFor(root))).toBe(".env\nreadme.txt\nsrc");
    mkdirSync(join(root, "empty"));
    expect(await contentOf(view, { path: "empty" }, contextFor(root))).toBe(`Folder ${root}/empty is empty.`);
  });

  test("view of a folder shows at most 1,000 names, and a name with a line break as one", async () => {
    const { root, write } = workspace();
    write("two\nlines");
    for (let index = 0; index < 1001; index++) write(`file${String(index).padStart(4, "0")}`);
    const lines = (await contentOf(view, { path: "." }, contextFor(root))).split("\n");
    expect([lines.length, lines[999], lines[1000]]).toEqual([1001, "file0999", "[2 more names not shown]"]);
    expect(await contentOf(view, { path: "." }, contextFor(root))).not.toContain("\nlines\n");
  });
});

test("view asks to read the path it is given and describes it to the permission rules", async () => {
  expect(await view.bind({ path: "a.txt" }).access(contextFor("/"))).toEqual([{ kind: "read", path: "a.txt" }]);
  expect(() => view.bind({ path: 5 })).toThrow("Bad arguments for view");
  expect(() => view.bind({ path: "a", view_range: [1] })).toThrow("Bad arguments for view");
});
