/** `troupe cluster`: shows the workers, queues and work of a database. This folder has the commands for many machines. */

import { defined } from "../../lib/defined.ts";
import { clip } from "../../lib/text.ts";
import { abortWork, answerRequest, type Cluster } from "../../runtime/cluster/cluster.ts";
import { askToDrain } from "../../runtime/cluster/draining.ts";
import { listQueues, listWorkers, listWorkStates } from "../../runtime/cluster/overview.ts";
import { answerOf, type Decision, openRequests, type RequestRow } from "../../runtime/cluster/requests.ts";
import { type Arguments, unknownSubcommand, usage } from "../args.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { printMessage } from "../output/print-message.ts";
import { budgetCommand, limitCommand } from "./limits.ts";
import { show, type Table } from "./tables.ts";
import { retryCommand, tenantCommand } from "./tenants.ts";
import { useCluster } from "./use-cluster.ts";

export async function clusterCommand(given: Arguments): Promise<ExitCode> {
  return useCluster(given, (cluster) => run(given, cluster));
}

type Subcommand = (given: Arguments, cluster: Cluster, rest: readonly string[]) => Promise<ExitCode>;

const subcommands: Readonly<Record<string, Subcommand>> = {
  status: async (given, cluster) =>
    show(given, {
      workers: await workersOf(cluster),
      work: await worksOf(cluster, given.amount("limit", "whole") ?? 20),
    }),
  workers: async (given, cluster) => show(given, { workers: await workersOf(cluster) }),
  queues: async (given, cluster) => show(given, { queues: await queuesOf(cluster) }),
  requests: async (given, { database }) => show(given, { requests: requestsOf(await openRequests(database)) }),
  answer: (_, cluster, rest) => answer(cluster, rest),
  cancel: (_, cluster, [id]) => cancel(cluster, id),
  retry: (_, cluster, [id]) => retryCommand(cluster, id),
  limit: limitCommand,
  budget: budgetCommand,
  tenant: tenantCommand,
  drain: (given, cluster, [id]) => drain(given, cluster, id),
};

async function run(given: Arguments, cluster: Cluster): Promise<ExitCode> {
  const [, name = "status", ...rest] = given.words;
  const subcommand = Object.hasOwn(subcommands, name) ? subcommands[name] : undefined;
  if (!subcommand) throw unknownSubcommand("cluster", name, Object.keys(subcommands));
  return subcommand(given, cluster, rest);
}

async function cancel(cluster: Cluster, id: string | undefined): Promise<ExitCode> {
  if (id === undefined) throw usage("Name the job to cancel: troupe cluster cancel <job id>");
  const isOpen = await abortWork(cluster, id);
  printMessage(isOpen ? `job ${id} is cancelled` : `job ${id} has already ended, or does not exist`);
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
  const isFirst = await answerRequest(cluster, {
    sessionId,
    requestId,
    kind,
    answer: answerOf(kind, decisionOf(kind, text)),
  });
  printMessage(isFirst ? `answered ${requestId}` : `${requestId} was already answered`);
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
  for (const id of found)
    printMessage(isAsked ? `${id} finishes its sessions and takes no new jobs` : `${id} takes jobs again`);
  return exitCodes.done;
}

/** `allow` and `deny` decide; any other text denies with this text as the reason, or answers a question. */
function decisionOf(kind: RequestRow["kind"], text: string): Decision {
  if (kind === "user_input") return { kind: "text", text };
  if (text === "allow") return { kind: "allow" };
  return text === "deny" ? { kind: "deny" } : { kind: "deny", reason: text };
}

function requestsOf(rows: readonly RequestRow[]): Table {
  return rows.map(({ id, sessionId, kind, data }) => ({
    request: id,
    session: sessionId,
    kind,
    asks: requestText(data),
  }));
}

/** Returns what is asked, in one line. */
function requestText(data: RequestRow["data"]): string {
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
  return (await listWorkers(database)).map(({ tenant: _, leaseMs: __, ...row }) => row);
}

async function worksOf({ database }: Cluster, limit: number): Promise<Table> {
  const rows = await listWorkStates(database, limit);
  return rows.map((row) => ({ ...row, submitted: row.submitted.toISOString() }));
}

async function queuesOf({ database }: Cluster): Promise<Table> {
  return (await listQueues(database)).map(({ setAside, oldestMs, ...row }) => ({
    ...row,
    set_aside: setAside,
    oldest_s: oldestMs === null ? null : Math.round(oldestMs / 1000),
  }));
}
