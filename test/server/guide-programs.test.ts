import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { transform } from "esbuild";
import { describe, expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";

const pages = ["README.md", "docs/reference/sdk.md", "docs/tutorials/first-program.md"];
const matchesOf = (pattern: RegExp) => pages.flatMap((page) => [...readFileSync(page, "utf8").matchAll(pattern)]);
const programs = matchesOf(/^```ts\n([\s\S]*?)^```$/gm)
  .map(([, code = ""]) => code)
  // The program with three kinds of connection needs a server that runs already.
  .filter((code) => !code.includes('kind: "tcp"'));

/** The scripts that play the model, which a page tells its reader to save. */
const scripts = Object.fromEntries(
  matchesOf(/Save this as `([\w-]+\.json)`:\n\n```json faux\n([\s\S]*?)^```$/gm).map(([, name, text = ""]) => [
    `work/${name}`,
    text,
  ]),
);

/** Runs it as a user does: compiled for the oldest Node, against the build, in an empty home. */
async function run(program: string): Promise<{ stdout: string; stderr: string }> {
  const { code } = await transform(program, { loader: "ts", format: "esm", target: "node20" });
  const builtOf = (name: string): string => JSON.stringify(pathToFileURL(resolve(`dist/lib/${name}.js`)).href);
  const zod = JSON.stringify(pathToFileURL(resolve("node_modules/zod/index.js")).href);
  const located = code.replace(/"troupe\/(\w+)"/g, (_, name: string) => builtOf(name)).replace('"zod"', () => zod);
  await using folder = await tempFolder({ ...scripts, "work/a.txt": "one\ntwo\n", "program.mjs": located });
  const env = { PATH: process.env.PATH, HOME: folder.at("home"), TROUPE_NO_DISCOVERY: "1" };
  return await promisify(execFile)(process.execPath, [folder.at("program.mjs")], {
    cwd: folder.at("work"),
    env,
    timeout: 240_000,
  });
}

describe("the programs of README, SDK reference and tutorial", () => {
  it("the programs of README, SDK reference and tutorial exist", () => expect(programs.length).toBeGreaterThan(5));

  it.each(programs)(
    "a program of the documentation runs to its end without a key and without noise: program %#",
    async (program) => {
      expect((await run(program)).stderr).toBe("");
    },
  );
});
