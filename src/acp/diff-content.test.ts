import { formatPatch, structuredPatch } from "diff";
import { expect, it } from "vitest";
import { fileChanges } from "./diff-content.ts";

const diffOf = (name: string, before: string | null, after: string | null): string => {
  const [oldName, newName] = [before === null ? "/dev/null" : `a/${name}`, after === null ? "/dev/null" : `b/${name}`];
  const patch = structuredPatch(oldName, newName, before ?? "", after ?? "", undefined, undefined, { context: 3 });
  return `--- ${oldName}\n+++ ${newName}\n${formatPatch(patch).split("\n").slice(3).join("\n")}`;
};
const numbered = (count: number): string => Array.from({ length: count }, (_, index) => `line ${index}\n`).join("");

it("a parsed diff has each hunk with the texts before and after it, and the line of the first", () => {
  const before = numbered(40);
  const after = before.replace("line 5\n", "five\n").replace("line 30\n", "");
  const { diffs, locations, isWhole } = fileChanges(diffOf("src/x.ts", before, after), "/project");
  expect(diffs).toEqual([
    {
      path: "/project/src/x.ts",
      oldText: "line 2\nline 3\nline 4\nline 5\nline 6\nline 7\nline 8\n",
      newText: "line 2\nline 3\nline 4\nfive\nline 6\nline 7\nline 8\n",
    },
    {
      path: "/project/src/x.ts",
      oldText: "line 27\nline 28\nline 29\nline 30\nline 31\nline 32\nline 33\n",
      newText: "line 27\nline 28\nline 29\nline 31\nline 32\nline 33\n",
    },
  ]);
  expect([locations, isWhole]).toEqual([[{ path: "/project/src/x.ts", line: 3 }], true]);
});

it("a diff of a new file has no old text, and of a deleted file an empty new text", () => {
  expect(fileChanges(diffOf("new.txt", null, "a\n"), "/project").diffs).toEqual([
    { path: "/project/new.txt", newText: "a\n" },
  ]);
  expect(fileChanges(diffOf("old.txt", "a\n", null), "/project").diffs).toEqual([
    { path: "/project/old.txt", oldText: "a\n", newText: "" },
  ]);
});

it("a diff with several files, absolute paths, missing newlines and header-like lines is parsed", () => {
  const diff = diffOf("/etc/one", "-- a\n++ b", "-- c\n++ b\n") + diffOf("two", "x\n", "y");
  expect(fileChanges(diff, "/project").diffs).toEqual([
    { path: "/etc/one", oldText: "-- a\n++ b", newText: "-- c\n++ b\n" },
    { path: "/project/two", oldText: "x\n", newText: "y" },
  ]);
});

it("a diff that was cut off or is not text is reported as incomplete", () => {
  const whole = diffOf("x", numbered(40), numbered(40).replaceAll("line", "row"));
  const cut = `${whole.slice(0, whole.indexOf("\n+row 3") + 1)}[the diff continues: 400 more characters]\n`;
  expect(fileChanges(cut, "/project")).toEqual({ diffs: [], locations: [{ path: "/project/x" }], isWhole: false });
  const binary = "--- a/x\n+++ b/x\n[binary content: 3 bytes before, 4 bytes after]\n";
  expect(fileChanges(binary, "/project")).toMatchObject({ diffs: [], isWhole: false });
});
