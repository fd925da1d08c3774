/** `troupe worker`: runs submitted sessions until it is stopped. */

import { createServer, type Server } from "node:http";
import { plural } from "../../lib/text.ts";
import { type ServingWorker, serveCluster } from "../../runtime/cluster/cluster.ts";
import { stateRoot } from "../../runtime/home.ts";
import { type Arguments, parse } from "../args.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import type { Launcher } from "../launcher.ts";
import { say } from "../output/say.ts";
import { sessionRequest } from "../prompt-mode.ts";
import { onInterrupt } from "../signals.ts";
import { databaseUrl } from "./database-url.ts";

const DRAIN_MS = 600_000;
const DEFAULT_LEASE_SECONDS = 15;
const DEFAULT_CONCURRENCY = 8;

export async function workerCommand(given: Arguments, launcher: Launcher): Promise<ExitCode> {
  const pool = given.text("pool");
  // DBOS makes pg print a deprecation that no user of troupe can act on.
  Object.assign(process, { noDeprecation: true });
  const worker = await serveCluster({
    url: databaseUrl(given),
    ...(pool !== undefined && { pool }),
    concurrency: given.amount("concurrency", "whole") ?? DEFAULT_CONCURRENCY,
    leaseMs: (given.amount("lease", "any") ?? DEFAULT_LEASE_SECONDS) * 1000,
    home: stateRoot(process.env),
    runtime: { environment: process.env, importModule: launcher.importModule },
    request: (work, cwd) => ({ ...sessionRequest(parse(work.request.flags), "json"), cwd, client: { askUser: false } }),
    report: (line) => say(line),
  });
  const health = await healthServer(given, worker);
  say(`worker ${worker.id} takes work${pool === undefined ? "" : ` of pool ${pool}`}; stop it with Ctrl-C or SIGTERM`);
  await new Promise<void>((resolve) => onInterrupt(resolve));
  say(`stopping: waiting for ${plural(worker.active(), "session")}`);
  await worker.stop(DRAIN_MS);
  health?.close();
  return exitCodes.done;
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
