/**
 * Sessions that any of several machines may run. This folder combines the store in Postgres, the engine and the runtime:
 * `openCluster` connects, `serveCluster` is a worker, and `submitWork` hands in a prompt.
 */

import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { dbosEngine } from "../../engine/dbos-engine.ts";
import type { Claim, Engine, Work } from "../../engine/engine.ts";
import { ClaimLost } from "../../engine/engine.ts";
import { Lease, type Queries } from "../../engine/lease.ts";
import { nodeDisk } from "../../lib/node/disk.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { snapshotRules } from "../../session/compaction/condense.ts";
import { type Database, openDatabase } from "../../store/postgres/database.ts";
import { postgresStore, type Worker } from "../../store/postgres/postgres.ts";
import { checkSchema, migrate } from "../../store/postgres/schema.ts";
import { checkSessionId } from "../../store/session-id.ts";
import { builtinTools } from "../../tools/builtin.ts";
import { createRuntime, type RuntimeOptions } from "../runtime.ts";
import type { SessionRequest } from "../session-request.ts";
import { version } from "../version.ts";
import { type ActivationParts, activate, endCalls } from "./activation.ts";
import { checkOut, pushChanges } from "./checkout.ts";
import { LeaseGuard } from "./lease-guard.ts";
import { addWork, findWork, noteEnd, type OnLoss, type WorkRequest, type WorkRow } from "./work.ts";

export interface ClusterOptions {
  readonly url: string;
  readonly pool?: string;
}

/** A connection that submits and watches work. */
export interface Cluster {
  readonly database: Database;
  readonly engine: Engine;
  close(): Promise<void>;
}

const DEFAULT_POOL = "default";
/** Work that was begun this often without an outcome is set aside: it may be what ends its workers. */
const MAX_STARTS = 10;

export async function openCluster({ url }: ClusterOptions): Promise<Cluster> {
  const database = await openDatabase({ url, connections: 2 });
  try {
    await checkSchema(database);
    const engine = await dbosEngine({ url, queries: database });
    return {
      database,
      engine,
      async close() {
        await engine.close();
        await database.close();
      },
    };
  } catch (error) {
    await database.close();
    throw error;
  }
}

/** Stores the work, then hands it to the engine. Repeating it with the same id is safe. */
export async function submitWork(
  { database, engine }: Cluster,
  what: {
    readonly id: string;
    readonly sessionId: string;
    readonly tenant?: string;
    readonly pool?: string;
    readonly onLoss: OnLoss;
    readonly request: WorkRequest;
  },
): Promise<void> {
  const { id, sessionId, tenant = "default", pool = DEFAULT_POOL, onLoss, request } = what;
  checkSessionId(sessionId);
  await addWork(database, { id, sessionId, tenant, pool, onLoss, request });
  await engine.submit({ id, sessionId, pool });
}

export interface WorkerOptions extends ClusterOptions {
  readonly runtime: Omit<RuntimeOptions, "store" | "tools">;
  readonly home: string;
  readonly concurrency: number;
  readonly leaseMs: number;
  /** Folders whose repositories may be named by path. */
  readonly localFolders: readonly string[];
  /** Returns the request for a session in this folder. */
  request(work: WorkRow, cwd: string): SessionRequest;
  /** Reports what happens, one line at a time. */
  report(line: string): void;
}

export interface ServingWorker {
  readonly id: string;
  /** False when other workers may take over its sessions. */
  readonly isAlive: () => boolean;
  readonly active: () => number;
  /** Takes no new work, waits for the sessions that run, and closes everything. */
  stop(timeoutMs: number): Promise<void>;
}

