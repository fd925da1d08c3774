/** The server's disk is full: workers say so, lose nothing, and go on when there is space. */

import { spawnSync } from "node:child_process";
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { postgresPrograms } from "../support/postgres.ts";
import { ClusterStage, HANG, SLOW } from "./stage.ts";

const programs = postgresPrograms();
const isRoot = process.getuid?.() === 0;
const missing =
  programs === undefined ? "no Postgres here" : SLOW && !isRoot ? "needs root for a disk of its own" : undefined;
const DISK_MB = 256;
/** Calls that wait for the full disk. */
const HELD = `troupe.event where line like '%"type":"tool.execution_start"%.go%'`;

if (missing) it.skip(`a full disk of the server loses nothing (skipped: ${missing})`);

describe.runIf(!missing && SLOW)("a full disk of the server", { timeout: 600_000 }, () => {
  let stage: ClusterStage;
  let disk: string;
  afterEach(async () => {
    await stage?.close();
    spawnSync("umount", ["-l", disk]);
    rmSync(disk, { recursive: true, force: true });
  });

  const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
  const running = () => stage.count("troupe.session where holder is not null");
  const ballast = () => join(disk, "ballast");

  async function open(): Promise<void> {
    disk = mkdtempSync(join(tmpdir(), "troupe-disk-"));
    const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${DISK_MB}m`, "tmpfs", disk], { encoding: "utf8" });
    expect(mounted.stderr).toBe("");
    const folder = join(disk, "server");
    mkdirSync(folder);
    stage = await ClusterStage.open(programs ?? "", { lease: 2, postgres: { folder } });
  }
  function fill(): void {
    const file = openSync(ballast(), "w");
    const block = Buffer.alloc(64 * 1024);
    try {
      for (;;) writeSync(file, block);
    } catch (error) {
      expect(error).toMatchObject({ code: "ENOSPC" });
    } finally {
      closeSync(file);
    }
  }

  it.each([10, 75])(
    "a full disk of the database server stops writes for %i s, and then everything continues",
    async (seconds) => {
      await open();
      const workers = [await stage.worker("w1"), await stage.worker("w2")];
      // They go on when the disk is full: sessions that end sooner have nothing left to write.
      const ids = [
        ...(await stage.submit(3, { tokens: 4, kind: "held" })),
        ...(await stage.submit(1, { kind: "team", tokens: 3 })),
      ];
      await expect.poll(() => stage.count(HELD), HANG).toBe(3);
      fill();
      writeFileSync(`${stage.ledger}.go`, "");
      const said = () => workers.map((worker) => worker.said()).join("");
      await expect.poll(said, HANG).toContain("No space left on device");
      await pause(seconds * 1_000);
      rmSync(ballast());
      await stage.finish(ids);
      expect(said()).toMatch(/can be written again|lease is renewed again/);
      expect(await stage.violations()).toEqual([]);
    },
  );

  it("a full disk that ends the database server loses nothing", async () => {
    await open();
    await stage.worker("w1");
    await stage.worker("w2");
    const ids = await stage.submit(4, { tokens: 4 });
    await expect.poll(running, HANG).toBeGreaterThan(1);
    fill();
    // The next segment of the write-ahead log has no place.
    await stage.database.query("select pg_switch_wal()").catch(() => undefined);
    await expect.poll(() => stage.database.query("select 1").then(() => "up", String), HANG).not.toBe("up");
    await pause(5_000);
    rmSync(ballast());
    stage.server.crash();
    await stage.finish(ids);
    expect(await stage.violations()).toEqual([]);
  });
});
