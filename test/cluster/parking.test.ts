/** Sessions that wait for a person hold no worker, and the first answer resumes them, on any worker. */

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { calls, type HttpPlay, says } from "../../src/testing/index.ts";
import { postgresPrograms } from "../support/postgres.ts";
import { violations } from "./invariants.ts";
import { ClusterStage, HANG, SLOW, type StagedWorker } from "./stage.ts";

const programs = postgresPrograms();

if (programs === undefined) it.skip("sessions that wait for a person hold no worker (skipped: no Postgres here)");

describe.runIf(programs !== undefined)("work that waits for a person", () => {
  let stage: ClusterStage;

  beforeAll(async () => {
    stage = await ClusterStage.open(programs ?? "", { lease: 4 });
  });
  afterEach(() => stage.clear());
  afterAll(() => stage?.close());

  let workers = 0;
  const startWorker = (flags: readonly string[] = [], home = "home"): Promise<StagedWorker> =>
    stage.worker(`w${++workers}`, { home, flags });

  async function submit(
    steps: readonly HttpPlay[],
    ...flags: string[]
  ): Promise<{ workId: string; sessionId: string }> {
    const word = `task-${crypto.randomUUID()}`;
    stage.play(word, ...steps);
    const { stdout, stderr } = await stage.run(["submit", "-p", `Do ${word}.`, "--json", ...flags]);
    expect(stderr).toBe("");
    return JSON.parse(stdout) as { workId: string; sessionId: string };
  }
  const stateOf = async (workId: string): Promise<string> => {
    const { rows } = await stage.database.query<{ state: string }>(
      `select coalesce(outcome->>'kind', case when waiting_at is null then 'open' else 'waiting' end) as state
       from troupe.work where id = $1`,
      [workId],
    );
    return rows[0]?.state ?? "";
  };
  const answerOf = async (workId: string): Promise<unknown> => {
    const { rows } = await stage.database.query<{ outcome: unknown }>("select outcome from troupe.work where id = $1", [
      workId,
    ]);
    return rows[0]?.outcome;
  };
  const requestOf = async (sessionId: string): Promise<string> => {
    const { rows } = await stage.database.query<{ id: string }>(
      "select id from troupe.request where session_id = $1 and ended_at is null",
      [sessionId],
    );
    return rows[0]?.id ?? "";
  };
  const effect = (path: string) => calls(["bash", { command: `echo acted >> ${path}`, description: "act" }]);

  it("parked work moves with its first answer to another worker, and has its effect once", async () => {
    const path = join(stage.repositories, "effects.txt");
    const asking = ["--ask", "--park-after", "0.2"];
    const first = await startWorker(asking);
    const { workId, sessionId } = await submit([effect(path), says("all done")], "--ask");
    await expect.poll(() => stateOf(workId), HANG).toBe("waiting");
    const statuses = async () => {
      const { rows } = await stage.database.query<{ status: string }>(
        "select status from dbos.workflow_status where queue_partition_key = $1",
        [sessionId],
      );
      return rows.map(({ status }) => status);
    };
    await expect.poll(statuses, HANG).toEqual(["SUCCESS"]);
    expect((await stage.run(["cluster", "status"])).stdout).toMatch(/\bwaiting\b/);
    const listed = JSON.parse((await stage.run(["cluster", "requests", "--json"])).stdout) as object;
    expect(listed).toMatchObject({ requests: [{ session: sessionId, kind: "permission" }] });
    first.child.kill("SIGKILL");
    await startWorker(asking, "other-home");
    expect(existsSync(path)).toBe(false);
    const requestId = await requestOf(sessionId);
    const both = await Promise.all([
      stage.run(["cluster", "answer", requestId, "allow"]),
      stage.run(["cluster", "answer", requestId, "allow"]),
    ]);
    // The slower one finds the request answered, or no request any more.
    expect(both.filter(({ code }) => code === 0)).toHaveLength(1);
    await expect.poll(() => answerOf(workId), HANG).toEqual({ kind: "done", answer: "all done" });
    expect(readFileSync(path, "utf8")).toBe("acted\n");
    expect(await violations(stage.database)).toEqual([]);
  });

  it("parked work keeps later messages of the session behind it, and can be cancelled", async () => {
    await startWorker(["--ask", "--park-after", "0.2"]);
    const path = join(stage.repositories, "never.txt");
    const first = await submit([effect(path), says("first")], "--ask");
    await expect.poll(() => stateOf(first.workId), HANG).toBe("waiting");
    const second = await submit([says("second")], "--session-id", first.sessionId);
    await expect.poll(() => stateOf(second.workId), HANG).toBe("waiting");
    expect((await stage.run(["cluster", "cancel", first.workId])).code).toBe(0);
    await expect.poll(() => stateOf(first.workId), HANG).toBe("aborted");
    await expect.poll(() => answerOf(second.workId), HANG).toEqual({ kind: "done", answer: "second" });
    expect(existsSync(path)).toBe(false);
    expect((await stage.run(["cluster", "cancel", first.workId])).code).toBe(1);
  });

  it("parked work gets the user's text as the answer to a question", async () => {
    await startWorker(["--park-after", "0.2"]);
    const { workId, sessionId } = await submit(
      [calls(["ask_user", { question: "Which colour?" }]), says("noted")],
      "--ask",
    );
    await expect.poll(() => stateOf(workId), HANG).toBe("waiting");
    await stage.run(["cluster", "answer", await requestOf(sessionId), "dark green"]);
    await expect.poll(() => answerOf(workId), HANG).toEqual({ kind: "done", answer: "noted" });
    const { rows } = await stage.database.query<{ line: string }>(
      "select line from troupe.event where session_id = $1 and line like '%tool.execution_complete%'",
      [sessionId],
    );
    expect(rows.map(({ line }) => line).join()).toContain("dark green");
  });

  it("work that asks is denied where the worker or the submitter allows no questions", async () => {
    await startWorker(["--park-after", "0.2"]);
    const path = join(stage.repositories, "denied.txt");
    const one = await submit([effect(path), says("denied")], "--ask");
    await expect.poll(() => answerOf(one.workId), HANG).toEqual({ kind: "done", answer: "denied" });
    expect(existsSync(path)).toBe(false);
  });

  it("parked work is resumed by a worker when the sender of the answer was lost", async () => {
    await startWorker(["--ask", "--park-after", "0.2"]);
    const path = join(stage.repositories, "late.txt");
    const { workId, sessionId } = await submit([effect(path), says("late")], "--ask");
    await expect.poll(() => stateOf(workId), HANG).toBe("waiting");
    await stage.database.query(
      `insert into troupe.answer(session_id, request_id, kind, answer)
       values($1, $2, 'permission', '{"kind":"approved"}')`,
      [sessionId, await requestOf(sessionId)],
    );
    await expect.poll(() => answerOf(workId), HANG).toEqual({ kind: "done", answer: "late" });
    expect(readFileSync(path, "utf8")).toBe("acted\n");
  });

  it.runIf(SLOW)("work continues if it is answered while its files are pushed before it is parked", async () => {
    const repository = join(stage.repositories, "slow");
    const [pushing, go, path] = ["pushing", "go", "slow.txt"].map((name) => join(stage.repositories, name));
    mkdirSync(repository);
    const git = (...args: string[]) =>
      execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@t", ...args], { cwd: repository });
    git("init", "-q");
    git("commit", "-q", "--allow-empty", "-m", "start");
    const hook = `#!/bin/sh\ntouch '${pushing}'\nwhile [ ! -e '${go}' ]; do sleep 0.1; done\n`;
    writeFileSync(join(repository, ".git/hooks/pre-receive"), hook, { mode: 0o755 });
    await startWorker(["--ask", "--park-after", "0.2", "--allow-tool", "write"]);
    const create = calls(["create", { path: "made.txt", file_text: "made" }]);
    const { workId, sessionId } = await submit(
      [create, effect(path ?? ""), says("all done")],
      "--ask",
      "--repo",
      repository,
    );
    await expect.poll(() => existsSync(pushing ?? ""), HANG).toBe(true);
    expect((await stage.run(["cluster", "answer", await requestOf(sessionId), "allow"])).code).toBe(0);
    const used = `troupe.event where session_id = '${sessionId}' and line like '%"type":"permission.completed"%'`;
    await expect.poll(() => stage.count(used), HANG).toBe(1);
    writeFileSync(go ?? "", "");
    await expect.poll(() => answerOf(workId), HANG).toEqual({ kind: "done", answer: "all done" });
    expect(readFileSync(path ?? "", "utf8")).toBe("acted\n");
    expect(await violations(stage.database)).toEqual([]);
  });

  it("--timeout ends the wait for parked work, and the work continues", async () => {
    const submitted = await stage.run(["submit", "-p", "x", "--model", "understudy", "--wait", "--timeout", "300"]);
    expect(submitted).toMatchObject({ code: 1, stderr: expect.stringContaining("not done yet") });
  });
});
