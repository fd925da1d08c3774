/**
 * Sessions that any of several machines may run. This folder combines the store in Postgres, the engine and the runtime:
 * `openCluster` connects, `serveCluster` is a worker, and `submitWork` hands in a prompt.
 */

import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { dbosEngine } from "../../engine/dbos-engine.ts";
import type { Claim, Engine, Work } from "../../engine/engine.ts";
import { ClaimLost } from "../../engine/engine.ts";
import { Lease } from "../../engine/lease.ts";
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
import { type ActivationParts, activate, endCalls, endWork } from "./activation.ts";
import { checkOut, pushChanges } from "./checkout.ts";
import { LeaseGuard } from "./lease-guard.ts";
import { addAnswer } from "./requests.ts";
import { addWork, answeredWork, findWork, noteAbort, type OnLoss, type WorkRequest, type WorkRow } from "./work.ts";

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
const PARK_MS = 5_000;

export async function openCluster({
  url,
  connections = 2,
}: ClusterOptions & { readonly connections?: number }): Promise<Cluster> {
  const database = await openDatabase({ url, connections });
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

/** The engine's id of a further activation of the same work. */
const SEPARATOR = "~";

/** Hands another activation of this work to the engine. Repeating it for the same reason is safe. */
async function submitAgain(engine: Engine, work: WorkRow, reason: string): Promise<void> {
  const { id, sessionId, pool } = work;
  await engine.submit({ id: `${id}${SEPARATOR}${reason}`, sessionId, pool });
}

/** Answers a request of a session, wherever it runs. Returns false unless this is the first answer to an open request. */
export async function answerRequest(
  { database, engine }: Cluster,
  given: Parameters<typeof addAnswer>[1],
): Promise<boolean> {
  const workId = await addAnswer(database, given);
  if (workId === undefined) return false;
  const work = await findWork(database, workId);
  // If this process ends here, a worker finds the answer and submits the activation.
  if (work?.waitingAt != null) await submitAgain(engine, work, given.requestId);
  return true;
}

/** Submits activations for answers whose sender was lost before it could do so. */
async function resumeAnswered({ database, engine }: Pick<Cluster, "database" | "engine">): Promise<void> {
  for (const work of await answeredWork(database)) await submitAgain(engine, work, work.requestId);
}

/** Ends work, whether it runs, waits or is queued. Returns false if it has ended already. */
export async function abortWork({ database, engine }: Cluster, workId: string): Promise<boolean> {
  const work = await noteAbort(database, workId);
  if (work?.waitingAt != null) await submitAgain(engine, work, "abort");
  return work !== undefined;
}

export interface WorkerOptions extends ClusterOptions {
  readonly runtime: Omit<RuntimeOptions, "store" | "tools">;
  readonly home: string;
  readonly concurrency: number;
  readonly leaseMs: number;
  /** Time without an answer after which a session that waits for a person is parked (default: 5 s). */
  readonly parkMs?: number;
  /** True: people may allow calls that no rule decides. */
  readonly asks: boolean;
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
  const submit: Submit = (other, reason) => submitAgain(engine, other, reason);
  const parts = activationParts(options, { database, runtime, store, worker: worker.id, submit });
  const run = async (work: Work, claim: Claim): Promise<void> => {
    const row = await findWork(database, workIdOf(work.id));
    if (!row) return options.report(`work ${work.id} has no row and is dropped`);
    claims.set(work.sessionId, claim);
    try {
      options.report(`${work.sessionId}: started${row.starts > 0 ? ` again (start ${row.starts + 1})` : ""}`);
      if (row.outcome === null && row.starts >= MAX_STARTS) return await giveUp(row, parts);
      const outcome = await guard.run(claim, () => activate(row, parts));
      options.report(`${work.sessionId}: ${outcome === "waiting" ? "waits for an answer" : outcome.kind}`);
    } catch (error) {
      options.report(`${work.sessionId}: ${messageOf(error)}`);
      if (error instanceof TroupeError && error.kind === "interrupted") throw new ClaimLost(work);
      if (isWorthRepeating(error, row)) throw error;
      await endWork(row, { kind: "failed", message: messageOf(error) }, { database, submit });
    } finally {
      claims.delete(work.sessionId);
    }
  };
  await lease.start();
  const engine = await dbosEngine({ url, queries: database, workerId: worker.id, pool, concurrency, leaseMs });
  const serving = await engine.serve(run);
  const sweeping = setInterval(() => void sweep({ database, engine }).catch(() => undefined), leaseMs);
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

function activationParts(
  options: WorkerOptions,
  own: Pick<ActivationParts, "database" | "runtime" | "store" | "worker" | "submit">,
): ActivationParts {
  // Not in the state folder, which tools may not reach.
  const folders = { folder: `${resolve(options.home)}-work`, disk: nodeDisk, localFolders: options.localFolders };
  return {
    ...own,
    parkMs: options.parkMs ?? PARK_MS,
    kinds: ({ request }) => (request.asks ?? []).filter((kind) => options.asks || kind !== "permission"),
    prepare: async (work) => options.request(work, await checkOut(work, folders)),
    finished: async (work) => void (await pushChanges(work, folders)),
  };
}

/** Does what a worker or a sender that was lost left undone. */
async function sweep(cluster: Pick<Cluster, "database" | "engine">): Promise<void> {
  await noteSetAside(cluster);
  await resumeAnswered(cluster);
}

/** Returns the work of an activation of the engine. */
export const workIdOf = (activationId: string): string => activationId.split(SEPARATOR)[0] ?? activationId;

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const here = () => ({ host: hostname(), pid: process.pid });

/** Other failures would come again, and hold a place of the worker for ever. */
const isWorthRepeating = (error: unknown, { starts }: WorkRow): boolean =>
  (!(error instanceof TroupeError) || error.kind === "storage") && starts < MAX_STARTS;

type Submit = ActivationParts["submit"];

/** Sets the work aside first: if it is the log that ends workers, this one is the last. */
async function giveUp(work: WorkRow, parts: ActivationParts): Promise<void> {
  await setAside(work, parts);
  await endCalls(work, parts);
}

/** Stores the reason as the outcome, so that nobody waits for it. */
function setAside(work: WorkRow, parts: { readonly database: Database; readonly submit: Submit }): Promise<void> {
  const message = `Set aside: ${work.starts} workers began this work, and none of them came to an end.`;
  return endWork(work, { kind: "failed", message }, parts);
}

/** Does the same for work that the engine gives to no worker any more. */
async function noteSetAside({ database, engine }: Pick<Cluster, "database" | "engine">): Promise<void> {
  const submit: Submit = (other, reason) => submitAgain(engine, other, reason);
  for (const { id } of await engine.list({ states: ["set_aside"] })) {
    const work = await findWork(database, workIdOf(id));
    if (work?.outcome === null) await setAside(work, { database, submit });
  }
}
