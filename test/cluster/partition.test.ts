/** A worker whose packets vanish is replaced, has no effect after its lease, and comes back when the network does. */

import { afterEach, describe, expect, it } from "vitest";
import { postgresPrograms } from "../support/postgres.ts";
import { type CutOff, cutOff, missingForCutOff } from "./cut-off.ts";
import { ClusterStage, HANG, SLOW } from "./stage.ts";

const programs = postgresPrograms();
const missing = programs === undefined ? "no Postgres here" : SLOW ? missingForCutOff() : undefined;
const LEASE_SECONDS = 4;
const TAKE_OVER_MS = LEASE_SECONDS * 1_000 + 3_000;
/** The server ends connections and transactions of clients that do not answer at most this much later. */
const SERVER_MS = 35_000;

if (missing) it.skip(`cut off workers are replaced (skipped: ${missing})`);

describe.runIf(!missing && SLOW)("a worker that is cut off", { timeout: 600_000 }, () => {
  let stage: ClusterStage;
  let network: CutOff;
  afterEach(async () => {
    network?.heal();
    await stage?.close();
    network?.remove();
  });

  async function open() {
    network = cutOff();
    stage = await ClusterStage.open(programs ?? "", { lease: LEASE_SECONDS, postgres: { address: network.address } });
    const url = stage.url.replace("127.0.0.1", network.address);
    const model = stage.model.baseUrl.replace(
      `127.0.0.1:${stage.model.port}`,
      `${network.address}:${await network.forward(stage.model.port)}`,
    );
    const lost = await stage.worker("lost", { before: network.before, url, model });
    // Begins when the lost one has work.
    const ids = [...(await stage.submit(4, { tokens: 6 })), ...(await stage.submit(1, { kind: "team", tokens: 3 }))];
    await expect.poll(() => held(lost.id), HANG).toBeGreaterThan(2);
    await stage.worker("other");
    return { lost, ids, port: Number(new URL(url).port) };
  }
  const held = (worker: string) => stage.count(`troupe.session where holder = '${worker}'`);
  const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
  const connections = () => stage.count(`pg_stat_activity where client_addr = '${network.peer}'`);
  const since = async <T>(work: Promise<T>): Promise<number> => {
    const from = performance.now();
    await work;
    return Math.round(performance.now() - from);
  };

  it("a worker that is cut off for less than its lease keeps its sessions", async () => {
    const { ids } = await open();
    network.cut();
    await pause(1_500);
    network.heal();
    await stage.finish(ids);
    expect(await stage.takeOvers(ids)).toBe(0);
    expect(await stage.violations()).toEqual([]);
  });

  it.each(["everything", "the database"])(
    "a worker that is cut off from %s is replaced in time, and comes back",
    async (what) => {
      const { lost, ids, port } = await open();
      const cutAt = Date.now();
      network.cut(what === "everything" ? undefined : port);
      await stage.finish(ids);
      const takes = (await stage.record()).takes ?? [];
      const late = takes
        .filter(({ atMs, holder }) => atMs > cutAt && holder !== lost.id)
        .map(({ atMs }) => atMs - cutAt);
      expect(late.length).toBeGreaterThan(0);
      expect(Math.max(...late)).toBeLessThanOrEqual(TAKE_OVER_MS);
      expect(await stage.violations()).toEqual([]);
      const left = SERVER_MS - (Date.now() - cutAt);
      const closedMs = await since(expect.poll(connections, { timeout: Math.max(left, 1), interval: 200 }).toBe(0));
      network.heal();
      const renewed = `troupe.worker where id = '${lost.id}' and expires_at > clock_timestamp()`;
      const backMs = await since(expect.poll(() => stage.count(renewed), HANG).toBe(1));
      const [more = ""] = await stage.submit(1, { pool: "default", tokens: 1 });
      await stage.finish([more]);
      console.log(
        `cut off from ${what}: taken over after ${late.map(Math.round).join(", ")} ms, connections closed after ` +
          `${Date.now() - cutAt - backMs} ms (+${closedMs}), lease valid ${backMs} ms after the network was back`,
      );
      expect(await stage.violations()).toEqual([]);
    },
  );
});
