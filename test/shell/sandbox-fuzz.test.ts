/** A few cases of the fuzzer, and one protection taken out that it must miss. `npm run test:fuzz` plays thousands. */
import { spawnSync } from "node:child_process";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildProgram } from "../fuzz/build.ts";
import { indexOfRepository, removeFolder, workFolder } from "../fuzz/play.ts";
import { runCase } from "../fuzz/run-case.ts";
import { hasBubblewrap } from "./bubblewrap.ts";

const works = await hasBubblewrap();
const SEEDS = Array.from({ length: process.env.TROUPE_SLOW ? 60 : 20 }, (_, number) => number + 1);

describe.runIf(works)("the sandbox in random workspaces", () => {
  let base = "";
  beforeAll(() => {
    base = workFolder();
  });
  afterAll(() => removeFolder(base));

  it("commands in random workspaces get no access beyond the sandbox", async () => {
    const index = indexOfRepository(base);
    const waiting = [...SEEDS];
    const failures: string[] = [];
    let refused = 0;
    const work = async (): Promise<void> => {
      for (let seed = waiting.shift(); seed !== undefined; seed = waiting.shift()) {
        const outcome = await runCase(base, seed, index);
        if (outcome.refused !== undefined) refused++;
        if (outcome.problems.length > 0) failures.push(`seed ${seed}: ${outcome.problems.join("\n")}`);
      }
    };
    await Promise.all([work(), work(), work()]);
    expect(failures).toEqual([]);
    expect(refused).toBeLessThan(SEEDS.length / 3);
  });

  it("the fuzz test fails when it does not check what commands leave behind", async () => {
    const program = join(base, "program.mjs");
    await buildProgram(resolve("."), program, "check-afterwards");
    const { stdout } = spawnSync(process.execPath, [program, "1", "1", "4", "60"], { encoding: "utf8" });
    const failed = stdout.split("\n").filter((line) => line.includes("git status ran a program"));
    expect(failed.length).toBeGreaterThan(0);
  });
});
