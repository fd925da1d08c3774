/**
 * Checks the list of seeded defects and the verdicts of the runner. The slow version tries three defects of the list;
 * `npm run test:mutation` tries them all.
 */
import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { defects } from "./defects.ts";

const SHORT = ["allow-before-deny", "one-more-place", "retry-hopeless"];
const read = (path: string): string => readFileSync(resolve(path), "utf8");

describe("the list of seeded defects", () => {
  it("the list of seeded defects has at least 60 defects with unique ids", () => {
    expect(defects.length).toBeGreaterThanOrEqual(60);
    expect(new Set(defects.map(({ id }) => id)).size).toBe(defects.length);
  });

  it("a seeded defect names a text that occurs exactly once in its file", () => {
    const lost = defects.filter(({ file, find }) => read(file).split(find).length !== 2);
    expect(lost.map(({ id, file, find }) => `${id}: ${file} does not hold once: ${find}`)).toEqual([]);
  });

  it("a seeded defect changes something, and says why that matters", () => {
    const idle = defects.filter(({ find, replace, why }) => find === replace || why === "");
    expect(idle.map(({ id }) => id)).toEqual([]);
  });

  it("a seeded defect names a test that exists", () => {
    const lost = defects.filter(({ test, title }) => !existsSync(resolve(test)) || !read(test).includes(title));
    expect(lost.map(({ id, test, title }) => `${id}: ${test} has no test ${JSON.stringify(title)}`)).toEqual([]);
  });
});

describe("npm run test:mutation", () => {
  it.runIf(process.env.TROUPE_SLOW)("npm run test:mutation catches three of the defects", async () => {
    const only = SHORT.flatMap((id) => ["--only", id]);
    const { stdout } = await promisify(execFile)(process.execPath, ["scripts/mutation.mjs", "--jobs", "1", ...only]);
    expect(stdout).toMatch(/^3 caught, 0 survived, 0 broken/m);
  });

  it("npm run test:mutation distinguishes caught, surviving and broken defects, and exits with 1", async () => {
    const args = ["scripts/mutation.mjs", "--jobs", "1", "--from", "test/mutation/verdicts.ts"];
    const run = promisify(execFile)(process.execPath, args);
    const failed = await run.then(
      () => undefined,
      (error: { code: number; stdout: string }) => error,
    );
    expect(failed?.code).toBe(1);
    const verdicts = failed?.stdout.match(/^(caught|survived|broken) +\S+/gm)?.map((line) => line.replace(/ +/, " "));
    expect(verdicts?.toSorted()).toEqual([
      "broken no-such-test",
      "broken not-code",
      "caught one-more-slot",
      "survived harmless",
    ]);
    expect(failed?.stdout).toMatch(/^1 caught, 1 survived, 2 broken/m);
  });
});
