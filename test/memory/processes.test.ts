import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { expect, test } from "vitest";
import { type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";
import { startChild } from "../store/child.ts";
import { localAt } from "./support.ts";

async function writer(folder: TempFolder): Promise<string> {
  const outfile = join(folder.path, "writer.mjs");
  const entryPoints = [fileURLToPath(new URL("./writer-program.ts", import.meta.url))];
  const loader = { ".md": "text" } as const;
  await build({ entryPoints, outfile, bundle: true, platform: "node", format: "esm", loader });
  return outfile;
}

test("processes that write at the same time lose nothing, and a killed one loses nothing of the others", async () => {
  await using folder = await tempFolder();
  const program = await writer(folder);
  mkdirSync(folder.at("work"));
  const start = (name: string, count: number) =>
    startChild(program, folder.at("home"), folder.at("work"), name, String(count));
  const [one, two, doomed] = [start("one", 12), start("two", 12), start("doomed", 10_000)];
  await doomed.lines(3);
  doomed.input.end();
  const ended = await Promise.all([one.ended, two.ended, doomed.ended]);
  expect(ended.map(({ errors }) => errors)).toEqual(["", "", ""]);
  expect(ended.map(({ signal }) => signal)).toEqual([null, null, "SIGKILL"]);
  const acknowledged = ended.flatMap(({ lines }) => lines);
  expect(acknowledged.length).toBeGreaterThanOrEqual(27);
  const [journal] = localAt(folder.at("home"), folder.at("work")).journals;
  const kept = new Set([...(journal?.read().facts.values() ?? [])].map(({ fact }) => fact));
  expect(acknowledged.filter((fact) => !kept.has(fact))).toEqual([]);
});
