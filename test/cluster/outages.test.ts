/** The server crashes or is unreachable, connections are cut, and sessions kill their workers: nothing is lost. Short versions are in `workers.test.ts`. */

import { writeFileSync } from "node:fs";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import { postgresPrograms } from "../support/postgres.ts";
import { cuttingProxy } from "./proxy.ts";
import { ClusterStage, HANG, SLOW } from "./stage.ts";

const programs = postgresPrograms();
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

if (programs === undefined) it.skip("outages lose nothing (skipped: no Postgres here)");

describe.runIf(programs !== undefined && SLOW)("outages", { timeout: 1_200_000 }, () => {
  let stage: ClusterStage;
  afterEach(() => stage?.close());

  const running = () => stage.count("troupe.session where holder is not null");
  const interrupted = () => stage.count(`troupe.event where line like '%"code":"interrupted"%'`);

  it.each([
    ["a crash", 0, 15],
    ["6 s", 6_000, 15],
    ["60 s", 60_000, 15],
    ["6 s and a short lease", 6_000, 1],
  ])("an outage of the database server (%s) loses nothing", async (_, ms, lease) => {
    stage = await ClusterStage.open(programs ?? "");
    await stage.worker("w1", { lease });
    await stage.worker("w2", { lease });
    const ids = [...(await stage.submit(4, { tokens: 4 })), ...(await stage.submit(2, { kind: "team", tokens: 3 }))];
    await expect.poll(running, HANG).toBeGreaterThan(3);
    stage.server.stop("immediate");
    await pause(ms);
    stage.server.start();
    await stage.finish(ids);
    expect(await stage.violations()).toEqual([]);
    // Shorter than a lease, an outage is not seen at all.
    if (ms < lease * 1_000) expect(await interrupted()).toBe(0);
  });

  it("connections cut after a commit neither lose nor double a line", async () => {
    stage = await ClusterStage.open(programs ?? "");
    const proxy = await cuttingProxy(stage.server.url, { text: "insert into troupe.event", every: 3 });
    onTestFinished(() => proxy.close());
    await stage.worker("w1", { url: proxy.url, lease: 5 });
    const ids = await stage.submit(4);
    await stage.finish(ids);
    expect(proxy.cuts()).toBeGreaterThan(3);
    expect(await interrupted()).toBe(0);
    expect(await stage.violations()).toEqual([]);
  });

  it("a session that kills its workers ends with a reason, and others continue", async () => {
    stage = await ClusterStage.open(programs ?? "");
    const start = async (round: number) => {
      const worker = await stage.worker(`w${round}`, { concurrency: 2 });
      writeFileSync(stage.folder.at(`w${round}.pid`), String(worker.child.pid));
      return worker;
    };
    const first = await start(0);
    const [poison = ""] = await stage.submit(1, { kind: "poison" });
    const others = await stage.submit(2);
    let losses = 0;
    for (let worker = first; losses < 30; worker = await start(losses)) {
      const done = expect.poll(() => stage.outcomes([poison]), HANG).not.toEqual([""]);
      if ((await Promise.race([worker.ended, done.then(() => "done")])) === "done") break;
      losses++;
    }
    const record = await stage.record();
    expect(record.work?.find(({ session }) => session === poison)?.outcome).toEqual({
      kind: "failed",
      message: expect.stringContaining("Suspended: 5 workers in a row"),
    });
    expect(losses).toBe(5);
    await stage.finish(others);
    expect(await stage.violations()).toEqual([]);
  });
});
