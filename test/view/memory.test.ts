import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { build } from "esbuild";
import { expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";

const isSlow = process.env.TROUPE_SLOW !== undefined;
const EVENTS = isSlow ? 200_000 : 30_000;

it(`a view grows by at most 20 MB over ${EVENTS.toLocaleString("en-US")} events that nobody drains`, async () => {
  await using folder = await tempFolder();
  const outfile = join(folder.path, "memory.mjs");
  const entry = join(import.meta.dirname, "memory-program.ts");
  await build({ entryPoints: [entry], bundle: true, platform: "node", format: "esm", outfile });
  const printed = execFileSync(process.execPath, ["--expose-gc", outfile, String(EVENTS)], { encoding: "utf8" });
  const report = JSON.parse(printed) as {
    rssGrowthMb: number;
    heapGrowthMb: number;
    mainBlocks: number;
    agents: number;
  };
  expect(report.heapGrowthMb).toBeLessThanOrEqual(12);
  expect(report.rssGrowthMb).toBeLessThanOrEqual(20);
  expect(report.mainBlocks).toBeLessThanOrEqual(2_000);
  expect(report.agents).toBeLessThanOrEqual(1_000);
}, 300_000);
