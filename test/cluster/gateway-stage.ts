/** A Postgres server, a folder, and workers of the built program, for the tests of this folder. */

import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, onTestFinished } from "vitest";
import { type Database, openDatabase } from "../../src/store/postgres/database.ts";
import { type HttpPlay, modelServer, says, tempFolder } from "../../src/testing/index.ts";
import { startPostgres } from "../support/postgres.ts";
import { type Finished, troupe } from "../support/troupe.ts";

export const HANG = { timeout: Number(process.env.HANG ?? 100_000), interval: 50 };
const LEASE_SECONDS = 2;

export interface ClusterStage {
  readonly url: string;
  readonly database: Database;
  readonly folder: string;
  /** Starts a worker and waits until it takes work. It ends with the test. */
  startWorker(flags?: readonly string[]): Promise<ChildProcess>;
  /** Runs a command of the built program against the database. */
  run(...args: readonly string[]): Promise<Finished>;
  /**
   * Sets the replies of the model to a prompt that contains this word. The number of replies in the conversation decides
   * which one is next, so a session that moves goes on where it was.
   */
  play(word: string, ...steps: readonly HttpPlay[]): void;
  environment(): Record<string, string>;
  close(): Promise<void>;
}

export async function clusterStage(programs: string): Promise<ClusterStage> {
  const server = await startPostgres(programs);
  const database = await openDatabase({ url: server.url, connections: 2 });
  const folder = await tempFolder();
  mkdirSync(folder.at("repositories"));
  const home = join(folder.path, "home");
  mkdirSync(home, { recursive: true });
  const plays = new Map<string, readonly HttpPlay[]>();
  const model = await modelServer({ handler: ({ request }) => nextReply(request?.messages ?? [], plays) });
  const environment = () => ({
    TROUPE_DATABASE_URL: server.url,
    TROUPE_SANDBOX: "off",
    TROUPE_BASE_URL: model.baseUrl,
    TROUPE_MODEL: "faux-model",
  });
  return {
    url: server.url,
    database,
    folder: folder.path,
    environment,
    async startWorker(flags = []) {
      const fixed = ["worker", "--lease", String(LEASE_SECONDS), "--add-dir", folder.at("repositories")];
      const child = spawn(process.execPath, [resolve("bin/troupe.js"), ...fixed, ...flags], {
        cwd: home,
        env: {
          PATH: process.env.PATH ?? "",
          HOME: home,
          TROUPE_HOME: home,
          TROUPE_NO_DISCOVERY: "1",
          ...environment(),
        },
        stdio: ["ignore", "ignore", "pipe"],
      });
      onTestFinished(() => void child.kill("SIGKILL"));
      let said = "";
      child.stderr?.setEncoding("utf8").on("data", (text: string) => {
        said += text;
        if (process.env.TROUPE_TEST_VERBOSE) process.stderr.write(`[${child.pid}] ${text}`);
      });
      await expect.poll(() => (child.exitCode === null ? said : `ended: ${said}`), HANG).toMatch(/takes work|^ended/);
      expect(said).toContain("takes work");
      return child;
    },
    run: (...args) => troupe(args, { cwd: folder.path, home: join(folder.path, "client"), environment: environment() }),
    play: (word, ...steps) => void plays.set(word, steps),
    async close() {
      await model.close();
      await database.close();
      server.remove();
      await folder.remove();
    },
  };
}

function nextReply(messages: readonly object[], plays: ReadonlyMap<string, readonly HttpPlay[]>): HttpPlay {
  const texts = messages.map((message) => ({ text: JSON.stringify(message), role: Reflect.get(message, "role") }));
  const found = [...plays].map(([word, steps]) => ({
    steps,
    from: texts.findLastIndex(({ text, role }) => role === "user" && text.includes(word)),
  }));
  const { steps, from } = found.reduce((one, other) => (other.from > one.from ? other : one), { steps: [], from: -1 });
  const replies = texts.slice(from).filter(({ role }) => role === "assistant").length;
  return steps[replies] ?? says("the script has no such step");
}
