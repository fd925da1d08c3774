/** `troupe worker`: runs submitted sessions until it is stopped. */

import { createServer, type Server } from "node:http";
import { resolve } from "node:path";
import { defined } from "../../lib/defined.ts";
import { plural } from "../../lib/text.ts";
import { type ServingWorker, serveCluster, type WorkerOptions } from "../../runtime/cluster/cluster.ts";
import type { WorkRow } from "../../runtime/cluster/work.ts";
import { stateRoot } from "../../runtime/home.ts";
import type { SessionRequest } from "../../runtime/session-request.ts";
import { remoteRequest } from "../../server/gateway/remote-options.ts";
import { ExternalTools } from "../../session/requests/external-tools.ts";
import { type Arguments, parse, usage } from "../args.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import type { Launcher } from "../launcher.ts";
import { printMessage } from "../output/print-message.ts";
import { sessionRequest } from "../prompt-mode.ts";
import { onInterrupt } from "../signals.ts";
import { databaseUrl } from "./database-url.ts";

const DRAIN_MS = 600_000;
const DEFAULT_LEASE_SECONDS = 15;
const DEFAULT_CONCURRENCY = 8;
const DEFAULT_WORK_DAYS = 30;
const DAY_MS = 86_400_000;

export async function workerCommand(given: Arguments, launcher: Launcher): Promise<ExitCode> {
  const pool = given.text("pool");
  const park = given.amount("park-after", "any");
  const isUntrusted = given.has("untrusted");
  const tenant = given.text("tenant");
  if (isUntrusted) checkUntrusted(given, tenant);
  // DBOS makes pg print a deprecation that no user of troupe can act on.
  Object.assign(process, { noDeprecation: true });
  const worker = await serveCluster({
    url: databaseUrl(given),
    ...defined({ pool }),
    concurrency: given.amount("concurrency", "whole") ?? DEFAULT_CONCURRENCY,
    leaseMs: (given.amount("lease", "any") ?? DEFAULT_LEASE_SECONDS) * 1000,
    asks: given.has("ask"),
    ...(park !== undefined && { parkMs: park * 1000 }),
    home: stateRoot(process.env),
    ...defined({ tenant }),
    requiresSandbox: isUntrusted,
    retention: retentionOf(given),
    runtime: {
      environment: isUntrusted ? { ...process.env, TROUPE_SANDBOX: "required" } : process.env,
      importModule: launcher.importModule,
    },
    localFolders: given.list("add-dir").map((folder) => resolve(folder)),
    request: (work, cwd) => requestOf(given, work, cwd),
    report: (line) => printMessage(line),
  });
  const health = await healthServer(given, worker);
  printMessage(
    `worker ${worker.id} takes jobs${pool === undefined ? "" : ` of pool ${pool}`}; stop it with Ctrl-C or SIGTERM`,
  );
  await new Promise<void>((resolve) => onInterrupt(resolve));
  printMessage(`stopping: waiting for ${plural(worker.active(), "session")}`);
  await worker.stop(DRAIN_MS);
  health?.close();
  return exitCodes.done;
}

function retentionOf(given: Arguments): WorkerOptions["retention"] {
  const sessions = given.amount("keep-sessions", "any");
  return {
    workMs: (given.amount("keep-work", "any") ?? DEFAULT_WORK_DAYS) * DAY_MS,
    ...(sessions !== undefined && { sessionsMs: sessions * DAY_MS }),
  };
}

/** Flags that would give commands a way out of the sandbox. */
const TOO_WIDE = ["allow-all", "yolo", "allow-all-urls", "allow-all-paths"];

function checkUntrusted(given: Arguments, tenant: string | undefined): void {
  if (tenant === undefined) throw usage("--untrusted serves one tenant: name it with --tenant.");
  const wide = TOO_WIDE.find((name) => given.has(name));
  if (wide !== undefined) {
    throw usage(
      `--untrusted cannot be used with --${wide}.`,
      "Allow single tools: --allow-tool write --allow-tool shell.",
    );
  }
}

/**
 * Combines the submitted request with the worker's own rules. A submitter chooses the model, the agent, the mode and the
 * limits, and can take tools away. Only the worker's flags and settings allow anything.
 */
function requestOf(given: Arguments, work: WorkRow, cwd: string): SessionRequest {
  const own = sessionRequest(given, "json");
  const { options } = work.request;
  if (options) {
    const asked = remoteRequest(options, { ...own, cwd });
    return { ...asked, client: { ...asked.client, ...clientOf(work) } };
  }
  const {
    permissions,
    workspace: _workspace,
    context: _context,
    ...asked
  } = sessionRequest(parse(work.request.flags), "json");
  return {
    ...asked,
    cwd,
    permissions: {
      ...own.permissions,
      denyTools: [...(own.permissions?.denyTools ?? []), ...(permissions?.denyTools ?? [])],
      denyUrls: [...(own.permissions?.denyUrls ?? []), ...(permissions?.denyUrls ?? [])],
    },
    ...defined({ workspace: own.workspace, context: own.context }),
    client: clientOf(work),
  };
}

/** Returns the part of the request that depends on the submitter: questions, and the tools that a program runs. */
function clientOf({ request }: WorkRow): NonNullable<SessionRequest["client"]> {
  const tools = new ExternalTools();
  tools.offer("client", request.tools ?? []);
  return { askUser: request.asks?.includes("user_input") ?? false, program: { tools } };
}

/** Answers 200 while the worker's lease is valid, else 503. */
async function healthServer(given: Arguments, worker: ServingWorker): Promise<Server | undefined> {
  const port = given.amount("health-port", "count");
  if (port === undefined) return undefined;
  const server = createServer((request, response) => {
    const isKnown = request.method === "GET" && request.url === "/healthz";
    const status = !isKnown ? 404 : worker.isAlive() ? 200 : 503;
    response.writeHead(status, { "content-type": "application/json" });
    response.end(`${JSON.stringify({ worker: worker.id, alive: worker.isAlive(), active: worker.active() })}\n`);
  });
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(port, "127.0.0.1", resolve));
  return server;
}
