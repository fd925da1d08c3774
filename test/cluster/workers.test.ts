/** Workers of the built program on a real Postgres server: work survives the loss of a worker and of the server. */

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
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
    mkdirSync(folder.at("repositories"));
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
    const child = spawn(
      process.execPath,
      [
        resolve("bin/troupe.js"),
        "worker",
        "--lease",
        String(LEASE_SECONDS),
        "--allow-all-tools",
        "--add-dir",
        folder.at("repositories"),
      ],
      {
        cwd: home,
        env: {
          PATH: process.env.PATH ?? "",
          HOME: home,
          TROUPE_HOME: home,
          TROUPE_NO_DISCOVERY: "1",
          ...environment(),
        },
        stdio: ["ignore", "ignore", "pipe"],
      },
    );
    onTestFinished(() => void child.kill("SIGKILL"));
    let said = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    await expect.poll(() => (child.exitCode === null ? said : `ended: ${said}`), HANG).toMatch(/takes work|^ended/);
    expect(said).toContain("takes work");
    return child;
  }

  const command = { name: "bash", arguments: { command: "sleep 1; echo acted", description: "act" } };
  async function submit(count: number): Promise<readonly string[]> {
    const model = script(folder.path, [{ calls: [command] }, { say: "all done" }]);
    const home = join(folder.path, "client");
    const args = ["submit", "-p", "Act.", "--model", model, "--json"];
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

  it("work on a repository, and push the changes to a ref of the session", async () => {
    const repository = folder.at("repositories/app");
    mkdirSync(repository, { recursive: true });
    const git = (...args: string[]) => execFileSync("git", args, { cwd: repository, encoding: "utf8" }).trim();
    git("init", "-q", "-b", "main");
    git("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "--allow-empty", "-m", "start");
    await startWorker("w5");
    const create = { name: "create", arguments: { path: "made.txt", file_text: "made\n" } };
    const model = script(folder.path, [{ calls: [create] }, { say: "made" }, { say: "seen" }]);
    const where = { cwd: folder.path, home: join(folder.path, "client"), environment: environment() };
    const made = await troupe(
      ["submit", "-p", "Make.", "--model", model, "--repo", repository, "--wait", "--json"],
      where,
    );
    const { sessionId, outcome } = JSON.parse(made.stdout) as { sessionId: string; outcome: object };
    expect(outcome).toEqual({ kind: "done", answer: "made" });
    expect(git("show", `refs/troupe/${sessionId}:made.txt`)).toBe("made");
  });

  it.each([
    ["--repo", "--upload-pack=touch /tmp/x", "cannot begin with a dash"],
    ["--repo", "https://user:secret@example.com/app.git", "contains credentials"],
    ["--repo", "/etc", "do not take the repository"],
    ["--repo", "ext::sh -c true", "do not take the repository"],
  ])("fail work with %s=%s at once", async (flag, value, reason) => {
    await startWorker("w6");
    const where = { cwd: folder.path, home: join(folder.path, "client"), environment: environment() };
    const model = script(folder.path, [{ say: "never" }]);
    const done = await troupe(["submit", "-p", "x", "--model", model, `${flag}=${value}`, "--wait", "--json"], where);
    expect(JSON.parse(done.stdout)).toMatchObject({
      outcome: { kind: "failed", message: expect.stringContaining(reason) },
    });
    expect(done.code).toBe(1);
  });

  it("take no rules from submitters", async () => {
    const where = { cwd: folder.path, home: join(folder.path, "client"), environment: environment() };
    for (const flag of ["--allow-all", "--plugin-dir=x", "--additional-mcp-config={}", "--trust-folder"]) {
      const { code, stderr } = await troupe(["submit", "-p", "x", flag], where);
      expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining("is decided by the workers") });
    }
    const { code } = await troupe(["submit", "-p", "x", "--session-id", "../x"], where);
    expect(code).toBe(2);
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
