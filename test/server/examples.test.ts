import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { compileExample, exampleNames } from "../../scripts/example.mjs";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { read } from "../docs/documents.ts";

/** The lines that each example must print. */
const printed: Readonly<Record<string, readonly string[]>> = {
  "minimal-session": ["a.txt", "understudy"],
  "agent-tree": ["files (file-lister): completed, glob", "risks (risk-finder): completed", "Two agents looked"],
  "zod-tool": ["refused: The arguments of in_stock do not fit its schema", '{"product":"apple","count":12}'],
  "permission-policy": ["allowed: Change ", "refused: rm -rf build"],
  "background-agents": ["scout is idle", "main: The newest one is a.txt."],
  "structured-result": ["answers of the agent: 2", "{ verdict: 'pass', reasons: [ 'small and tested' ] }"],
  "durable-resume": ["killed while the tool was running", "stored message: Deploy it.", "It was interrupted."],
};

/** Runs the example as a user does, against the build, in an empty home without a key. */
async function run(name: string): Promise<{ stdout: string; stderr: string }> {
  await using folder = await tempFolder({ "work/a.txt": "one\ntwo\n" });
  const program = await compileExample(name, folder.path);
  const env = { PATH: process.env.PATH, HOME: folder.at("home"), TROUPE_NO_DISCOVERY: "1" };
  return await promisify(execFile)(process.execPath, [program], { cwd: folder.at("work"), env, timeout: 240_000 });
}

describe("examples", () => {
  it("the list of examples has an expectation for every example", () => {
    expect(Object.keys(printed).sort()).toEqual([...exampleNames].sort());
    expect(exampleNames.length).toBeGreaterThanOrEqual(7);
  });

  it.each(exampleNames)("the example %s runs to its end without a key", async (name) => {
    const { stdout, stderr } = await run(name);
    for (const line of printed[name] ?? []) expect(stdout).toContain(line);
    expect(stderr).toBe("");
  });

  it.each(exampleNames)("the list of examples links %s", (name) => {
    expect(read("examples/README.md")).toContain(`](${name}.ts)`);
  });
});