export async function serveCluster(options: WorkerOptions): Promise<ServingWorker> {
  const { url, pool = DEFAULT_POOL, concurrency, leaseMs } = options;
  const worker: Worker = { id: `${hostname()}-${process.pid}-${crypto.randomUUID().slice(0, 8)}`, ...here() };
  const database = await openDatabase({ url, connections: 6, name: `troupe worker ${worker.id}` });
  await migrate(database);
  const lease = new Lease({ queries: database, worker: { ...worker, pool, version, concurrency }, leaseMs });
  const claims = new Map<string, Claim>();
  const folder = join(options.home, "session-state");
  const store = postgresStore({
    ...{ database, folder, disk: nodeDisk, worker, snapshots: snapshotRules },
    claim: (sessionId) => claims.get(sessionId),
  });
  const guard = new LeaseGuard({ lease, queries: database, report: options.report });
  const tools = guard.guard(builtinTools);
  const runtime = createRuntime({ ...options.runtime, home: options.home, store, tools });
  // Not in the state folder, which tools may not reach.
  const places = { folder: `${resolve(options.home)}-work`, disk: nodeDisk, localFolders: options.localFolders };
  const run = async (work: Work, claim: Claim): Promise<void> => {
    const row = await findWork(database, work.id);
    if (!row) return options.report(`work ${work.id} has no row and is dropped`);
    claims.set(work.sessionId, claim);
    try {
      options.report(`${work.sessionId}: started${row.starts > 0 ? ` again (start ${row.starts + 1})` : ""}`);
      const parts: ActivationParts = {
        ...{ queries: database, runtime, store, worker: worker.id },
        prepare: async (wanted) => options.request(wanted, await checkOut(wanted, places)),
        finished: async (done) => void (await pushChanges(done, places)),
      };
      if (row.outcome === null && row.starts >= MAX_STARTS) return await giveUp(row, parts);
      const outcome = await guard.run(claim, () => activate(row, parts));
      options.report(`${work.sessionId}: ${outcome.kind}`);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      options.report(`${work.sessionId}: ${message}`);
      if (error instanceof TroupeError && error.kind === "interrupted") throw new ClaimLost(work);
      if (isWorthRepeating(error, row)) throw error;
      await noteEnd(database, work.id, { kind: "failed", message });
    } finally {
      claims.delete(work.sessionId);
    }
  };
  await lease.start();
  const engine = await dbosEngine({ url, queries: database, workerId: worker.id, pool, concurrency, leaseMs });
  const serving = await engine.serve(run);
  const sweeping = setInterval(() => void noteSetAside(database, engine).catch(() => undefined), 2 * leaseMs);
  return {
    id: worker.id,
    isAlive: () => lease.isValid,
    active: () => claims.size,
    async stop(timeoutMs) {
      clearInterval(sweeping);
      await lease.drain().catch(() => undefined);
      await serving.drain(timeoutMs);
      await engine.close();
      await runtime.close();
      await lease.stop().catch(() => undefined);
      await database.close();
    },
  };
}

const here = () => ({ host: hostname(), pid: process.pid });

/** Other failures would come again, and hold a place of the worker for ever. */
const isWorthRepeating = (error: unknown, { starts }: WorkRow): boolean =>
  (!(error instanceof TroupeError) || error.kind === "storage") && starts < MAX_STARTS;

/** Sets the work aside first: if it is the log that ends workers, this one is the last. */
async function giveUp(row: WorkRow, parts: ActivationParts): Promise<void> {
  await setAside(parts.queries, row);
  await endCalls(row, parts);
}

/** Stores the reason as the outcome, so that nobody waits for it. */
function setAside(database: Queries, { id, starts }: Pick<WorkRow, "id" | "starts">): Promise<void> {
  const message = `Set aside: ${starts} workers began this work, and none of them came to an end.`;
  return noteEnd(database, id, { kind: "failed", message });
}

/** Does the same for work that the engine gives to no worker any more. */
async function noteSetAside(database: Database, engine: Engine): Promise<void> {
  for (const { id, attempts } of await engine.list({ states: ["set_aside"] })) {
    await setAside(database, { id, starts: attempts });
  }
}
