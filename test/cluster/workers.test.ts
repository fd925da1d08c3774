/**
 * Workers of the built program on a real Postgres server: work survives the loss of a worker, of connections and of the
 * server. One server for all tests; each has a pool of its own. Long versions: `npm run test:cluster`.
 */

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { calls, fails, says } from "../../src/testing/index.ts";
import { postgresPrograms } from "../support/postgres.ts";
import { type Finished, script } from "../support/troupe.ts";
import { answerLate } from "./late-answer.ts";
import { cuttingProxy } from "./proxy.ts";
import { ClusterStage, freezeWorker, HANG, isStopped, SLOW } from "./stage.ts";

const programs = postgresPrograms();

if (programs === undefined) it.skip("workers survive losses (skipped: no Postgres here)");

describe.runIf(programs !== undefined)("workers", () => {
  let stage: ClusterStage;
  let pools = 0;
  const newPool = (): string => `pool${++pools}`;

  beforeAll(async () => {
    stage = await ClusterStage.open(programs ?? "");
  });
  afterEach(() => stage.clear());
  afterAll(() => stage?.close());

  const sessionsOf = (worker: string) => () => stage.count(`troupe.session where holder = '${worker}'`);

  /** Runs `troupe submit`. */
  function submit(args: readonly string[]): Promise<Finished> {
    return stage.run(["submit", "-p", "x", ...args]);
  }

  it("workers finish all work when one of them is killed, and repeat nothing unasked", async () => {
    const pool = newPool();
    const lost = await stage.worker(`${pool}a`, { pool });
    const ids = [...(await stage.submit(2, { pool, tokens: 3 })), ...(await stage.submit(1, { pool, kind: "team" }))];
    await expect.poll(sessionsOf(lost.id), HANG).toBeGreaterThan(0);
    lost.child.kill("SIGKILL");
    await stage.worker(`${pool}b`, { pool });
    await stage.finish(ids);
    expect(await stage.takeOvers(ids)).toBeGreaterThan(0);
    expect(await stage.violations()).toEqual([]);
  });

  it("workers start no tool when they were frozen and replaced", async () => {
    const frozen = await freezeWorker(stage, { pool: newPool() });
    await expect.poll(() => frozen.said().match(/refused a call/g)?.length, HANG).toBe(1);
    await stage.rest();
    expect(await stage.violations()).toEqual([]);
  });

  it("workers neither lose nor double a line when connections are cut after a commit", async () => {
    const pool = newPool();
    const proxy = await cuttingProxy(stage.server.url, { text: "insert into troupe.event", every: 3 });
    onTestFinished(() => proxy.close());
    await stage.worker(`${pool}a`, { url: proxy.url, lease: 5, pool });
    await stage.finish(await stage.submit(1, { pool, tokens: 1 }));
    expect(proxy.cuts()).toBeGreaterThan(1);
    expect(await stage.violations()).toEqual([]);
  });

  it("workers wait for a server that crashes, and lose nothing", async () => {
    const pool = newPool();
    const { id } = await stage.worker(`${pool}a`, { pool });
    const ids = await stage.submit(2, { pool, tokens: 4 });
    await expect.poll(sessionsOf(id), HANG).toBeGreaterThan(0);
    stage.server.crash();
    await stage.finish(ids);
    expect(await stage.violations()).toEqual([]);
  });

  it("workers push the working folder before risky commands and at the end, and list what was not copied", async () => {
    const pool = newPool();
    const repository = join(stage.repositories, pool);
    mkdirSync(repository, { recursive: true });
    const git = (...args: string[]) => execFileSync("git", args, { cwd: repository, encoding: "utf8" }).trim();
    const commit = "git -c user.name=t -c user.email=t@t commit -q --allow-empty -m";
    git("init", "-q", "-b", "main");
    execFileSync("bash", ["-c", `${commit} start`], { cwd: repository });
    // A push that is stopped because the lease has expired is not made up for before the end.
    const first = await stage.worker(`${pool}a`, { pool, lease: 15 });
    const bash = (command: string) => ({ calls: [{ name: "bash", arguments: { command, description: "act" } }] });
    const create = { name: "create", arguments: { path: "made.txt", file_text: "made\n" } };
    const act = `git switch -qc own && ${commit} own && echo '*.tmp' > .gitignore && touch a.tmp .env && rm made.txt`;
    const flags = ["--repo", repository, "--pool", pool, "--wait", "--json"];
    const send = async (steps: readonly object[], more: readonly string[] = []) => {
      const model = script(stage.folder.path, [...steps, { say: "done" }]);
      const { stdout, stderr } = await submit(["--model", model, ...flags, ...more]);
      return { stderr, ...(JSON.parse(stdout) as { sessionId: string; outcome: object }) };
    };
    const { sessionId, outcome } = await send([{ calls: [create] }, bash(act)]);
    expect(outcome).toEqual({ kind: "done", answer: "done" });
    const names = (number: number) => git("ls-tree", "--name-only", `refs/troupe/${sessionId}/${number}`).split("\n");
    expect([names(1), names(2)]).toEqual([["made.txt"], [".gitignore"]]);
    first.child.kill("SIGTERM");
    await first.ended;

    await stage.worker(`${pool}b`, { pool });
    const look = bash("ls -A | grep -v '^.git$'; git branch --show-current; git log --format=%s; git status --short");
    await send([look], ["--session-id", sessionId]);
    const { rows } = await stage.database.query<{ type: string; text: string }>(
      `select line::jsonb->>'type' as type,
              coalesce(line::jsonb->'data'->'result'->>'content', line::jsonb->'data'->>'content') as text
       from troupe.event where session_id = $1 and line::jsonb->>'type' = any($2) order by seq`,
      [sessionId, ["tool.execution_complete", "system.notification"]],
    );
    const [note, looked] = rows.slice(-2);
    expect(note).toMatchObject({ type: "system.notification", text: expect.stringContaining("- .env\n- a.tmp\n") });
    expect(looked?.text).toMatch(/^\.gitignore\nown\nown\nstart\n\?\? \.gitignore/);
    // Nothing has changed, so nothing was pushed.
    expect(git("for-each-ref", "--format=%(refname)", `refs/troupe/${sessionId}`).split("\n")).toHaveLength(2);
  });

  it("workers answer no message again that was answered after they read the log of its session", async () => {
    const pool = newPool();
    await stage.worker(`${pool}a`, { pool });
    const [sessionId = ""] = await stage.submit(1, { pool, tokens: 0 });
    await stage.finish([sessionId]);
    const id = await answerLate(stage, { sessionId, pool });
    await expect.poll(() => stage.workOutcomes([id]), HANG).toEqual([{ kind: "done", answer: "all done" }]);
    await stage.rest();
    expect(await stage.count("late_line")).toBe(0);
    expect(await stage.violations()).toEqual([]);
  });

  it("workers run work whose submitter was lost before it was queued, or that was queued again", async () => {
    const pool = newPool();
    await stage.worker(`${pool}a`, { pool, lease: 1 });
    const [retried = ""] = await stage.submit(1, { pool, tokens: 0 });
    await stage.finish([retried]);
    await stage.database.query(
      `insert into troupe.work(id, session_id, pool, request, on_loss, created_at)
       select id || '-new', session_id || '-new', pool, request, on_loss, created_at - interval '1 min'
       from troupe.work where session_id = $1`,
      [retried],
    );
    await stage.database.query(
      `update troupe.work set outcome = null, ended_at = null, starts = 0, worker = null,
         created_at = created_at - interval '1 min' where session_id = $1`,
      [retried],
    );
    await stage.finish([retried, `${retried}-new`]);
    expect(await stage.violations()).toEqual([]);
  });

  it("workers answer failed work when it is retried, also after a later message was answered", async () => {
    const pool = newPool();
    await stage.worker(`${pool}a`, { pool });
    const send = async (word: string, more: readonly string[] = []) => {
      const { stdout } = await stage.run(["submit", "-p", word, "--json", "--pool", pool, ...more]);
      return JSON.parse(stdout) as { workId: string; sessionId: string };
    };
    stage.play(`${pool}-first`, fails(400));
    stage.play(`${pool}-second`, says("the second answer"), says("the first answer"));
    const first = await send(`${pool}-first`);
    await expect.poll(() => stage.workOutcomes([first.workId]), HANG).toMatchObject([{ kind: "error" }]);
    const second = await send(`${pool}-second`, ["--session-id", first.sessionId]);
    await expect.poll(() => stage.workOutcomes([second.workId]), HANG).toMatchObject([{ kind: "done" }]);
    expect((await stage.run(["cluster", "retry", first.workId])).code).toBe(0);
    await expect
      .poll(() => stage.workOutcomes([first.workId]), HANG)
      .toEqual([{ kind: "done", answer: "the first answer" }]);
    await stage.rest();
  });

  it.runIf(SLOW)("workers store no outcome of work that another one has taken over", async () => {
    const pool = newPool();
    const [started, go] = [stage.folder.at(`${pool}.started`), stage.folder.at(`${pool}.go`)];
    const seam = { stopAtQuery: "set outcome = $2", once: stage.folder.at(`once-${pool}`) };
    const frozen = await stage.worker(`${pool}a`, { pool, seam });
    stage.play(pool, fails(400));
    const { stdout } = await stage.run(["submit", "-p", `Do ${pool}.`, "--json", "--pool", pool]);
    const { workId } = JSON.parse(stdout) as { workId: string };
    await expect.poll(() => isStopped(frozen.child.pid), HANG).toBe(true);
    const command = `touch '${started}'; while [ ! -e '${go}' ]; do sleep 0.1; done`;
    stage.play(pool, calls(["bash", { command, description: "wait" }]), says("all done"));
    await stage.worker(`${pool}b`, { pool });
    await expect.poll(() => existsSync(started), HANG).toBe(true);
    frozen.child.kill("SIGCONT");
    await expect.poll(() => frozen.said(), HANG).toContain(": error");
    writeFileSync(go, "");
    await expect.poll(() => stage.workOutcomes([workId]), HANG).toEqual([{ kind: "done", answer: "all done" }]);
    await stage.rest();
  });

  it.runIf(SLOW)("workers send a message once that was queued by a worker that was lost", async () => {
    const pool = newPool();
    const hooks = { version: 1, hooks: { userPromptSubmitted: [{ bash: "true" }] } };
    const seam = { killAtLine: '"type":"troupe.message_queued"', once: stage.folder.at(`once-${pool}`) };
    for (const name of [`${pool}a`, `${pool}b`]) {
      mkdirSync(stage.folder.at(`${name}/hooks`), { recursive: true });
      writeFileSync(stage.folder.at(`${name}/hooks/own.json`), JSON.stringify(hooks));
    }
    const lost = await stage.worker(`${pool}a`, { pool, seam });
    const ids = await stage.submit(1, { pool, tokens: 1 });
    expect(await lost.ended).toBe("SIGKILL");
    await stage.worker(`${pool}b`, { pool });
    await stage.finish(ids);
    expect(await stage.violations()).toEqual([]);
  });

  it.runIf(SLOW)("workers continue work whose background agents were running when its worker was lost", async () => {
    const pool = newPool();
    const word = `${pool}-agent`;
    const file = stage.folder.at(`${pool}.started`);
    stage.play(word, calls(["bash", { command: `touch '${file}'; sleep 600`, description: "wait" }]));
    const agent = { agent_type: "general-purpose", name: "helper", description: "help", mode: "background" };
    stage.play(pool, calls(["task", { ...agent, prompt: `Do ${word}.` }]), says("started"), says("all done"));
    const lost = await stage.worker(`${pool}a`, { pool });
    const { stdout } = await stage.run(["submit", "-p", `Do ${pool}.`, "--json", "--pool", pool]);
    const { workId, sessionId } = JSON.parse(stdout) as { workId: string; sessionId: string };
    await expect.poll(() => existsSync(file), HANG).toBe(true);
    const said = `troupe.event where session_id = '${sessionId}' and line like '%"content":"started"%'`;
    await expect.poll(() => stage.count(said), HANG).toBe(1);
    lost.child.kill("SIGKILL");
    await stage.worker(`${pool}b`, { pool });
    await expect.poll(() => stage.workOutcomes([workId]), HANG).toEqual([{ kind: "done", answer: "all done" }]);
    await stage.rest();
  });

  it("workers fail work at once when they do not accept its repository", async () => {
    const pool = newPool();
    await stage.worker(`${pool}a`, { pool });
    const reasons = {
      "--upload-pack=touch /tmp/x": "cannot begin with a dash",
      "https://user:secret@example.com/app.git": "contains credentials",
      "/etc": "do not take the repository",
      "ext::sh -c true": "do not take the repository",
    };
    const tries = Object.entries(reasons).map(async ([repository, reason]) => {
      const { code, stdout } = await submit([`--repo=${repository}`, "--pool", pool, "--wait", "--json"]);
      expect({ code, ...(JSON.parse(stdout) as object) }, repository).toMatchObject({
        ...{ code: 1, outcome: { kind: "failed", message: expect.stringContaining(reason) } },
      });
    });
    await Promise.all(tries);
  });

  it("workers accept no rules from submitters", async () => {
    const flags = ["--allow-all", "--plugin-dir=x", "--additional-mcp-config={}", "--trust-folder"];
    const tries = flags.map(async (flag) => {
      const { code, stderr } = await submit([flag]);
      expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining("is decided by the workers") });
    });
    await Promise.all(tries);
    const { code } = await submit(["--session-id", "../x"]);
    expect(code).toBe(2);
  });

  it("workers end cleanly on SIGTERM, and leave no lease behind", async () => {
    const pool = newPool();
    const worker = await stage.worker(`${pool}a`, { pool });
    const ids = await stage.submit(1, { pool, tokens: 3 });
    await expect.poll(sessionsOf(worker.id), HANG).toBeGreaterThan(0);
    worker.child.kill("SIGTERM");
    expect(await worker.ended).toBe(0);
    expect(await stage.outcomes(ids)).toEqual(["all done"]);
    expect(await stage.count(`troupe.worker where id = '${worker.id}'`)).toBe(0);
  });
});
