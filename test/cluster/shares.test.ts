/** Tenants share places evenly, and workers share a provider's rate, also when workers are killed and frozen. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { postgresPrograms } from "../support/postgres.ts";
import { check } from "./checker.ts";
import { type CountingProvider, countingProvider } from "./counting-provider.ts";
import { ClusterStage, HANG, SLOW } from "./stage.ts";

const programs = postgresPrograms();
const WORKERS = ["w1", "w2", "w3", "w4"];
/** The model takes so long that waiting for a place decides, and not the processor. */
const REPLY_MS = 1_000;
const QUIET = Array.from({ length: 9 }, (_, index) => `quiet${index + 1}`);
const NOISY_SESSIONS = 300;
const SESSIONS = 200;
const FLAGS = ["--model", "counted/m"];

if (programs === undefined) it.skip("tenants and workers share limits (skipped: no Postgres here)");

describe.runIf(programs !== undefined && SLOW)("shares", { timeout: 900_000 }, () => {
  let stage: ClusterStage;
  let provider: CountingProvider;
  beforeEach(async () => {
    provider = await countingProvider();
    stage = await ClusterStage.open(programs ?? "", { lease: 2, providers: provider.settings });
  });
  afterEach(async () => {
    await stage.close();
    provider.close();
  });

  const quiet = async (each: number): Promise<readonly string[]> =>
    (await Promise.all(QUIET.map((tenant) => stage.submit(each, { tenant, tokens: 0, flags: FLAGS })))).flat();

  async function waitsOf(ids: readonly string[]): Promise<{ p50: number; p99: number }> {
    const { rows } = await stage.database.query<{ ms: number }>(
      `select (extract(epoch from started_at - created_at) * 1000)::float8 as ms from troupe.work
       where session_id = any($1) order by ms`,
      [ids],
    );
    const at = (share: number): number => Math.round(rows[Math.ceil(rows.length * share) - 1]?.ms ?? 0);
    return { p50: at(0.5), p99: at(0.99) };
  }

  it("quiet tenants wait at most twice as long for slots beside a noisy one as without it", async () => {
    provider.answer = () => ({ delayMs: REPLY_MS });
    await Promise.all(WORKERS.map((name) => stage.worker(name, { concurrency: 4, lease: 10 })));
    const finish = async (ids: readonly string[]) => {
      await stage.finish(ids);
      return waitsOf(ids);
    };
    await finish(await quiet(1)); // What is compiled on first use.
    const alone = { burst: await finish(await quiet(6)), single: await finish(await quiet(1)) };
    const noisy = await stage.submit(NOISY_SESSIONS, { tenant: "noisy", tokens: 0, flags: FLAGS });
    const open = () => stage.count("troupe.work where tenant = 'noisy' and outcome is null");
    const beside = { burst: await finishQuiet(await quiet(6)), single: await finishQuiet(await quiet(1)) };
    expect(await open()).toBeGreaterThan(WORKERS.length * 4);
    const line = (name: "burst" | "single") =>
      `${name}: p50 ${alone[name].p50} → ${beside[name].p50} ms, p99 ${alone[name].p99} → ${beside[name].p99} ms`;
    console.log(`quiet tenants, alone → beside a noisy one: ${line("burst")}; ${line("single")}`);
    expect(beside.burst.p99).toBeLessThanOrEqual(2 * alone.burst.p99);
    expect(beside.single.p99).toBeLessThanOrEqual(2 * alone.single.p99);
    await stage.finish(noisy);
    expect(await stage.violations()).toEqual([]);

    /** The noisy tenant's work goes on. */
    async function finishQuiet(ids: readonly string[]) {
      await expect.poll(() => stage.outcomes(ids), HANG).toEqual(ids.map(() => "all done"));
      return waitsOf(ids);
    }
  });

  it("the counter of a provider's rate never exceeds the limit", async () => {
    const [limit, windowMs] = [20, 3_000];
    await stage.run(["cluster", "limit", "set", "counted/m", "--requests-per-minute", String(limit)]);
    await stage.database.query("update troupe.rate_limit set window_ms = $1 where name = 'counted/m'", [windowMs]);
    const workers = await Promise.all(WORKERS.map((name) => stage.worker(name)));
    const ids = await stage.submit(SESSIONS, { tokens: 0, flags: FLAGS });
    const [killed, frozen] = workers;
    await expect.poll(() => provider.arrivals.length, HANG).toBeGreaterThan(limit);
    killed?.child.kill("SIGKILL");
    await expect.poll(() => provider.arrivals.length, HANG).toBeGreaterThan(2 * limit);
    frozen?.child.kill("SIGSTOP");
    await expect.poll(() => provider.arrivals.length, HANG).toBeGreaterThan(4 * limit);
    frozen?.child.kill("SIGCONT");
    await expect.poll(() => provider.arrivals.length, HANG).toBeGreaterThan(SESSIONS - 2 * limit);
    const [first = 0, last = 0] = [provider.arrivals[0], provider.arrivals.at(-1)];
    const used = (provider.arrivals.length - 1) / ((last - first) / windowMs) / limit;
    console.log(
      `${provider.arrivals.length} requests, at most ${provider.busiest(windowMs)} of ${limit} in any window, ` +
        `${Math.round(used * 100)} % of the rate used`,
    );
    const providers = [{ id: "counted", limit, windowMs, requestsAtMs: provider.arrivals }];
    expect(check({ lines: [], providers })).toEqual([]);
    await stage.finish(ids);
    expect(await stage.violations()).toEqual([]);
  });
});
