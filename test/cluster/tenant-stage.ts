/** Workers of the built program with a counting model provider, on a real Postgres server. */

import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join, resolve } from "node:path";
import { expect, onTestFinished } from "vitest";
import { type Database, openDatabase } from "../../src/store/postgres/database.ts";
import { migrate } from "../../src/store/postgres/schema.ts";
import { type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";
import { startPostgres } from "../support/postgres.ts";
import { type Finished, troupe } from "../support/troupe.ts";

export const HANG = { timeout: 100_000, interval: 100 };

export interface ClusterStage {
  readonly url: string;
  readonly folder: TempFolder;
  readonly database: Database;
  readonly provider: CountingProvider;
  /** Starts a worker that uses the counting provider, and waits until it takes work. */
  startWorker(name: string, flags?: readonly string[], environment?: Record<string, string>): Promise<StartedWorker>;
  /** Starts a worker without waiting for anything. */
  spawnWorker(name: string, flags?: readonly string[], environment?: Record<string, string>): StartedWorker;
  run(args: readonly string[], environment?: Record<string, string>): Promise<Finished>;
  /** Submits prompts and returns the ids of the work. */
  submit(count: number, flags?: readonly string[]): Promise<readonly string[]>;
  outcomes(ids: readonly string[]): Promise<readonly (Outcome | null)[]>;
  close(): Promise<void>;
}

interface StartedWorker {
  readonly child: ChildProcess;
  said(): string;
}

interface Outcome {
  readonly kind: string;
  readonly answer?: string;
  readonly message?: string;
}

export async function clusterStage(programs: string): Promise<ClusterStage> {
  const server = await startPostgres(programs);
  const database = await openDatabase({ url: server.url, connections: 3 });
  await migrate(database);
  const folder = await tempFolder();
  mkdirSync(folder.at("repositories"));
  const provider = await countingProvider();
  const environment = { TROUPE_DATABASE_URL: server.url, TROUPE_SANDBOX: "off" };
  const run: ClusterStage["run"] = (args, more = {}) =>
    troupe(args, { cwd: folder.path, home: join(folder.path, "client"), environment: { ...environment, ...more } });
  const spawnWorker: ClusterStage["spawnWorker"] = (name, flags = [], more = {}) => {
    const home = join(folder.path, name);
    mkdirSync(home, { recursive: true });
    const models = { m: { price: { input: 1, output: 1 }, maxOutputTokens: 1_000 } };
    const providers = { counted: { baseUrl: provider.baseUrl, apiKey: "sk-planted-key-0123456789abcdef", models } };
    writeFileSync(join(home, "providers.json"), JSON.stringify({ providers }));
    const args = ["worker", "--lease", "2", "--add-dir", folder.at("repositories"), ...flags];
    const child = spawn(process.execPath, [resolve("bin/troupe.js"), ...args], {
      cwd: home,
      env: {
        PATH: process.env.PATH ?? "",
        HOME: home,
        TROUPE_HOME: home,
        TROUPE_NO_DISCOVERY: "1",
        ...environment,
        ...more,
      },
      stdio: ["ignore", "ignore", "pipe"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    let said = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    return { child, said: () => said };
  };
  return {
    url: server.url,
    ...{ folder, database, provider, run, spawnWorker },
    async startWorker(name, flags = ["--allow-all-tools"], more = {}) {
      const worker = spawnWorker(name, flags, more);
      const state = () => (worker.child.exitCode === null ? worker.said() : `ended: ${worker.said()}`);
      await expect.poll(state, HANG).toMatch(/takes work|^ended/);
      expect(worker.said()).toContain("takes work");
      return worker;
    },
    async submit(count, flags = []) {
      const args = ["submit", "-p", "Say something.", "--model", "counted/m", "--json", ...flags];
      const all = await Promise.all(Array.from({ length: count }, () => run(args)));
      return all.map(({ stdout, stderr }) => {
        if (stdout === "") throw new Error(stderr);
        return (JSON.parse(stdout) as { workId: string }).workId;
      });
    },
    async outcomes(ids) {
      const { rows } = await database.query<{ id: string; outcome: Outcome | null }>(
        "select id, outcome from troupe.work where id = any($1)",
        [ids],
      );
      return ids.map((id) => rows.find((row) => row.id === id)?.outcome ?? null);
    },
    async close() {
      await database.close();
      server.remove();
      provider.close();
      await folder.remove();
    },
  };
}

interface CountingProvider {
  readonly baseUrl: string;
  /** Arrival times of all requests. */
  readonly arrivals: number[];
  /** Largest number of requests at a time. */
  most: number;
  /** Decides about each request: a number is the status of a refusal. */
  answer: (index: number) => { readonly status?: number; readonly text?: string; readonly delayMs?: number };
  /** Returns the largest number of requests in any window of this length. */
  busiest(windowMs: number): number;
  reset(): void;
  close(): void;
}

/** Speaks the completions wire: each reply has 900 input tokens and 100 output tokens. */
async function countingProvider(): Promise<CountingProvider> {
  let running = 0;
  const server: Server = createServer((request, response) => {
    request.resume().on("end", async () => {
      if (!request.url?.endsWith("/chat/completions")) return void response.writeHead(404).end();
      provider.most = Math.max(provider.most, ++running);
      const {
        status,
        text = "all done",
        delayMs = 50,
      } = provider.answer(provider.arrivals.push(performance.now()) - 1);
      await new Promise((done) => setTimeout(done, delayMs));
      running--;
      if (status !== undefined) {
        response.writeHead(status, { "retry-after": "1", "content-type": "application/json" });
        return void response.end(JSON.stringify({ error: { message: "slow down" } }));
      }
      response.writeHead(200, { "content-type": "text/event-stream" });
      const chunk = { choices: [{ index: 0, delta: { role: "assistant", content: text }, finish_reason: null }] };
      const usage = { prompt_tokens: 900, completion_tokens: 100, total_tokens: 1_000 };
      const end = { choices: [{ index: 0, delta: {}, finish_reason: "stop" }], usage };
      response.end(`data: ${JSON.stringify(chunk)}\n\ndata: ${JSON.stringify(end)}\n\ndata: [DONE]\n\n`);
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const provider: CountingProvider = {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    arrivals: [],
    most: 0,
    answer: () => ({}),
    busiest: (windowMs) =>
      Math.max(
        0,
        ...provider.arrivals.map((from) => provider.arrivals.filter((at) => at >= from && at < from + windowMs).length),
      ),
    reset() {
      provider.arrivals.splice(0);
      provider.most = 0;
      provider.answer = () => ({});
    },
    close: () => void server.close().closeAllConnections(),
  };
  return provider;
}
