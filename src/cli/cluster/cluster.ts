/** `troupe cluster`: shows the workers, queues and work of a database. This folder has the commands for many machines. */

import { defined } from "../../lib/defined.ts";
import { clip } from "../../lib/text.ts";
import { abortWork, answerRequest, type Cluster } from "../../runtime/cluster/cluster.ts";
import { askToDrain } from "../../runtime/cluster/draining.ts";
import { openRequests, type RequestRow } from "../../runtime/cluster/requests.ts";
import { workIdOf } from "../../runtime/cluster/run-work.ts";
import { listWork } from "../../runtime/cluster/work.ts";
import { type Arguments, unknownSubcommand, usage } from "../args.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { say } from "../output/say.ts";
import { budgetCommand, limitCommand } from "./limits.ts";
import { show, type Table } from "./tables.ts";
import { retryCommand, tenantCommand } from "./tenants.ts";
import { useCluster } from "./use-cluster.ts";

export async function clusterCommand(given: Arguments): Promise<ExitCode> {
  return useCluster(given, (cluster) => run(given, cluster));
}

async function run(given: Arguments, cluster: Cluster): Promise<ExitCode> {
  const [, name = "status", ...rest] = given.words;
  switch (name) {
    case "status":
      return await show(given, {
        workers: await workersOf(cluster),
        work: await worksOf(cluster, given.amount("limit", "whole") ?? 20),
      });
    case "workers":
      return await show(given, { workers: await workersOf(cluster) });
    case "queues":
      return await show(given, { queues: await queuesOf(cluster) });
    case "requests":
      return await show(given, { requests: requestsOf(await openRequests(cluster.database)) });
    case "answer":
      return await answer(cluster, rest);
    case "cancel":
      return await cancel(cluster, rest[0]);
    case "limit":
      return await limitCommand(given, cluster);
    case "budget":
      return await budgetCommand(given, cluster);
    case "tenant":
      return await tenantCommand(given, cluster);
    case "retry":
      return await retryCommand(cluster, rest[0]);
    case "drain":
      return await drain(given, cluster, rest[0]);
    default:
      throw unknownSubcommand("cluster", name, NAMES);
  }
}

const NAMES = "status workers queues requests answer cancel retry limit budget tenant drain".split(" ");

async function cancel(cluster: Cluster, id: string | undefined): Promise<ExitCode> {
  if (id === undefined) throw usage("Name the work to cancel: troupe cluster cancel <work id>");
  const isOpen = await abortWork(cluster, id);
  say(isOpen ? `work ${id} is cancelled` : `work ${id} has ended already, or does not exist`);
  return isOpen ? exitCodes.done : exitCodes.failed;
}

async function answer(cluster: Cluster, words: readonly string[]): Promise<ExitCode> {
  const [id, ...rest] = words;
  const text = rest.join(" ").trim();
  if (id === undefined || text === "") throw usage("Name the request and the answer: troupe cluster answer <id> allow");
  const found = (await openRequests(cluster.database)).filter((one) => one.id.startsWith(id));
  const [request] = found;
  if (!request) throw usage(`No open request has the id ${id}.`, "See troupe cluster requests.");
  if (found.length > 1) throw usage(`Several requests begin with ${id}.`, "Give more of the id.");
  const { sessionId, id: requestId, kind } = request;
  const isFirst = await answerRequest(cluster, { sessionId, requestId, kind, answer: answerOf(kind, text) });
  say(isFirst ? `answered ${requestId}` : `${requestId} was answered by somebody else`);
  return isFirst ? exitCodes.done : exitCodes.failed;
}

/** The workers follow within a moment. Workers that start later take work. */
async function drain(given: Arguments, { database }: Cluster, name: string | undefined): Promise<ExitCode> {
  const pool = given.text("pool");
  if ((name === undefined) === (pool === undefined)) {
    throw usage("Name a worker or a pool: troupe cluster drain <worker>, or troupe cluster drain --pool <pool>.");
  }
  const isAsked = !given.has("undo");
  const found = await askToDrain(database, { ...defined({ name, pool }), isAsked });
  const [first] = found;
  if (first === undefined) throw usage("There is no such worker.", "See troupe cluster workers.");
  for (const id of found) say(isAsked ? `${id} finishes its sessions and takes no new work` : `${id} takes work again`);
  return exitCodes.done;
}

