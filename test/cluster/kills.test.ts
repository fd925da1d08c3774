/** Workers that are killed at any moment lose nothing, and nothing is repeated unasked. The short version is in `workers.test.ts`. */

import { afterEach, describe, expect, it } from "vitest";
import { seeded } from "../store/support.ts";
import { postgresPrograms } from "../support/postgres.ts";
import { ClusterStage, HANG, SLOW } from "./stage.ts";

const programs = postgresPrograms();
const SEEDS = 20;
/** A session of two effects is about 25 appends. */
const KILLED_APPENDS = Array.from({ length: 26 }, (_, index) => index + 1);
const LEASE_MS = 1_000;
const TAKE_OVER_MS = LEASE_MS + 3_000;

if (programs === undefined) it.skip("killed workers lose nothing (skipped: no Postgres here)");

describe.runIf(programs !== undefined && SLOW)("killed workers", { timeout: 1_200_000 }, () => {
  let stage: ClusterStage;
  afterEach(() => stage?.close());

  it(`lose nothing in ${SEEDS} seeded runs, and others take over in time`, async () => {
    stage = await ClusterStage.open(programs ?? "");
    const late: number[] = [];
    for (let seed = 1; seed <= SEEDS; seed++) {
      const random = seeded(seed);
      const lost = await stage.worker(`a${seed}`);
      const ids = [...(await stage.submit(4, { tokens: 3 })), ...(await stage.submit(1, { kind: "team", tokens: 3 }))];
      // Later than the work: the other one could take all of it.
      const starting = stage.worker(`b${seed}`);
      // It may have answered already: what it took is counted, not what it holds.
      await expect.poll(() => stage.count(`audit.take where holder = '${lost.id}'`), HANG).toBeGreaterThan(0);
      await new Promise((resolve) => setTimeout(resolve, random() * 500));
      lost.child.kill("SIGKILL");
      const killedAt = Date.now();
      const other = await starting;
      await stage.finish(ids);
      late.push(...(await takeOverTimes(lost.id, killedAt)));
      other.child.kill("SIGTERM");
      await other.ended;
    }
    console.log(`taken over after ${late.map((ms) => Math.round(ms)).join(", ")} ms`);
    expect(late.length).toBeGreaterThan(0);
    expect(Math.max(0, ...late)).toBeLessThanOrEqual(TAKE_OVER_MS);
    expect(await stage.violations()).toEqual([]);
  });

  /** Times from the kill until another worker took each session of the killed one. */
  async function takeOverTimes(lost: string, killedAt: number): Promise<readonly number[]> {
    const takes = (await stage.record()).takes ?? [];
    return takes.flatMap((take, index) => {
      const next = takes.slice(index + 1).find(({ session }) => session === take.session);
      return take.holder === lost && next && next.atMs > killedAt ? [next.atMs - killedAt] : [];
    });
  }

  it.each([false, true])("lose nothing at any append (answered: %s)", async (after) => {
    stage = await ClusterStage.open(programs ?? "");
    for (const killAtAppend of KILLED_APPENDS) {
      const pool = `p${killAtAppend}`;
      const lost = await stage.worker(`k${killAtAppend}`, { seam: { killAtAppend, after }, pool });
      const ids = await stage.submit(1, { pool });
      await Promise.race([lost.ended, stage.finish(ids)]);
      lost.child.kill("SIGKILL");
      const heir = await stage.worker(`h${killAtAppend}`, { pool });
      await stage.finish(ids);
      heir.child.kill("SIGKILL");
    }
    expect(await stage.violations()).toEqual([]);
  });
});
