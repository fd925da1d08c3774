import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { cells, read } from "./documents.ts";

const counts = { ORC: 92, MEM: 60, BLX: 39, LOOP: 33, SDK: 42 };
const idsOf = (group: string, from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, index) => `${group}-${String(from + index).padStart(2, "0")}`);
const expected = Object.entries(counts).flatMap(([group, count]) => idsOf(group, 1, count));

const page = read("docs/features.md");
const rows = page
  .split("\n")
  .filter((line) => /^\| [A-Z]+-/.test(line))
  .map((line) => {
    const [id = "", feature = "", status = "", proof = ""] = cells(line);
    return { id, feature, status, proof };
  });
const done = rows.filter(({ status }) => status === "done");

describe("docs/features.md", () => {
  it("docs/features.md lists all 266 ids once, in order", () => {
    expect(rows.map(({ id }) => id)).toEqual(expected);
    expect(expected).toHaveLength(266);
  });

  it("docs/features.md names each feature and whether it is done or planned", () => {
    expect(rows.filter(({ feature }) => feature === "")).toEqual([]);
    expect(rows.filter(({ status }) => status !== "done" && status !== "planned")).toEqual([]);
    expect(rows.filter(({ status, proof }) => status === "planned" && proof !== "")).toEqual([]);
  });

  it("docs/features.md counts the features that are done", () => {
    expect(page).toContain(`${done.length} of ${rows.length} are done.`);
  });

  it.each(done)("docs/features.md proves $id by a test", ({ id, proof }) => {
    const [, file = "", label = ""] = proof.match(/^`([^`]+\.test\.ts)` (.+)$/) ?? [];
    expect(existsSync(file), `${file} of ${id} does not exist`).toBe(true);
    const found = testsIn(read(file)).filter(({ title }) => title.includes(label));
    expect(found, `no title in ${file} has "${label}"`).not.toEqual([]);
    expect(idsIn(label)).toContain(id);
    const proofs = found.filter(({ isRun, body }) => isRun && ASSERTS.test(body));
    expect(proofs, `every test in ${file} with "${label}" is skipped or asserts nothing`).not.toEqual([]);
  });
});

describe("the search for tests in a file", () => {
  const source = [
    'describe("A-1", () => {',
    "  it.each([",
    '    [1, "x"],',
    '  ])("LOOP-03 to LOOP-05", () => expect(1).toBe(1));',
    "  it(",
    "    'b', f);",
    '  it.skip("c", () => expect(1).toBe(1));',
    '  it.todo("d");',
    '  it.skipIf(!hasTmux)("e", () => expect(1).toBe(1));',
    "});",
    'describe.skip("f", () => {',
    '  it("g", () => expect(1).toBe(1));',
    "});",
  ].join("\n");

  it("the search for tests in a file finds every form of a test, and which of them are run", () => {
    const found = testsIn(source).map(({ title, isRun, body }) => [title, isRun, ASSERTS.test(body)]);
    expect(found).toEqual([
      ["A-1", true, true],
      ["LOOP-03 to LOOP-05", true, true],
      ["b", true, false],
      ["c", false, true],
      ["d", false, false],
      ["e", true, true],
      ["f", false, true],
      ["g", false, true],
    ]);
  });

  it("the search for tests in a file expands ranges of ids", () => {
    expect(idsIn("LOOP-03 to LOOP-05 and LOOP-09")).toEqual(["LOOP-03", "LOOP-04", "LOOP-05", "LOOP-09"]);
  });
});

const ASSERTS = /\bexpect\w*\s*[.(<]|\bassert\w*[.(]/;

interface FoundTest {
  readonly title: string;
  /** False for `skip` and `todo`, its own or of a `describe` around it. */
  readonly isRun: boolean;
  /** For a `describe`, everything in it. */
  readonly body: string;
}

/** Relies on the format of the repository: what is inside of something has a deeper indentation. */
function testsIn(source: string): FoundTest[] {
  const call =
    /^( *)(describe|it|test)((?:\.(?:each|for|skipIf|runIf)(?:<[^\n]*>)?\([\s\S]*?\)|\.\w+)*)\(\s*(["'`])((?:\\.|(?!\4)[^\\\n])*)\4/gm;
  const isOff = (modifiers: string): boolean => /\.(?:skip|todo)\b/.test(modifiers);
  const around: { depth: number; isOff: boolean }[] = [];
  return [...source.matchAll(call)].map((match) => {
    const [whole, indent = "", , modifiers = "", , title = ""] = match;
    while ((around.at(-1)?.depth ?? -1) >= indent.length) around.pop();
    const off = isOff(modifiers) || (around.at(-1)?.isOff ?? false);
    around.push({ depth: indent.length, isOff: off });
    const rest = source.slice((match.index ?? 0) + whole.length);
    const end = rest.search(new RegExp(`\\n {0,${indent.length}}(?:\\}|\\)|describe|it|test)`));
    return { title, isRun: !off, body: end < 0 ? rest : rest.slice(0, end) };
  });
}

/** The ids a title names, with those inside a range such as "LOOP-01 to LOOP-08". */
function idsIn(title: string): string[] {
  return [...title.matchAll(/\b([A-Z]{3,4})-(\d\d)(?: to \1-(\d\d))?/g)].flatMap(
    ([, group = "", from = "", to = from]) => idsOf(group, Number(from), Number(to)),
  );
}
