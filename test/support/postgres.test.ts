import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { postgresPrograms } from "./postgres.ts";

const HANG = { timeout: 100_000 };

it.skipIf(postgresPrograms() === undefined)("the Postgres server of a killed test run ends with it", async () => {
  await using scratch = await tempFolder();
  const program = scratch.at("program.mjs");
  const entry = fileURLToPath(new URL("./postgres-program.ts", import.meta.url));
  await build({ entryPoints: [entry], outfile: program, bundle: true, platform: "node", format: "esm" });
  const child = spawn(process.execPath, [program], { stdio: ["ignore", "pipe", "inherit"] });
  const folder = await firstLine(child);
  const [pid = ""] = readFileSync(join(folder, "data", "postmaster.pid"), "utf8").split("\n");
  expect(existsSync(`/proc/${pid}`)).toBe(true);
  child.kill("SIGKILL");
  await expect.poll(() => [existsSync(`/proc/${pid}`), existsSync(folder)], HANG).toEqual([false, false]);
});

function firstLine(child: ChildProcess): Promise<string> {
  let said = "";
  return new Promise((done, fail) => {
    child.once("exit", () => fail(new Error(`ended before it had a server: ${said}`)));
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      if (said.includes("\n")) done(said.split("\n", 1)[0] ?? "");
    });
  });
}
