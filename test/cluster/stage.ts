/** A cluster for faults: a private Postgres server, workers of the built program, a model, a ledger and a follower. */

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect } from "vitest";
import type { ModelRequest } from "../../src/model/provider.ts";
import { type Cluster, openCluster, submitWork } from "../../src/runtime/cluster/cluster.ts";
import type { OnLoss } from "../../src/runtime/cluster/work.ts";
import { type Database, openDatabase } from "../../src/store/postgres/database.ts";
import { migrate, migrations } from "../../src/store/postgres/schema.ts";
import type { HttpPlay } from "../../src/testing/index.ts";
import { type ModelServer, modelServer } from "../../src/testing/model-server.ts";
import { type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";
import { type PostgresServer, type PostgresSetup, startPostgres } from "../support/postgres.ts";
import { type Finished, troupe } from "../support/troupe.ts";
import { type ClusterRecord, check } from "./checker.ts";
import { effectsIn, Follower, installAudit, readRecord } from "./record.ts";
import { nextReply, promptOf } from "./stage-model.ts";

/** Long versions of the scenarios. */
export const SLOW = process.env.TROUPE_SLOW !== undefined;

/** For waits that end early unless something hangs. */
export const HANG = { timeout: 150_000, interval: 50 };

export interface WorkerSetup {
  /** Seconds (default: the stage's). */
  readonly lease?: number;
  readonly concurrency?: number;
  readonly pool?: string;
  /** A fault for `seam.cjs`. */
  readonly seam?: object;
  /** The address of the database (default: the server's). */
  readonly url?: string;
  /** The address of the model (default: the stage's). */
  readonly model?: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** A command in front of Node.js, for example `ip netns exec`. */
  readonly before?: readonly string[];
  readonly program?: string;
  /** Rules and other flags (default: all tools are allowed). */
  readonly flags?: readonly string[];
  /** Name of the state folder (default: the worker's own). */
  readonly home?: string;
}

interface Outcome {
  readonly kind: string;
  readonly answer?: string;
  readonly message?: string;
}

interface StageSetup {
  /** Lease of all workers, in seconds (default: 1). */
  readonly lease?: number;
  /** Model providers of all workers beside the stage's model. */
  readonly providers?: object;
  readonly postgres?: PostgresSetup;
  /** Number of migrations that are applied at the start (default: all). */
  readonly schema?: number;
}

export interface StagedWorker {
  readonly id: string;
  readonly child: ChildProcess;
  said(): string;
  readonly ended: Promise<number | string | null>;
}

export class ClusterStage {
  readonly server: PostgresServer;
  readonly database: Database;
  readonly ledger: string;
  readonly folder: TempFolder;
  readonly model: ModelServer;
  readonly workerIds = new Map<string, string>();
  #cluster: Promise<Cluster> | undefined;
  readonly #follower: Follower;
  readonly #workers: StagedWorker[] = [];
  readonly #submitted: string[] = [];
  readonly #plays: Map<string, readonly HttpPlay[]>;
  readonly #setup: StageSetup;

  static async open(programs: string, setup: StageSetup = {}): Promise<ClusterStage> {
    const server = await startPostgres(programs, setup.postgres);
    const database = await openDatabase({ url: server.url, connections: 3 });
    await migrate(database, migrations.slice(0, setup.schema));
    await installAudit(database);
    const folder = await tempFolder();
    const ledger = folder.at("ledger");
    const plays = new Map<string, readonly HttpPlay[]>();
    const handler = ({ request }: { request: ModelRequest | undefined }) => nextReply(request, { plays, ledger });
    const model = await modelServer({ handler, keepRequests: 100 });
    mkdirSync(folder.at("repositories"));
    return new ClusterStage({ server, database, folder, ledger, model, plays, setup });
  }

  private constructor(parts: {
    server: PostgresServer;
    database: Database;
    folder: TempFolder;
    ledger: string;
    model: ModelServer;
    plays: Map<string, readonly HttpPlay[]>;
    setup: StageSetup;
  }) {
    ({ server: this.server, database: this.database, folder: this.folder } = parts);
    ({ ledger: this.ledger, model: this.model } = parts);
    this.#plays = parts.plays;
    this.#setup = parts.setup;
    this.#follower = new Follower(parts.database);
  }

  get url(): string {
    return this.server.url;
  }

  /** Folder whose repositories may be named by path. */
  get repositories(): string {
    return this.folder.at("repositories");
  }

  /**
   * Sets the replies of the model to a prompt that contains this word. The number of replies in the conversation decides
   * which one is next, so a session that moves goes on where it was.
   */
  play(word: string, ...steps: readonly HttpPlay[]): void {
    this.#plays.set(word, steps);
  }

  /** Runs a command of the built program against the database. */
  run(args: readonly string[], more: Readonly<Record<string, string>> = {}, program?: string): Promise<Finished> {
    const environment = { ...this.environment(), ...more };
    const home = join(this.folder.path, "client");
    return troupe(args, { cwd: this.folder.path, home, environment, ...(program && { program }) });
  }

  environment(): Record<string, string> {
    return {
      ...{ TROUPE_DATABASE_URL: this.url, TROUPE_SANDBOX: "off" },
      ...{ TROUPE_BASE_URL: this.model.baseUrl, TROUPE_API_KEY: "none", TROUPE_MODEL: "faux-model" },
    };
  }

  /** Resolves when the worker takes work. */
  async worker(name: string, setup: WorkerSetup = {}): Promise<StagedWorker> {
    const worker = this.spawnWorker(name, setup);
    await expect
      .poll(() => worker.said() + (worker.child.exitCode ?? worker.child.signalCode ?? ""), HANG)
      .toMatch(/takes jobs|\d$|SIG/);
    const [, id = ""] = /worker (\S+) takes jobs/.exec(worker.said()) ?? [];
    expect(id, worker.said()).not.toBe("");
    this.workerIds.set(name, id);
    return Object.assign(worker, { id });
  }

  /** Starts a worker without waiting for it. */
  spawnWorker(name: string, setup: WorkerSetup = {}): StagedWorker {
    const home = join(this.folder.path, setup.home ?? name);
    mkdirSync(home, { recursive: true });
    const { providers } = this.#setup;
    if (providers) writeFileSync(join(home, "providers.json"), JSON.stringify({ providers }));
    const node = [process.execPath, ...(setup.seam ? ["--require", resolve("test/cluster/seam.cjs")] : [])];
    const lease = setup.lease ?? this.#setup.lease ?? 3;
    const [command = "", ...args] = [
      ...(setup.before ?? []),
      ...[...node, setup.program ?? resolve("bin/troupe.js"), "worker", "--lease", String(lease)],
      ...["--concurrency", String(setup.concurrency ?? 8), "--add-dir", this.repositories],
      ...(setup.pool === undefined ? [] : ["--pool", setup.pool]),
      ...(setup.flags ?? ["--allow-all-tools", "--allow-all-paths"]),
    ];
    const child = spawn(command, args, {
      cwd: home,
      env: {
        ...{ PATH: process.env.PATH ?? "", HOME: home, TROUPE_HOME: home, TROUPE_NO_DISCOVERY: "1" },
        ...this.environment(),
        ...(setup.url !== undefined && { TROUPE_DATABASE_URL: setup.url }),
        ...(setup.model !== undefined && { TROUPE_BASE_URL: setup.model }),
        ...(setup.seam && { SEAM: JSON.stringify(setup.seam) }),
        ...setup.environment,
      },
      stdio: ["ignore", "ignore", "pipe"],
    });
    let said = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      const [, id] = /worker (\S+) takes jobs/.exec(said) ?? [];
      if (id !== undefined) this.workerIds.set(name, id);
    });
    const ended = new Promise<number | string | null>((done) =>
      child.once("exit", (code, signal) => done(code ?? signal)),
    );
    const worker = { id: "", child, said: () => said, ended };
    this.#workers.push(worker);
    return worker;
  }

  /** Submits sessions that cause one effect for each token. `team`: by an agent for each. Returns the session ids. */
  async submit(
    count: number,
    given: {
      readonly tokens?: number;
      readonly kind?: string;
      readonly onLoss?: OnLoss;
      readonly pool?: string;
      readonly tenant?: string;
      readonly flags?: readonly string[];
    } = {},
  ): Promise<readonly string[]> {
    this.#cluster ??= openCluster({ url: this.url });
    const cluster = await this.#cluster;
    const ids = Array.from({ length: count }, () => crypto.randomUUID());
    for (const sessionId of ids) {
      const { tokens = 2, kind = "act", onLoss = "continue", pool = "default", tenant, flags = [] } = given;
      const names = Array.from({ length: tokens }, (_, index) => `t${index}-${sessionId.slice(0, 8)}`);
      const request = { prompt: promptOf(kind, names), flags };
      const work = {
        id: `work-${sessionId}`,
        sessionId,
        onLoss,
        pool,
        request,
        ...(tenant !== undefined && { tenant }),
      };
      // The server may be away.
      await expect.poll(() => submitWork(cluster, work).then(() => "", String), HANG).toBe("");
    }
    this.#submitted.push(...ids);
    return ids;
  }

  /** Runs `troupe submit` for each prompt. Returns the ids of the work. */
  async submitPrompts(count: number, flags: readonly string[] = []): Promise<readonly string[]> {
    const args = ["submit", "-p", "Say something.", "--json", ...flags];
    const all = await Promise.all(Array.from({ length: count }, () => this.run(args)));
    return all.map(({ stdout, stderr }) => {
      if (stdout === "") throw new Error(stderr);
      return (JSON.parse(stdout) as { workId: string }).workId;
    });
  }

  async workOutcomes(ids: readonly string[]): Promise<readonly (Outcome | null)[]> {
    const { rows } = await this.database.query<{ id: string; outcome: Outcome | null }>(
      "select id, outcome from troupe.work where id = any($1)",
      [ids],
    );
    return ids.map((id) => rows.find((row) => row.id === id)?.outcome ?? null);
  }

  async outcomes(ids: readonly string[]): Promise<readonly string[]> {
    const { rows } = await this.database.query<{ text: string }>(
      `select coalesce(outcome->>'answer', outcome->>'message', outcome->>'kind', '') as text from troupe.work where session_id = any($1)`,
      [ids],
    );
    return rows.map(({ text }) => text);
  }

  /** Resolves when all these sessions have answered and the engine knows it. */
  async finish(ids: readonly string[]): Promise<void> {
    await expect.poll(() => this.outcomes(ids).catch(() => []), HANG).toEqual(ids.map(() => "all done"));
    await this.rest();
  }

  /** Resolves when the engine has nothing left to do. */
  async rest(): Promise<void> {
    const open = "select 1 from dbos.workflow_status where status in ('PENDING', 'ENQUEUED')";
    await expect.poll(async () => (await this.database.query(open)).count, HANG).toBe(0);
  }

  effects = () => effectsIn(this.ledger, this.workerIds);

  async record(): Promise<ClusterRecord> {
    const { database: queries, ledger, workerIds } = this;
    return readRecord({ queries, ledger, workerIds });
  }

  /** Returns the violations so far, the follower's included. Nothing may be running. */
  async violations(): Promise<readonly string[]> {
    const record = await this.record();
    const followed = await this.#follower.catchUp();
    const ids = new Set(this.#submitted);
    return check({ ...record, work: (record.work ?? []).filter(({ session }) => ids.has(session)), followed });
  }

  async count(sql: string): Promise<number> {
    const { rows } = await this.database.query<{ count: number }>(`select count(*)::int as count from ${sql}`);
    return rows[0]?.count ?? 0;
  }

  /** Number of times that a worker took one of these sessions from another one. */
  async takeOvers(ids: readonly string[] = this.#submitted): Promise<number> {
    const takes = (await this.record()).takes?.filter(({ session }) => ids.includes(session)) ?? [];
    return takes.filter(({ session, epoch, holder }) =>
      takes.some((other) => other.session === session && other.epoch < epoch && other.holder !== holder),
    ).length;
  }

  /** Kills the workers. */
  async clear(): Promise<void> {
    for (const { child } of this.#workers) child.kill("SIGKILL");
    await Promise.all(this.#workers.splice(0).map(({ ended }) => ended));
  }

  async close(): Promise<void> {
    await this.#follower.stop().catch(() => undefined);
    await this.clear();
    await this.#cluster?.then((cluster) => cluster.close()).catch(() => undefined);
    await this.database.close().catch(() => undefined);
    this.server.remove();
    await this.model.close();
    await this.folder.remove();
  }
}

/**
 * Stops a worker between the stored start of a call and its effect, lets another one finish the session, and wakes it
 * after that. `seam` is a fault for `seam.cjs` after the waking.
 */
export async function freezeWorker(
  stage: ClusterStage,
  { seam = {}, atLeastMs = 0, pool = "default" }: { seam?: object; atLeastMs?: number; pool?: string } = {},
): Promise<StagedWorker> {
  const once = stage.folder.at(`once-${pool}`);
  const stopping = { stopAtCall: "t1-", once, deafMs: 2_000, ...seam };
  const frozen = await stage.worker(`frozen-${pool}`, { seam: stopping, pool });
  const ids = await stage.submit(1, { tokens: 3, pool });
  await expect.poll(() => isStopped(frozen.child.pid), HANG).toBe(true);
  const since = performance.now();
  await stage.worker(`other-${pool}`, { pool });
  await stage.finish(ids);
  const leftMs = atLeastMs - (performance.now() - since);
  if (leftMs > 0) await new Promise((resolve) => setTimeout(resolve, leftMs));
  frozen.child.kill("SIGCONT");
  return frozen;
}

/** Whether a process is stopped by a signal. */
export const isStopped = (pid: number | undefined): boolean => {
  const file = `/proc/${pid}/stat`;
  return existsSync(file) && / T \d/.test(readFileSync(file, "utf8").replace(/\(.*\)/, ""));
};
