/** A frozen worker that wakes up after another one has taken over does nothing: no write and no effect. The short version is in `workers.test.ts`. */

import { afterEach, describe, expect, it } from "vitest";
import { postgresPrograms } from "../support/postgres.ts";
import { ClusterStage, freezeWorker, HANG, SLOW, type StagedWorker } from "./stage.ts";

const programs = postgresPrograms();
const LEASE_MS = 1_000;
/** How long the worker is frozen at least. It always stays so until its session was taken. */
const FREEZES_MS = [8_000, 60_000];
const REFUSED = /refused a call/g;

if (programs === undefined) it.skip("frozen workers do nothing after they wake up (skipped: no Postgres here)");

describe.runIf(programs !== undefined && SLOW)("a frozen worker", { timeout: 600_000 }, () => {
  let stage: ClusterStage;
  afterEach(() => stage?.close());

  async function freeze(seam: object, atLeastMs: number): Promise<StagedWorker> {
    stage = await ClusterStage.open(programs ?? "");
    return freezeWorker(stage, { seam, atLeastMs });
  }

  it.each(FREEZES_MS)("a frozen worker starts no tool when it wakes up after %i ms", async (ms) => {
    const frozen = await freeze({}, ms);
    await expect.poll(() => frozen.said().match(REFUSED)?.length, HANG).toBe(1);
    await stage.rest();
    expect(await stage.takeOvers()).toBe(1);
    expect(await stage.violations()).toEqual([]);
  });

  it("a frozen worker starts no tool when its lease is valid again either", async () => {
    const frozen = await freeze({ delayMs: 2 * LEASE_MS }, 0);
    await expect.poll(() => frozen.said().match(REFUSED)?.length, HANG).toBe(1);
    await stage.rest();
    expect(await stage.violations()).toEqual([]);
  });

  it("a frozen worker that does not check its claim is caught by the checker", async () => {
    const rewrite = [["select exists (select 1 from dbos.", "select true or exists (select 1 from dbos."]];
    await freeze({ rewrite }, 0);
    await expect.poll(() => stage.effects().filter(({ token }) => token.startsWith("t1-")).length, HANG).toBe(2);
    expect(await stage.violations()).toContainEqual(expect.stringMatching(/^I6 .* made effect t1-/));
  });
});
