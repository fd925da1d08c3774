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
  it("lists all 266 ids once, in order", () => {
    expect(rows.map(({ id }) => id)).toEqual(expected);
    expect(expected).toHaveLength(266);
  });

  it("says what each feature is and whether it is done or planned", () => {
    expect(rows.filter(({ feature }) => feature === "")).toEqual([]);
    expect(rows.filter(({ status }) => status !== "done" && status !== "planned")).toEqual([]);
    expect(rows.filter(({ status, proof }) => status === "planned" && proof !== "")).toEqual([]);
  });

  it("counts what is done", () => {
    expect(page).toContain(`${done.length} of ${rows.length} are done.`);
  });

  it.each(done)("proves $id by a test", ({ id, proof }) => {
    const [, file = "", label = ""] = proof.match(/^`([^`]+\.test\.ts)` (.+)$/) ?? [];
    expect(existsSync(file), `${file} of ${id} does not exist`).toBe(true);
    expect(
      titles(read(file)).filter((title) => title.includes(label)),
      `no title in ${file} has "${label}"`,
    ).not.toEqual([]);
    expect(idsIn(label)).toContain(id);
  });
});

describe("reading titles", () => {
  it("finds them in every form of a test and expands ranges", () => {
    const source =
      'describe("A-1", () => {\n  it.each([\n    [1, "x"],\n  ])("LOOP-03 to LOOP-05", f);\n  it(\n    \'b\', f);\n});';
    expect(titles(source)).toEqual(["A-1", "LOOP-03 to LOOP-05", "b"]);
    expect(idsIn("LOOP-03 to LOOP-05 and LOOP-09")).toEqual(["LOOP-03", "LOOP-04", "LOOP-05", "LOOP-09"]);
  });
});

function titles(source: string): string[] {
  const call = /\b(?:describe|it|test)(?:\.\w+(?:\([\s\S]*?\))?)*\(\s*(["'`])((?:\\.|(?!\1)[^\\\n])*)\1/g;
  return [...source.matchAll(call)].map(([, , title = ""]) => title);
}

/** The ids a title names, with those inside a range such as "LOOP-01 to LOOP-08". */
function idsIn(title: string): string[] {
  return [...title.matchAll(/\b([A-Z]{3,4})-(\d\d)(?: to \1-(\d\d))?/g)].flatMap(
    ([, group = "", from = "", to = from]) => idsOf(group, Number(from), Number(to)),
  );
}
