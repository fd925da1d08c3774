/** Worker processes share provider limits and budgets: the provider's own counter decides. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { postgresPrograms } from "../support/postgres.ts";
import { type CountingProvider, countingProvider } from "./counting-provider.ts";
import { ClusterStage, HANG, SLOW } from "./stage.ts";

const programs = postgresPrograms();
const COUNTED = ["--model", "counted/m"];

if (programs === undefined) it.skip("workers share limits and budgets (skipped: no Postgres here)");

describe.runIf(programs !== undefined)("limits of all workers", () => {
  let stage: ClusterStage;
  let provider: CountingProvider;
  beforeAll(async () => {
    provider = await countingProvider();
    stage = await ClusterStage.open(programs ?? "", { lease: 15, providers: provider.settings });
  });
  beforeEach(() => provider.reset());
  afterEach(() => stage.clear());
  afterAll(async () => {
    await stage?.close();
    provider.close();
  });

  // The short version is in test/engine/shared-limits.test.ts.
  it.runIf(SLOW)(
    "cluster limits apply to rate and concurrency at the provider, and a rate limit stops all workers",
    async () => {
      const [requests, windowMs] = [4, 3_000];
      await stage.run(["cluster", "limit", "set", "counted/m", "--requests-per-minute", "4", "--concurrency", "2"]);
      await stage.database.query("update troupe.rate_limit set window_ms = $1 where name = 'counted/m'", [windowMs]);
      await Promise.all(["w1", "w2"].map((name) => stage.worker(name)));
      let [refusals, refusedAt] = [0, Number.POSITIVE_INFINITY];
      provider.answer = (index) => {
        if (index === 1) refusedAt = performance.now();
        const isRefused = index === 1 || (performance.now() > refusedAt && performance.now() < refusedAt + 700);
        if (isRefused) refusals++;
        return isRefused ? { status: 429, delayMs: 0 } : { delayMs: 200 };
      };
      const ids = await stage.submitPrompts(9, COUNTED);
      await expect
        .poll(async () => (await stage.workOutcomes(ids)).map((outcome) => outcome?.answer), HANG)
        .toEqual(ids.map(() => "all done"));
      const { arrivals, most } = provider;
      expect({ sent: arrivals.length, most: most <= 2 }).toEqual({ sent: 9 + refusals, most: true });
      expect(provider.busiest(windowMs)).toBeLessThanOrEqual(requests);
      // Beside the first refused request, at most the one that was under way.
      expect(refusals).toBeLessThanOrEqual(2);
      const { rows } = await stage.database.query<{ workers: number }>(
        "select count(distinct worker)::int as workers from troupe.rate_block where name = 'counted/m'",
      );
      expect(rows).toEqual([{ workers: 2 }]);
      await stage.run(["cluster", "limit", "remove", "counted/m"]);
    },
  );

  it("cluster limits end the work of a tenant without budget with an error that names the limit", async () => {
    // A second run of this test must not find the budgets of the first.
    const [acme, other] = ["acme", "other"].map((name) => `${name}-${crypto.randomUUID().slice(0, 8)}`);
    await stage.run(["cluster", "budget", "set", `${acme}`, "--max-cost", "0.0015", "--per", "month"]);
    await Promise.all(["b1", "b2"].map((name) => stage.worker(name)));
    const ids = await stage.submitPrompts(6, [...COUNTED, "--tenant", `${acme}`]);
    const others = await stage.submitPrompts(1, [...COUNTED, "--tenant", `${other}`]);
    await expect.poll(async () => (await stage.workOutcomes([...ids, ...others])).includes(null), HANG).toBe(false);
    const messages = (await stage.workOutcomes(ids)).map((outcome) => outcome?.answer ?? outcome?.message);
    // A call costs $0.001: the second begins while something is left, the third does not.
    const refusal = `The budget of tenant ${acme} for this month is used up: $0.0020 of $0.0015.`;
    expect(messages.sort()).toEqual(["all done", "all done", ...Array(4).fill(refusal)].sort());
    expect(await stage.workOutcomes(others)).toMatchObject([{ kind: "done" }]);
    // A worker counts the call a moment after the answer.
    const budgets = async (): Promise<Record<string, unknown>[]> =>
      (JSON.parse((await stage.run(["cluster", "budget", "--json"])).stdout) as { budgets: [] }).budgets;
    const spent = async () => (await budgets()).filter(({ tenant }) => tenant === acme || tenant === other);
    const limit = { costUsd: 0.0015, period: "month" };
    await expect.poll(spent, HANG).toMatchObject([
      { tenant: acme, ...limit, spentUsd: 0.002, spentTokens: 2_000, heldUsd: 0 },
      { tenant: other, costUsd: null, period: "total", spentUsd: 0.001, spentTokens: 1_000, heldUsd: 0 },
    ]);
  });
});