type Kind = RequestRow["kind"];
type Answer = Parameters<typeof answerRequest>[1]["answer"];

/** `allow` and `deny` decide; any other text denies with this text as the reason, or answers a question. */
function answerOf(kind: Kind, text: string): Answer {
  const isAllowed = text === "allow";
  const comment = isAllowed || text === "deny" ? {} : { feedback: text };
  switch (kind) {
    case "permission":
      return isAllowed ? { kind: "approved" } : { kind: "denied-interactively-by-user", ...comment };
    case "exit_plan_mode":
      return { approved: isAllowed, ...comment };
    case "user_input":
      return { answer: text, wasFreeform: true };
    default:
      throw usage(`A request of kind ${kind} is answered by the program that submitted the work.`);
  }
}

function requestsOf(rows: readonly RequestRow[]): Table {
  return rows.map(({ id, sessionId, kind, data }) => ({ request: id, session: sessionId, kind, asks: asked(data) }));
}

/** Returns what is asked, in one line. */
function asked(data: RequestRow["data"]): string {
  switch (data.kind) {
    case "permission": {
      const { permissionRequest: request } = data;
      return request.kind === "shell" ? request.fullCommandText : clip(JSON.stringify(request), ASKED_CHARACTERS);
    }
    case "user_input":
      return data.question;
    case "exit_plan_mode":
      return data.summary;
    default:
      return clip(JSON.stringify(data), ASKED_CHARACTERS);
  }
}

const ASKED_CHARACTERS = 200;

async function workersOf({ database }: Cluster): Promise<Table> {
  const { rows } = await database.query<Record<string, string | number>>(
    `select w.id as worker, w.host, w.pid, w.pool, w.version,
            case when w.expires_at < clock_timestamp() then 'lost' when not (w.draining or w.drain_asked) then 'alive'
                 when w.draining and s.count = 0 then 'drained' else 'draining' end as state,
            s.count as sessions, w.concurrency
     from troupe.worker w, lateral (select count(*)::int from troupe.session where holder = w.id) s
     order by w.started_at`,
  );
  return rows;
}

async function worksOf({ database, engine }: Cluster, limit: number): Promise<Table> {
  // The newest activation comes first, so it is set last.
  const all = (await engine.list({ limit: 10_000 })).toReversed();
  const states = new Map(all.map(({ id, state }) => [workIdOf(id), state]));
  return (await listWork(database, limit)).map((row) => ({
    work: row.id,
    session: row.sessionId,
    state:
      row.setAside === null
        ? (row.outcome?.kind ?? (row.waitingAt === null ? states.get(row.id) : "waiting") ?? "unknown")
        : "set_aside",
    pool: row.pool,
    tenant: row.tenant,
    starts: row.starts,
    worker: row.worker,
    submitted: row.createdAt.toISOString(),
    reason: row.setAside ?? (row.outcome && "message" in row.outcome ? row.outcome.message : null),
  }));
}

async function queuesOf({ database, engine }: Cluster): Promise<Table> {
  const queued = await engine.list({ states: ["queued"], limit: 100_000 });
  const active = await engine.list({ states: ["running"], limit: 100_000 });
  const waiting = new Set(queued.map(({ id }) => workIdOf(id)));
  const running = new Set(active.map(({ id }) => workIdOf(id)));
  const counts = new Map<string, { pool: string; tenant: string; waiting: number; running: number }>();
  for (const { id, pool, tenant } of await listWork(database, 100_000)) {
    if (!waiting.has(id) && !running.has(id)) continue;
    const count = counts.get(`${pool}/${tenant}`) ?? { pool, tenant, waiting: 0, running: 0 };
    if (waiting.has(id)) count.waiting++;
    else count.running++;
    counts.set(`${pool}/${tenant}`, count);
  }
  return [...counts.values()];
}
