/** Makes and plays the case of one seed in a folder of its own. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type Outcome, play, removeFolder } from "./play.ts";
import { makeCase } from "./world.ts";

export async function runCase(base: string, seed: number, index: string): Promise<Outcome> {
  const folder = join(base, `case-${seed}`);
  mkdirSync(folder);
  try {
    const { world, plan } = makeCase(folder, seed);
    return await play(world, plan, index);
  } catch (error) {
    return { problems: [`the case broke: ${error instanceof Error ? error.stack : error}`] };
  } finally {
    if (process.env.TROUPE_FUZZ_KEEP === undefined) removeFolder(folder);
  }
}
