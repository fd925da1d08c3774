/** Workers that are killed at any moment lose nothing, and nothing is repeated unasked. The short version is in `workers.test.ts`. */

import { afterEach, describe, expect, it } from "vitest";
import { seeded } from "../store/support.ts";
import { postgresPrograms } from "../support/postgres.ts";
import { ClusterStage, HANG, SLOW } from "./stage.ts";

const programs = postgresPrograms();
const SEEDS = 20;
/** A session of two effects is about 25 appends. */
const KILLED_APPENDS = Array.from({ length: 26 }, (_, index) => index + 1);
const LEASE = 1;
/** From the end of the lease on. */
const TAKE_OVER_MS = 3_000;

interface TakeOver {
  /** Time from the end of the killed worker's lease to the taking. */
  readonly afterMs: number;
  /** The same, from when the other worker had a lease if that was later. */
  readonly lateMs: number;
}

if (programs === undefined) it.skip("killed workers lose nothing (skipped: no Postgres here)");

describe.runIf(programs !== undefined && SLOW)("killed workers", { timeout: 1_200_000 }, () => {
  let stage: ClusterStage;
  afterEach(() => stage?.close());

  it(`killed workers lose nothing in ${SEEDS} seeded runs, and others take over in time`, async () => {
    stage = await ClusterStage.open(programs ?? "", { lease: LEASE });
    const all: (readonly TakeOver[])[] = [];
    for (let seed = 1; seed <= SEEDS; seed++) {
      const random = seeded(seed);
      const lost = await stage.worker(`a${seed}`);
      const ids = [...(await stage.submit(4, { tokens: 3 })), ...(await stage.submit(1, { kind: "team", tokens: 3 }))];
      // Later than the work: the other one could take all of it. It may do so nevertheless.
      const starting = stage.worker(`b${seed}`);
      await expect.poll(async () => (await hasTaken(lost.id)) || (await isDone(ids)), HANG).toBe(true);
      await new Promise((resolve) => setTimeout(resolve, random() * 500));
      lost.child.kill("SIGKILL");
      const other = await starting;
      await stage.finish(ids);
      all.push(await takeOversFrom(lost.id));
      other.child.kill("SIGTERM");
      await other.ended;
    }
    const found = all.flat();
    const killed = all.filter(({ length }) => length > 0).length;
    console.log(`${found.length} take-overs in ${killed} of ${SEEDS} seeds`);
    console.log(`ms from the end of the lease to the take-over: ${found.map(({ afterMs }) => Math.round(afterMs))}`);
    console.log(`… from when another worker ran, if that was later: ${found.map(({ lateMs }) => Math.round(lateMs))}`);
    expect(killed).toBeGreaterThan(SEEDS / 2);
    expect(Math.max(...found.map(({ lateMs }) => lateMs))).toBeLessThanOrEqual(TAKE_OVER_MS);
    expect(await stage.violations()).toEqual([]);
  });

  const hasTaken = async (worker: string): Promise<boolean> =>
    (await stage.count(`audit.take where holder = '${worker}'`)) > 0;
  const isDone = async (ids: readonly string[]): Promise<boolean> =>
    (await stage.outcomes(ids)).every((outcome) => outcome === "all done");

  /** Finds the sessions that another worker took from the killed one. */
  async function takeOversFrom(lost: string): Promise<readonly TakeOver[]> {
    const { takes = [], renewals = [] } = await stage.record();
    const expiredAt = renewals.findLast(({ worker }) => worker === lost)?.untilMs ?? 0;
    return takes.flatMap((take, index) => {
      const next = takes.slice(index + 1).find(({ session }) => session === take.session);
      if (take.holder !== lost || !next || next.holder === lost) return [];
      const otherSince = renewals.find(({ worker }) => worker === next.holder)?.atMs ?? 0;
      const afterMs = next.atMs - expiredAt;
      return [{ afterMs, lateMs: next.atMs - Math.max(expiredAt, otherSince) }];
    });
  }

  it.each([false, true])("workers killed at any append lose nothing (answered: %s)", async (after) => {
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
