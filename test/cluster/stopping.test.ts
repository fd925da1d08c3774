/** A worker that is stopped while sessions run. It runs in this process, so that the time it waits for them can be short. */

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "../../src/cli/args.ts";
import { sessionRequest } from "../../src/cli/prompt-mode.ts";
import { type ServingWorker, serveCluster } from "../../src/runtime/cluster/cluster.ts";
import { calls, says } from "../../src/testing/index.ts";
import { postgresPrograms } from "../support/postgres.ts";
import { ClusterStage, HANG } from "./stage.ts";

const programs = postgresPrograms();

if (programs === undefined)
  it.skip("a worker that is stopped leaves its sessions to others (skipped: no Postgres here)");

describe.runIf(programs !== undefined)("a worker that is stopped", () => {
  let stage: ClusterStage;

  beforeAll(async () => {
    stage = await ClusterStage.open(programs ?? "");
  });
  afterAll(() => stage?.close());

  const serve = (): Promise<ServingWorker> =>
    serveCluster({
      url: stage.url,
      home: stage.folder.at("stopped"),
      runtime: { environment: { PATH: process.env.PATH, ...stage.environment() } },
      request: (_, cwd) => ({ ...sessionRequest(parse(["--allow-all-tools", "--allow-all-paths"]), "json"), cwd }),
      ...{ concurrency: 4, leaseMs: 15_000, asks: false, localFolders: [stage.repositories] },
      retention: { workMs: 86_400_000 },
      report: () => undefined,
    });

  it("a worker that is stopped leaves a session that still runs, with its files, to another worker", async () => {
    const repository = join(stage.repositories, "app");
    const commit = ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "start", "--allow-empty"];
    execFileSync("git", ["init", "-q", repository]);
    execFileSync("git", ["-C", repository, ...commit]);
    const bash = (command: string) => calls(["bash", { command, description: "act" }]);
    const started = 'troupe.event where line like \'%"type":"tool.execution_start"%sleep 300%\'';
    stage.play("stopping", bash("echo made > made.txt"), bash("sleep 300"), bash("cat made.txt"), says("all done"));
    const worker = await serve();
    const { stdout } = await stage.run(["submit", "-p", "stopping", "--repo", repository, "--json"]);
    const { workId, sessionId } = JSON.parse(stdout) as { workId: string; sessionId: string };
    await expect.poll(() => stage.count(started), HANG).toBe(1);
    await worker.stop(0);
    expect([worker.active(), await stage.workOutcomes([workId])]).toEqual([0, [null]]);

    await stage.worker("next");
    await expect.poll(() => stage.workOutcomes([workId]), HANG).toEqual([{ kind: "done", answer: "all done" }]);
    const { rows } = await stage.database.query<{ text: string | null }>(
      `select coalesce(line::jsonb->'data'->'result'->>'content', line::jsonb->'data'->'error'->>'message') as text
       from troupe.event where session_id = $1 and line::jsonb->>'type' = 'tool.execution_complete' order by seq`,
      [sessionId],
    );
    expect(rows.map(({ text }) => text)).toEqual([
      "<exited with exit code 0>",
      expect.stringContaining("interrupted"),
      "made\n<exited with exit code 0>",
    ]);
    // A worker that stops is not one that was lost.
    expect(await stage.count("troupe.work where losses > 0")).toBe(0);
  });
});
