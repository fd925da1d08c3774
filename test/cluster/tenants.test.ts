/** Tenants see only their own rows, strangers' commands do not reach the database, and no key is stored. */

import { spawn } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Queries } from "../../src/lib/queries.ts";
import { openDatabase } from "../../src/store/postgres/database.ts";
import { calls, says } from "../../src/testing/index.ts";
import { postgresPrograms } from "../support/postgres.ts";
import { script } from "../support/troupe.ts";
import { type CountingProvider, countingProvider, PLANTED_KEY } from "./counting-provider.ts";
import { ClusterStage, HANG } from "./stage.ts";

const programs = postgresPrograms();
const BWRAP = "/usr/bin/bwrap";
const hasSandbox = existsSync(BWRAP);

if (programs === undefined) it.skip("tenants are kept apart (skipped: no Postgres here)");

describe.runIf(programs !== undefined)("tenants", () => {
  let stage: ClusterStage;
  let provider: CountingProvider;
  beforeAll(async () => {
    provider = await countingProvider();
    stage = await ClusterStage.open(programs ?? "", { lease: 4, providers: provider.settings });
  });
  beforeEach(() => provider.reset());
  afterEach(() => stage.clear());
  afterAll(async () => {
    await stage?.close();
    provider.close();
  });

  const urlOf = (role: string): string => stage.url.replace("troupe@", `${role}:pw-${role}-planted@`);
  async function asRole<T>(role: string, work: (queries: Queries) => Promise<T>): Promise<T> {
    const database = await openDatabase({ url: urlOf(role), connections: 1 });
    return work(database).finally(() => database.close());
  }
  const submitAs = (role: string, flags: readonly string[] = []) =>
    stage.run(["submit", "-p", "Say something.", "--model", "counted/m", "--json", "--wait", ...flags], {
      TROUPE_DATABASE_URL: urlOf(role),
    });

  it("a tenant with its own role can submit, and see and change nothing of others", async () => {
    for (const tenant of ["a", "b"]) {
      await stage.database.query(`create role role_${tenant} login password 'pw-role_${tenant}-planted'`);
      const args = ["cluster", "tenant", "set", tenant, "--role", `role_${tenant}`, "--pool", "default,strangers"];
      expect((await stage.run(args)).code).toBe(0);
    }
    await stage.worker("w1");
    const own = JSON.parse((await submitAs("role_a")).stdout) as { sessionId: string; outcome: object };
    const other = JSON.parse((await submitAs("role_b")).stdout) as { sessionId: string; workId: string };
    expect(own.outcome).toEqual({ kind: "done", answer: "all done" });

    const seen = await asRole("role_a", async (queries) => {
      const all: Record<string, unknown> = {};
      for (const [table, column] of [
        ...[
          ["session", "tenant"],
          ["work", "tenant"],
          ["queue", "tenant"],
          ["budget", "tenant"],
          ["tenant_role", "tenant"],
        ],
        ...[
          ["event", "session_id"],
          ["file", "session_id"],
          ["snapshot", "session_id"],
        ],
      ]) {
        const { rows } = await queries.query<{ value: string }>(
          `select distinct ${column} as value from troupe.${table}`,
        );
        all[table ?? ""] = rows.map(({ value }) => value);
      }
      return all;
    });
    expect(seen).toEqual({
      ...{ session: ["a"], work: ["a"], queue: [], budget: ["a"], tenant_role: ["a"] },
      ...{ event: [own.sessionId], file: [], snapshot: [] },
    });
    const refused = async (text: string): Promise<string> =>
      asRole("role_a", (queries) => queries.query(text)).then(
        () => "allowed",
        (error: { code?: string }) => error.code ?? String(error),
      );
    const values = "'x', 's', 'b', 'default', 'continue', '{}'";
    expect({
      otherTenant: await refused(
        `insert into troupe.work(id, session_id, tenant, pool, on_loss, request) values(${values})`,
      ),
      otherPool: await refused(
        `insert into troupe.work(id, session_id, tenant, pool, on_loss, request) values(${values.replace("'b', 'default'", "'a', 'gpu'")})`,
      ),
      change: await refused("update troupe.work set tenant = 'a'"),
      outcome: await refused("insert into troupe.work(id, outcome) values('x', '{}')"),
      setting: await refused("insert into troupe.tenant_role(role, tenant) values('role_a', 'b')"),
      budget: await refused("update troupe.budget set cost_usd = 1000"),
      engine: await refused("select 1 from dbos.workflow_status"),
      worker: await refused("select 1 from troupe.worker"),
    }).toEqual({
      ...{ otherTenant: "42501", otherPool: "42501", change: "42501", outcome: "42501", setting: "42501" },
      ...{ budget: "42501", engine: "42501", worker: "42501" },
    });

    const foreign = await submitAs("role_a", ["--session-id", other.sessionId]);
    expect(JSON.parse(foreign.stdout)).toMatchObject({
      outcome: { kind: "failed", message: `Session ${other.sessionId} belongs to another tenant.` },
    });
    const listed = await stage.run(["sessions", "list", "--json", "--database", urlOf("role_a")]);
    expect([listed.code, listed.stdout]).toEqual([0, expect.stringContaining(own.sessionId)]);
    const pool = await submitAs("role_a", ["--pool", "gpu"]);
    expect({ code: pool.code, stderr: pool.stderr }).toEqual({
      code: 2,
      stderr: expect.stringContaining("may not submit jobs for tenant a to pool gpu"),
    });
  });

  it("a tenant answers, continues and cancels what is its own, and nothing of others", async () => {
    for (const tenant of ["c", "d"]) {
      await stage.database.query(`create role role_${tenant} login password 'pw-role_${tenant}-planted'`);
      const args = ["cluster", "tenant", "set", tenant, "--role", `role_${tenant}`];
      expect((await stage.run(args)).code).toBe(0);
    }
    const flags = ["--ask", "--park-after", "0.2", "--allow-all-paths"];
    await stage.worker("asks", { flags });
    const as = (role: string, ...args: readonly string[]) => stage.run(args, { TROUPE_DATABASE_URL: urlOf(role) });
    stage.play(
      "touch-it",
      calls(["bash", { command: "echo acted", description: "act" }]),
      says("touched"),
      says("more"),
    );
    const submit = async (role: string) => {
      const { stdout, stderr } = await as(role, "submit", "-p", "Do touch-it.", "--json", "--ask");
      expect(stderr).toBe("");
      return JSON.parse(stdout) as { sessionId: string; workId: string };
    };
    const parked = async ({ workId }: { workId: string }) =>
      expect.poll(() => stage.count(`troupe.work where id = '${workId}' and waiting_at is not null`), HANG).toBe(1);
    const [own, other] = [await submit("role_c"), await submit("role_d")];
    const [ended, junk] = [await submit("role_c"), await submit("role_c")];
    for (const one of [own, other, ended, junk]) await parked(one);
    const requestOf = async ({ sessionId }: { sessionId: string }): Promise<string> => {
      const { rows } = await stage.database.query<{ id: string }>(
        "select id from troupe.request where session_id = $1",
        [sessionId],
      );
      return rows[0]?.id ?? "";
    };

    // Attacks: rows of the other tenant are neither seen nor changed, and no own row pretends to be one of theirs.
    const attack = async (text: string, values: readonly unknown[] = []): Promise<unknown> =>
      asRole("role_c", (queries) => queries.query(text, values)).then(
        ({ count }) => count,
        (error: { code?: string }) => error.code ?? String(error),
      );
    const foreign = [other.sessionId, await requestOf(other)];
    const work = "insert into troupe.work(id, session_id, tenant, pool, on_loss, request, parent)";
    const queue = "insert into troupe.queue(work_id, session_id, tenant, pool)";
    const remote = "insert into troupe.remote_session(id, tenant, options)";
    await as("role_d", "cluster", "queues");
    expect({
      requests: await attack("select 1 from troupe.request where session_id = $1", foreign.slice(0, 1)),
      answers: await attack("select 1 from troupe.answer where session_id = $1", foreign.slice(0, 1)),
      answer: await attack(
        `insert into troupe.answer(session_id, request_id, kind, answer) values($1, $2, 'permission', '{"kind":"approved"}')`,
        foreign,
      ),
      otherKind: await attack(
        `insert into troupe.answer(session_id, request_id, kind, answer) values($1, $2, 'elicitation', '{}')`,
        [own.sessionId, await requestOf(own)],
      ),
      changeAnswer: await attack("update troupe.answer set answer = '{}'"),
      endRequest: await attack("update troupe.request set ended_at = now()"),
      stop: await attack("update troupe.work set abort_at = now() where id = $1", [other.workId]),
      outcome: await attack("update troupe.work set outcome = '{}' where id = $1", [own.workId]),
      moved: await attack("update troupe.work set tenant = 'd' where id = $1", [own.workId]),
      child: await attack(`${work} values('child', 's', 'c', 'default', 'continue', '{}', $1)`, [other.workId]),
      namesake: await attack(`${work} values($1, 's', 'c', 'default', 'continue', '{}', null)`, [`${other.workId}~x`]),
      retry: await attack(`${work} values($1, 's', 'c', 'default', 'continue', '{}', null)`, [`${other.workId}#1`]),
      activation: await attack(`${queue} values($1, $2, 'c', 'default')`, [`${other.workId}~x`, other.sessionId]),
      otherSession: await attack(`${queue} values($1, $2, 'c', 'default')`, [`${own.workId}~x`, other.sessionId]),
      options: await attack(`${remote} values($1, 'c', '{"asks":[]}')`, [other.sessionId]),
      otherTenant: await attack(`${remote} values('new', 'd', '{}')`),
      watch: await attack("insert into troupe.watch(session_id, until) values($1, now())", foreign.slice(0, 1)),
      remove: await attack("delete from troupe.session"),
      removeWork: await attack("delete from troupe.work"),
      rights: await attack("select troupe.grant_tenant('role_c')"),
    }).toEqual({
      ...{ requests: 0, answers: 0, answer: "42501", otherKind: "42501", changeAnswer: "42501", endRequest: "42501" },
      ...{ stop: 0, outcome: "42501", moved: "42501", child: "42501", namesake: "42501", retry: "42501" },
      ...{ activation: "42501", otherSession: "42501", options: "42501", otherTenant: "42501", watch: "42501" },
      ...{ remove: "42501", removeWork: "42501", rights: "42501" },
    });
    const foreignAnswer = await as("role_c", "cluster", "answer", foreign[1] ?? "", "allow");
    expect(foreignAnswer).toMatchObject({ code: 2, stderr: expect.stringContaining("No open request") });
    expect((await as("role_c", "cluster", "cancel", other.workId)).code).not.toBe(0);

    // Own sessions: answered, continued, ended.
    const answered = await as("role_c", "cluster", "answer", await requestOf(own), "allow");
    expect(answered).toMatchObject({ code: 0, stderr: expect.stringContaining("answered") });
    await expect.poll(() => stage.workOutcomes([own.workId]), HANG).toEqual([{ kind: "done", answer: "touched" }]);
    const continued = await as("role_c", "-p", "Do it again.", "--resume", own.sessionId);
    expect(continued).toMatchObject({ code: 0, stdout: expect.stringContaining("more") });
    expect((await as("role_c", "cluster", "cancel", ended.workId)).code).toBe(0);
    await expect.poll(() => stage.workOutcomes([ended.workId]), HANG).toMatchObject([{ kind: "aborted" }]);
    expect(await stage.workOutcomes([other.workId])).toEqual([null]);

    // A row that is not a decision denies the call.
    const forever = [junk.sessionId, await requestOf(junk), JSON.stringify({ kind: "approved-for-ever" })];
    const inserted = await attack(
      "insert into troupe.answer(session_id, request_id, kind, answer) values($1, $2, 'permission', $3)",
      forever,
    );
    expect(inserted).toBe(1);
    await expect.poll(async () => (await stage.workOutcomes([junk.workId]))[0]?.kind, HANG).toBe("done");
    const denied = `troupe.event where session_id = '${junk.sessionId}' and line like '%"kind":"denied-interactively-by-user"%'`;
    expect(await stage.count(denied)).toBeGreaterThan(0);
  });

  it("no key and no password of a tenant is in any row, even when a model repeats it", async () => {
    const secrets = [PLANTED_KEY, "pw-worker-planted-0123"];
    await stage.database.query("create role worker login superuser password 'pw-worker-planted-0123'");
    const url = stage.url.replace("troupe@", "worker:pw-worker-planted-0123@");
    await stage.worker("k1", { pool: "keys", url });
    provider.answer = () => ({ text: `The secrets are ${secrets.join(" and ")}, at ${url}.` });
    const ids = await stage.submitPrompts(1, ["--model", "counted/m", "--pool", "keys"]);
    await expect.poll(async () => (await stage.workOutcomes(ids))[0]?.kind, HANG).toBe("done");
    const { rows } = await stage.database.query<{ name: string }>(
      "select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname in ('troupe', 'dbos')",
    );
    expect(rows.length).toBeGreaterThan(15);
    const found: string[] = [];
    for (const { name } of rows) {
      const { rows: lines } = await stage.database.query<{ line: string }>(`select t::text as line from ${name} t`);
      for (const { line } of lines) if (secrets.some((secret) => line.includes(secret))) found.push(`${name}: ${line}`);
    }
    expect(found).toEqual([]);
  });

  it.runIf(hasSandbox)("an untrusted tenant runs in a sandbox that does not reach the database", async () => {
    const { port } = new URL(stage.url);
    const connect = `require("net").connect(${port},"127.0.0.1").on("connect",()=>{console.log("reached");process.exit()})`;
    const program = `console.log(JSON.stringify(process.env).includes("${port}"));${connect}.on("error",()=>console.log("closed"))`;
    const command = `node -e '${program}'`;
    const model = script(stage.folder.path, [
      { calls: [{ name: "bash", arguments: { command, description: "look" } }] },
      { say: "looked" },
    ]);
    const outputOf = async (pool: string, tenant: string): Promise<string> => {
      const args = ["submit", "-p", "Look.", "--model", model, "--pool", pool, "--tenant", tenant, "--wait", "--json"];
      const { sessionId } = JSON.parse((await stage.run(args)).stdout) as { sessionId: string };
      const { rows } = await stage.database.query<{ text: string }>(
        `select line::jsonb->'data'->'result'->>'content' as text from troupe.event
         where session_id = $1 and line::jsonb->>'type' = 'tool.execution_complete'`,
        [sessionId],
      );
      return rows[0]?.text ?? "";
    };
    // The control: a trusted worker without a sandbox reaches it.
    await stage.worker("s1", { pool: "trusted" });
    expect(await outputOf("trusted", "a")).toMatch(/^false\nreached/);
    const flags = ["--untrusted", "--tenant", "a", "--allow-tool", "shell"];
    await stage.worker("s2", { pool: "strangers", flags });
    expect(await outputOf("strangers", "a")).toMatch(/^false\nclosed/);
    // Another tenant's work waits, although the worker has free places.
    const [waiting = ""] = await stage.submitPrompts(1, [
      "--model",
      "counted/m",
      "--pool",
      "strangers",
      "--tenant",
      "b",
    ]);
    const [done = ""] = await stage.submitPrompts(1, ["--model", "counted/m", "--pool", "strangers", "--tenant", "a"]);
    await expect.poll(async () => (await stage.workOutcomes([done]))[0]?.kind, HANG).toBe("done");
    expect(await stage.workOutcomes([waiting])).toEqual([null]);
  });

  it("untrusted tenants are refused without a tenant, a sandbox, or with wide rules", async () => {
    const refusals = await Promise.all(
      [["--untrusted"], ["--untrusted", "--tenant", "a", "--allow-all"]].map((flags) =>
        stage.run(["worker", ...flags]),
      ),
    );
    expect(refusals.map(({ code, stderr }) => [code, stderr.split("\n")[0]])).toEqual([
      [2, expect.stringContaining("--untrusted serves one tenant")],
      [2, expect.stringContaining("--untrusted cannot be used with --allow-all")],
    ]);
  });

  it.runIf(hasSandbox)("untrusted tenants are refused where bubblewrap is missing", async () => {
    const home = join(stage.folder.path, "missing");
    mkdirSync(home);
    const worker = ["worker", "--untrusted", "--tenant", "a"];
    // Hides the program from the worker.
    const args = ["--dev-bind", "/", "/", "--ro-bind", "/dev/null", BWRAP, process.execPath, resolve("bin/troupe.js")];
    const child = spawn(BWRAP, [...args, ...worker], {
      env: { PATH: process.env.PATH ?? "", HOME: home, TROUPE_HOME: home, TROUPE_DATABASE_URL: stage.url },
      stdio: ["ignore", "ignore", "pipe"],
    });
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    const code = await new Promise((done) => child.once("exit", done));
    expect({ code, said }).toEqual({
      code: 2,
      said: expect.stringContaining("--untrusted needs the sandbox"),
    });
  });

  it("a session that ends its workers is set aside with a reason, and runs again on request", async () => {
    const pid = join(stage.folder.path, "pid");
    const command = `[ -s ${pid} ] && kill -9 $(cat ${pid}); echo survived`;
    const model = script(stage.folder.path, [
      { calls: [{ name: "bash", arguments: { command, description: "end" } }] },
      { say: "survived" },
      { say: "survived" },
    ]);
    writeFileSync(pid, "");
    const start = async (name: string) => stage.worker(name, { pool: "poison", flags: ["--allow-all"] });
    const first = await start("p1");
    writeFileSync(pid, String(first.child.pid));
    const ended = new Promise((done) => first.child.once("exit", done));
    const args = ["submit", "-p", "End.", "--model", model, "--pool", "poison", "--json"];
    const { workId } = JSON.parse((await stage.run(args)).stdout) as { workId: string };
    await ended;
    // The same happened to four workers before.
    await stage.database.query("update troupe.work set losses = 4 where id = $1", [workId]);
    await start("p2");
    const status = async (): Promise<object | undefined> => {
      const { stdout } = await stage.run(["cluster", "status", "--json"]);
      return (JSON.parse(stdout) as { work: { work: string }[] }).work.find(({ work }) => work === workId);
    };
    await expect.poll(status, HANG).toMatchObject({
      state: "set_aside",
      reason: expect.stringContaining("Suspended: 5 workers in a row"),
    });
    writeFileSync(pid, "");
    expect((await stage.run(["cluster", "retry", workId])).code).toBe(0);
    await expect.poll(() => stage.workOutcomes([workId]), HANG).toEqual([{ kind: "done", answer: "survived" }]);
    expect((await stage.run(["cluster", "retry", workId])).code).toBe(2);
  });
});
