/** Workers of the built program on a real Postgres server: work survives the loss of a worker and of the server. */

import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { type Database, openDatabase } from "../../src/store/postgres/database.ts";
import { type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";
import { type PostgresServer, postgresPrograms, startPostgres } from "../support/postgres.ts";
import { script, troupe } from "../support/troupe.ts";
import { violations } from "./invariants.ts";

const programs = postgresPrograms();
const LEASE_SECONDS = 2;
const HANG = { timeout: 100_000, interval: 100 };

if (programs === undefined) it.skip("workers survive losses (skipped: no Postgres here)");

describe.runIf(programs !== undefined)("workers", { timeout: 180_000 }, () => {
  let server: PostgresServer;
  let database: Database;
  let folder: TempFolder;

  beforeAll(async () => {
    server = await startPostgres(programs ?? "");
    database = await openDatabase({ url: server.url, connections: 2 });
    folder = await tempFolder();
  });
  afterAll(async () => {
    await database?.close();
    server?.remove();
    await folder?.remove();
  });

  const environment = () => ({ TROUPE_DATABASE_URL: server.url, TROUPE_SANDBOX: "off" });

  async function startWorker(name: string): Promise<ChildProcess> {
    const home = join(folder.path, name);
    mkdirSync(home, { recursive: true });
    const child = spawn(process.execPath, [resolve("bin/troupe.js"), "worker", "--lease", String(LEASE_SECONDS)], {
      cwd: home,
      env: { PATH: process.env.PATH ?? "", HOME: home, TROUPE_HOME: home, TROUPE_NO_DISCOVERY: "1", ...environment() },
      stdio: ["ignore", "ignore", "pipe"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    let said = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    await expect.poll(() => said, HANG).toContain("takes work");
    return child;
  }

  const command = { name: "bash", arguments: { command: "sleep 1; echo acted", description: "act" } };
  async function submit(count: number): Promise<readonly string[]> {
    const model = script(folder.path, [{ calls: [command] }, { say: "all done" }]);
    const home = join(folder.path, "client");
    const args = ["submit", "-p", "Act.", "--model", model, "--allow-all-tools", "--json"];
    const all = await Promise.all(
      Array.from({ length: count }, () => troupe(args, { cwd: folder.path, home, environment: environment() })),
    );
    return all.map(({ stdout }) => (JSON.parse(stdout) as { workId: string }).workId);
  }

  async function outcomes(ids: readonly string[]): Promise<readonly string[]> {
    const { rows } = await database.query<{ answer: string | null }>(
      "select outcome->>'answer' as answer from troupe.work where id = any($1)",
      [ids],
    );
    return rows.map(({ answer }) => answer ?? "");
  }

  const runningNow = async (): Promise<number> =>
    (await database.query("select 1 from troupe.session where holder is not null")).count;

  it("finish all work when one of them is killed, and repeat no answer", async () => {
    const lost = await startWorker("w1");
    const ids = await submit(4);
    await expect.poll(runningNow, HANG).toBeGreaterThan(0);
    await startWorker("w2");
    lost.kill("SIGKILL");
    await expect.poll(() => outcomes(ids), HANG).toEqual(ids.map(() => "all done"));
    expect(await violations(database)).toEqual([]);
    const { rows } = await database.query<{ most: number }>(
      "select max(starts)::int as most from troupe.work where id = any($1)",
      [ids],
    );
    expect(rows[0]?.most).toBeGreaterThan(1);
  });

  it("wait for a server that crashes, and lose nothing", async () => {
    await startWorker("w3");
    const ids = await submit(2);
    await expect.poll(runningNow, HANG).toBeGreaterThan(0);
    server.crash();
    await expect.poll(() => outcomes(ids).catch(() => []), HANG).toEqual(ids.map(() => "all done"));
    expect(await violations(database)).toEqual([]);
  });

  it("end cleanly on SIGTERM, and leave no lease behind", async () => {
    const worker = await startWorker("w4");
    const [id = ""] = await submit(1);
    await expect.poll(runningNow, HANG).toBeGreaterThan(0);
    const ended = new Promise((done) => worker.once("exit", done));
    worker.kill("SIGTERM");
    expect(await ended).toBe(0);
    expect(await outcomes([id])).toEqual(["all done"]);
    const { count } = await database.query("select 1 from troupe.worker where pid = $1", [worker.pid]);
    expect(count).toBe(0);
  });
});
