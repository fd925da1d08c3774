/** Programs of the published SDK on sessions that workers run: they notice nothing of moves, and lose nothing. */

import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { approveAll, CopilotClient, defineTool, RuntimeConnection, type SessionEvent } from "@github/copilot-sdk";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { deferred } from "../../src/lib/deferred.ts";
import { Client } from "../../src/sdk/client.ts";
import { calls, says } from "../../src/testing/index.ts";
import { postgresPrograms } from "../support/postgres.ts";
import { violations } from "./invariants.ts";
import { ClusterStage, HANG, type StagedWorker } from "./stage.ts";

const programs = postgresPrograms();
const LONG_MS = 150_000;

if (programs === undefined) it.skip("the published SDK drives sessions of workers (skipped: no Postgres here)");

describe.runIf(programs !== undefined)("a program of the published SDK", () => {
  let stage: ClusterStage;

  beforeAll(async () => {
    stage = await ClusterStage.open(programs ?? "", { lease: 4 });
  });
  afterEach(() => stage.clear());
  afterAll(() => stage?.close());

  let workers = 0;
  const startWorker = (flags: readonly string[] = []): Promise<StagedWorker> =>
    stage.worker(`w${++workers}`, { home: "home", flags });

  function newClient(): CopilotClient {
    const env = {
      PATH: process.env.PATH ?? "",
      HOME: stage.folder.path,
      TROUPE_HOME: join(stage.folder.path, "gateway"),
    };
    const args = ["--database", stage.url];
    const client = new CopilotClient({
      connection: RuntimeConnection.forStdio({ path: resolve("bin/troupe.js"), args, env }),
      workingDirectory: stage.folder.path,
    });
    onTestFinished(async () => void (await client.forceStop()));
    return client;
  }
  const at = (name: string): string => join(stage.repositories, name);
  const bash = (command: string) => calls(["bash", { command, description: "act" }]);
  const newWord = (): string => `task-${crypto.randomUUID()}`;
  const requestsOf = async (sessionId: string, kind: string): Promise<readonly string[]> => {
    const { rows } = await stage.database.query<{ id: string }>(
      "select id from troupe.request where session_id = $1 and kind = $2 and ended_at is null",
      [sessionId, kind],
    );
    return rows.map(({ id }) => id);
  };
  const waitingWork = async (sessionId: string): Promise<number> =>
    (
      await stage.database.query("select 1 from troupe.work where session_id = $1 and waiting_at is not null", [
        sessionId,
      ])
    ).count;

  it("a program of the published SDK gets its answer while its session moves twice after killed workers", async () => {
    const [word, started, effects] = [newWord(), at("started"), at("moved.txt")];
    stage.play(
      word,
      bash(`touch ${started}; sleep 60`),
      calls(["lookup", { key: "colour" }]),
      bash(`echo acted >> ${effects}`),
      says("the colour is green"),
    );
    const asking = ["--ask", "--park-after", "60"];
    const first = await startWorker(asking);
    const begun = deferred<void>();
    const released = deferred<void>();
    let lookups = 0;
    const heard: SessionEvent[] = [];
    const lookup = defineTool("lookup", {
      description: "Looks up a value.",
      parameters: { type: "object", properties: { key: { type: "string" } } },
      skipPermission: true,
      handler: async () => {
        lookups++;
        begun.resolve();
        await released.promise;
        return "green";
      },
    });
    const client = newClient();
    const session = await client.createSession({
      tools: [lookup],
      onPermissionRequest: approveAll,
      onEvent: (event) => void heard.push(event),
    });
    const answer = session.sendAndWait({ prompt: `Do ${word}.` }, LONG_MS);
    await expect.poll(() => existsSync(started), HANG).toBe(true);
    const second = await startWorker(asking);
    first.child.kill("SIGKILL");
    await begun.promise;
    await expect.poll(() => requestsOf(session.sessionId, "external_tool"), HANG).toHaveLength(1);
    await startWorker(asking);
    second.child.kill("SIGKILL");
    released.resolve();
    expect((await answer)?.data.content).toBe("the colour is green");
    expect(lookups).toBe(1);
    expect(readFileSync(effects, "utf8")).toBe("acted\n");
    const stored = await session.getEvents();
    const ids = stored.filter(({ type }) => type !== "session.shutdown").map(({ id }) => id);
    expect(heard.filter(({ ephemeral }) => !ephemeral).map(({ id }) => id)).toEqual(ids);
    const { rows } = await stage.database.query<{ epochs: number }>(
      "select count(distinct epoch)::int as epochs from troupe.event where session_id = $1",
      [session.sessionId],
    );
    expect(rows[0]?.epochs).toBe(3);
    expect(await violations(stage.database)).toEqual([]);
  });

  it("a program of the published SDK can be lost: another client answers its requests and reads the rest", async () => {
    await startWorker(["--ask", "--park-after", "0.2"]);
    const [word, effects] = [newWord(), at("lost.txt")];
    stage.play(
      word,
      calls(["ask_user", { question: "Which colour?" }]),
      bash(`echo acted >> ${effects}`),
      says("done"),
    );
    const lost = newClient();
    const before = await lost.createSession({
      onPermissionRequest: () => ({ kind: "no-result" }),
      onUserInputRequest: () => new Promise(() => undefined),
    });
    await before.send({ prompt: `Do ${word}.` });
    await expect.poll(() => waitingWork(before.sessionId), HANG).toBe(1);
    await lost.forceStop();
    const client = newClient();
    const heard: SessionEvent[] = [];
    const session = await client.resumeSession(before.sessionId, {
      onPermissionRequest: approveAll,
      onUserInputRequest: ({ question }) => ({ answer: `${question} Green.`, wasFreeform: true }),
      onEvent: (event) => void heard.push(event),
    });
    await expect.poll(() => heard.map(({ type }) => type), HANG).toContain("session.idle");
    expect(readFileSync(effects, "utf8")).toBe("acted\n");
    expect(JSON.stringify(await session.getEvents())).toContain("Which colour? Green.");
    expect((await client.listSessions()).map(({ sessionId }) => sessionId)).toContain(session.sessionId);
    await client.deleteSession(session.sessionId);
    expect((await client.listSessions()).map(({ sessionId }) => sessionId)).not.toContain(session.sessionId);
  });

  it("a program of the published SDK gets a permission request that was sent before it joined", async () => {
    await startWorker(["--ask", "--park-after", "0.2"]);
    const [word, effects] = [newWord(), at("joined.txt")];
    stage.play(word, bash(`echo acted >> ${effects}`), says("done"));
    const lost = newClient();
    const before = await lost.createSession({ onPermissionRequest: () => ({ kind: "no-result" }) });
    await before.send({ prompt: `Do ${word}.` });
    await expect.poll(() => waitingWork(before.sessionId), HANG).toBe(1);
    await lost.forceStop();
    await newClient().resumeSession(before.sessionId, { onPermissionRequest: approveAll });
    await expect.poll(() => existsSync(effects), HANG).toBe(true);
    await expect.poll(() => requestsOf(before.sessionId, "permission"), HANG).toEqual([]);
    expect(readFileSync(effects, "utf8")).toBe("acted\n");
  });

  it("a program of the published SDK aborts work, sees failures, and sends no keys or programs to workers", async () => {
    await startWorker(["--allow-all-tools"]);
    const [word, started] = [newWord(), at("aborting")];
    stage.play(word, bash(`touch ${started}; sleep 60`), says("never"));
    const client = newClient();
    const heard: SessionEvent[] = [];
    const session = await client.createSession({
      onPermissionRequest: approveAll,
      onEvent: (event) => void heard.push(event),
    });
    await session.send({ prompt: `Do ${word}.` });
    await expect.poll(() => existsSync(started), HANG).toBe(true);
    await session.abort();
    await expect.poll(() => heard.map(({ type }) => type), HANG).toContain("session.idle");
    expect(heard.map(({ type }) => type)).toContain("abort");
    const failing = await client.createSession({ onPermissionRequest: approveAll, agent: "no-such-agent" });
    await expect(failing.sendAndWait({ prompt: "x" }, LONG_MS)).rejects.toThrow(/no-such-agent/);
    const provider = { type: "openai", baseUrl: "http://127.0.0.1:9", apiKey: "secret" } as const;
    await expect(client.createSession({ onPermissionRequest: approveAll, provider, model: "x" })).rejects.toThrow(
      /provider cannot be used/,
    );
    const { count } = await stage.database.query(
      "select 1 from troupe.remote_session where options::text like '%secret%'",
    );
    expect(count).toBe(0);
  });

  it("a program can use our own SDK with a cluster", async () => {
    await startWorker();
    const word = newWord();
    stage.play(word, says("hello"));
    const env = {
      PATH: process.env.PATH ?? "",
      HOME: stage.folder.path,
      TROUPE_HOME: join(stage.folder.path, "gateway"),
    };
    const client = new Client({
      connection: { kind: "stdio", path: resolve("bin/troupe.js"), args: ["--database", stage.url] },
      environment: env,
    });
    onTestFinished(async () => void (await client.forceStop()));
    const session = await client.createSession({});
    expect((await session.sendAndWait(`Say ${word}.`))?.data.content).toBe("hello");
  });
});
