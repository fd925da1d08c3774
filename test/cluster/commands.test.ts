/** The commands of a user against a real Postgres server: stored sessions, drained workers, and errors of the database. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { createClient } from "../../src/sdk/sdk.ts";
import { inProcessGateway } from "../../src/server/gateway/in-process-gateway.ts";
import { TerminalSession } from "../../src/terminal/session.ts";
import { calls, says } from "../../src/testing/index.ts";
import type { ClusterView } from "../../src/web/api.ts";
import { webCluster } from "../../src/web/cluster/cluster.ts";
import { postgresPrograms } from "../support/postgres.ts";
import { ClusterStage, HANG } from "./stage.ts";

const programs = postgresPrograms();

if (programs === undefined) it.skip("commands work on a database (skipped: no Postgres here)");

describe.runIf(programs !== undefined)("commands on a database", () => {
  let stage: ClusterStage;

  beforeAll(async () => {
    stage = await ClusterStage.open(programs ?? "");
    stage.spawnWorker("one");
  });
  afterAll(() => stage?.close());

  const rows = (table: string, text: string) => (JSON.parse(text) as Record<string, readonly object[]>)[table];

  it("commands on a database list, search and count its sessions, and ignore those of this machine", async () => {
    stage.play("giraffe", says("giraffes are tall"));
    const submitted = await stage.run(["submit", "-p", "Say giraffe.", "--wait", "--json"]);
    const { sessionId, outcome } = JSON.parse(submitted.stdout) as { sessionId: string; outcome: object };
    expect(outcome).toEqual({ kind: "done", answer: "giraffes are tall" });
    const read = await Promise.all([
      stage.run(["sessions", "list", "--json"]),
      stage.run(["search", "giraffes", "--json"]),
      stage.run(["usage", "--json"]),
      stage.run(["tasks", "list", "--session", sessionId, "--json"]),
      stage.run(["sessions", "list", "--json", "--database", "local"]),
    ]);
    expect(read.map(({ code }) => code)).toEqual([0, 0, 0, 0, 0]);
    const [list, found, usage, tasks, local] = read.map(({ stdout }) => JSON.parse(stdout));
    expect(list).toMatchObject([{ sessionId, title: "Say giraffe.", turns: 1 }]);
    expect(found).toMatchObject([{ sessionId, places: [{ source: "turn" }] }]);
    expect(usage).toMatchObject({ total: { calls: 1 } });
    expect([tasks, local]).toEqual([[], []]);
    expect(await stage.run(["sessions", "delete", sessionId])).toMatchObject({ code: 0 });
    expect((await stage.run(["sessions", "list", "--json"])).stdout).toBe("[]\n");
  });

  it("commands on a database continue a session with a message, and join it in a terminal", async () => {
    stage.play("zebra", says("zebras have stripes"));
    stage.play("okapi", says("okapis do, too"));
    stage.play("lion", says("lions do not"));
    const first = await stage.run(["-p", "Say zebra.", "--database", stage.url]);
    expect(first).toMatchObject({ code: 0, stdout: "zebras have stripes\n" });
    const second = await stage.run(["-p", "Say okapi.", "--continue", "--json"]);
    const lines = second.stdout.trim().split("\n");
    const events = lines.map((line) => JSON.parse(line) as { type?: string; sessionId?: string; outcome?: object });
    expect(events.map(({ type }) => type)).toEqual(expect.arrayContaining(["user.message", "assistant.message"]));
    expect(events.at(-1)).toMatchObject({ outcome: { kind: "done", answer: "okapis do, too" } });
    const client = createClient({ connection: inProcessGateway({ url: stage.url, home: stage.folder.at("gateway") }) });
    const resumeId = events.at(-1)?.sessionId;
    const session = await TerminalSession.open({
      client: await client,
      cwd: undefined,
      resumeId,
      onChange: () => undefined,
    });
    const texts = () => session.drain().map((block) => JSON.stringify(block));
    const shown = texts();
    for (const text of ["Say zebra.", "zebras have stripes", "okapis do, too"]) expect(shown.join()).toContain(text);
    await session.send("Say lion.", "queue");
    await expect.poll(() => shown.push(...texts()) && shown.join(), HANG).toContain("lions do not");
    await session.close();
    await (await client).stop();
  });

  it("troupe diff shows what a session of a database changed on a worker, and troupe undo says where to undo it", async () => {
    const create = (path: string, file_text: string) => ["create", { path, file_text }] as const;
    stage.play(
      "poem",
      calls(["bash", { command: "echo old > there.txt", description: "write" }]),
      calls(create("poem.txt", "one\ntwo\n"), create("gone.txt", "gone\n")),
      calls(
        ["edit", { path: "poem.txt", old_str: "two", new_str: "three" }],
        ["edit", { path: "there.txt", old_str: "old", new_str: "new" }],
      ),
      calls(["bash", { command: "rm gone.txt", description: "remove" }]),
      says("done"),
    );
    const submitted = await stage.run(["submit", "-p", "Write a poem.", "--wait", "--json"]);
    const { sessionId } = JSON.parse(submitted.stdout) as { sessionId: string };
    const shown = await stage.run(["diff", sessionId]);
    const gone =
      "diff --git a/gone.txt b/gone.txt\nnew file mode 100644\n--- /dev/null\n+++ b/gone.txt\n@@ -0,0 +1,1 @@\n+gone\n";
    const poem =
      "diff --git a/poem.txt b/poem.txt\nnew file mode 100644\n--- /dev/null\n+++ b/poem.txt\n@@ -0,0 +1,2 @@\n+one\n+three\n";
    expect(shown).toEqual({
      code: 0,
      stdout: expect.stringContaining(gone + poem),
      stderr: expect.stringContaining("commands are left out"),
    });
    // The copy of the text before can be read on its worker only.
    expect(shown.stdout).toMatch(/there\.txt[\s\S]*\n-old\n\+new\n$/);
    const undone = await stage.run(["undo", "--session", sessionId, "--database", stage.url]);
    expect(undone).toMatchObject({ code: 2, stderr: expect.stringContaining("cannot be undone here") });
  });

  it("commands on a database drain workers and undo that", async () => {
    const state = async () => rows("workers", (await stage.run(["cluster", "workers", "--json"])).stdout);
    const worker = stage.workerIds.get("one") ?? "";
    expect(await stage.run(["cluster", "drain", worker])).toMatchObject({ code: 0 });
    await expect.poll(state, HANG).toMatchObject([{ worker, state: "drained", sessions: 0 }]);
    await stage.submit(1, { tokens: 0 });
    // A worker that takes work asks for it every 100 ms.
    await new Promise((resolve) => setTimeout(resolve, 500));
    const queues = await stage.run(["cluster", "queues", "--json"]);
    expect(rows("queues", queues.stdout)).toEqual([
      {
        ...{ pool: "default", tenant: "default", waiting: 1, running: 0 },
        parked: 0,
        set_aside: 0,
        oldest_s: expect.any(Number),
      },
    ]);
    expect(await stage.run(["cluster", "drain", "--pool", "default", "--undo"])).toMatchObject({ code: 0 });
    await expect.poll(() => stage.count("troupe.work where outcome->>'answer' = 'all done'"), HANG).toBe(1);
    expect(await state()).toMatchObject([{ worker, state: "alive" }]);
  });

  it("the dashboard of a cluster shows the same as the commands, retries work and drains workers", async () => {
    const cluster = webCluster({
      url: stage.url,
      home: stage.folder.at("dashboard"),
      disk: nodeDisk,
      onRequests: () => undefined,
    });
    const { methods } = cluster;
    const call = async <T>(name: string, params = {}): Promise<T> => (await methods[`web.${name}`]?.(params)) as T;
    const view = () => call<ClusterView>("cluster");
    const worker = stage.workerIds.get("one") ?? "";
    const [done] = (await view()).sessions;
    expect(done).toMatchObject({ state: "done", worker, tenant: "default", pool: "default", open: 0, takeOvers: 0 });
    expect(await view()).toMatchObject({ workers: [{ worker, state: "alive", concurrency: 8 }], queues: [] });
    const types: string[] = [];
    for await (const { type } of cluster.sessions.events(done?.session ?? "")) types.push(type);
    expect(types).toEqual(expect.arrayContaining(["user.message", "assistant.message"]));
    await stage.database.query(`update troupe.work set outcome = '{"kind":"lost"}' where id = $1`, [done?.work]);
    await call("retryWork", { work: done?.work });
    await expect
      .poll(async () => (await view()).sessions[0], HANG)
      .toMatchObject({ ...done, lastActivity: expect.any(Date) });
    await call("drain", { worker, isAsked: true });
    await expect.poll(async () => (await view()).workers, HANG).toMatchObject([{ worker, state: "drained" }]);
    await call("drain", { worker, isAsked: false });
    await expect.poll(async () => (await view()).workers, HANG).toMatchObject([{ worker, state: "alive" }]);
    await cluster.close();
  });

  it("commands on a database report its problem in one sentence", async () => {
    await stage.database.query("create database empty");
    await stage.database.query("create role stranger login");
    const { url } = stage;
    const at = (change: Partial<URL>): string => Object.assign(new URL(url), change).href;
    const reasons: readonly (readonly [string, string])[] = [
      [at({ port: "9" }), "No database answers at 127.0.0.1:9."],
      [at({ pathname: "/nope" }), "has no database nope."],
      [at({ username: "nobody" }), "refuses the user nobody."],
      [at({ username: "stranger" }), "The database role stranger has no right"],
      [at({ hostname: "nohost.invalid" }), "The host of the database is not known: nohost.invalid."],
      ["http://127.0.0.1/x", "is not a Postgres URL."],
      [at({ pathname: "/empty" }), "The database has no tables of troupe."],
    ];
    const tries = reasons.map(async ([given, reason]) => {
      const { code, stderr } = await stage.run(["cluster", "status"], { TROUPE_DATABASE_URL: given });
      expect({ code, lines: stderr.trim().split("\n").length, stderr }).toEqual({
        ...{ code: 2, lines: 1, stderr: expect.stringContaining(reason) },
      });
    });
    await Promise.all(tries);
    const empty = { TROUPE_DATABASE_URL: at({ pathname: "/empty" }) };
    expect(await stage.run(["submit", "-p", "Wait for a worker."], empty)).toMatchObject({ code: 0, stderr: "" });
    const { stdout } = await stage.run(["cluster", "status", "--json"], empty);
    expect(JSON.parse(stdout)).toMatchObject({ workers: [], work: [{ state: "queued" }] });
  });
});
