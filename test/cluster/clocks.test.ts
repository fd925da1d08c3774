/** Workers whose clocks are wrong by an hour, or jump, are neither replaced early nor keep a session longer. */

import { writeFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { postgresPrograms } from "../support/postgres.ts";
import { ClusterStage, HANG, SLOW } from "./stage.ts";

const programs = postgresPrograms();
const HOUR_MS = 3_600_000;
const LEASE_MS = 4_000;

if (programs === undefined) it.skip("wrong clocks of workers change nothing (skipped: no Postgres here)");

describe.runIf(programs !== undefined && SLOW)("workers with wrong clocks", { timeout: 300_000 }, () => {
  let stage: ClusterStage;
  afterEach(() => stage?.close());

  const clocks = { fast: [HOUR_MS], slow: [-HOUR_MS], jumping: [0, HOUR_MS, -HOUR_MS, 0] };
  const openStage = async () => {
    stage = await ClusterStage.open(programs ?? "", { lease: LEASE_MS / 1_000 });
  };
  const start = (which: readonly (readonly [string, readonly number[]])[], concurrency: number) =>
    Promise.all(which.map(([name, clockMs]) => stage.worker(name, { seam: { clockMs }, concurrency })));
  const held = (worker: string) => stage.count(`troupe.session where holder = '${worker}'`);

  it("workers with wrong clocks take over nothing from each other, and renew no longer lease", async () => {
    await openStage();
    const [fast, slow, jumping] = await start(Object.entries(clocks), 2);
    const ids = await stage.submit(9, { tokens: 20 });
    for (const _ of clocks.jumping.slice(1)) {
      await expect.poll(() => held(jumping?.id ?? ""), HANG).toBeGreaterThan(0);
      jumping?.child.kill("SIGUSR2");
      await new Promise((resolve) => setTimeout(resolve, LEASE_MS / 2));
    }
    await stage.finish(ids);
    const { renewals = [] } = await stage.record();
    expect(await stage.takeOvers(ids)).toBe(0);
    const times = renewals.map(({ atMs, untilMs }) => untilMs - atMs);
    console.log(`${times.length} renewals, the longest lease ${Math.max(...times)} ms`);
    expect(Math.max(...times)).toBeLessThanOrEqual(LEASE_MS);
    // The times in the logs of the workers differ: the clocks were really wrong.
    const { rows } = await stage.database.query<{ hours: number }>(
      "select distinct round(extract(epoch from (line::jsonb->>'timestamp')::timestamptz - now()) / 3600)::int as hours from troupe.event",
    );
    expect(rows.map(({ hours }) => hours).sort((a, b) => a - b)).toEqual([-1, 0, 1]);
    // It takes new work, although its clock was ahead before.
    for (const { child } of [fast, slow].filter((worker) => worker !== undefined)) child.kill("SIGTERM");
    await Promise.all([fast?.ended, slow?.ended]);
    await stage.finish(await stage.submit(1));
    expect(await stage.violations()).toEqual([]);
  });

  it.each([0, 1])(
    "workers with wrong clocks are replaced when they are killed, and not before their lease ends (%i)",
    async (index) => {
      await openStage();
      const all = Object.entries(clocks);
      const [lost] = await start(all.slice(index, index + 1), 8);
      // Workers judge no other one for two leases after a start of the server.
      const started = `(select 1 where clock_timestamp() > pg_postmaster_start_time() + interval '${2 * LEASE_MS} ms') s`;
      await expect.poll(() => stage.count(started), HANG).toBe(1);
      // The others are started with sessions at work, and have a slot for each: a session without a slot waits for one.
      const ids = await stage.submit(4, { tokens: 8, kind: "held" });
      await expect.poll(() => held(lost?.id ?? ""), HANG).toBe(4);
      await start(all.toSpliced(index, 1), 8);
      lost?.child.kill("SIGKILL");
      writeFileSync(`${stage.ledger}.go`, "");
      await stage.finish(ids);
      const { takes = [], renewals = [] } = await stage.record();
      const until = Math.max(...renewals.filter(({ worker }) => worker === lost?.id).map(({ untilMs }) => untilMs));
      const late = takes.flatMap(({ session, epoch, holder, atMs }) => {
        const before = takes.findLast((take) => take.session === session && take.epoch < epoch);
        return before?.holder === lost?.id && holder !== lost?.id ? [atMs - until] : [];
      });
      console.log(`taken over ${late.map(Math.round).join(", ")} ms after the end of the lease`);
      expect(late.length).toBeGreaterThan(0);
      expect(Math.min(...late)).toBeGreaterThan(0);
      expect(Math.max(...late)).toBeLessThanOrEqual(3_000);
      expect(await stage.violations()).toEqual([]);
    },
  );
});
