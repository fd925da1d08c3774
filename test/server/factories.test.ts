import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { approveAll, type CopilotClient, type CopilotSession } from "@github/copilot-sdk";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { says, stalls } from "../../src/testing/index.ts";
import { type ServerStage, serverStage } from "./stage.ts";

const PATIENT = { timeout: 60_000 };

/** One extension with all factories of this file; what their bodies do is told by lines in a file of the test's. */
const extension = `import { defineFactory, joinSession } from "@github/copilot-sdk/extension";
import { appendFileSync } from "node:fs";
const say = (line) => appendFileSync("said.txt", line + "\\n");
const define = (name, run, more = {}) =>
  defineFactory({ meta: { name, description: "Does " + name + ".", phases: [], ...more }, run });
const VERDICT = { type: "object", properties: { real: { type: "boolean" } }, required: ["real"], additionalProperties: false };
await joinSession({
  factories: [
    define("review", async ({ args, agent, phase, log, parallel, step }) => {
      phase("Look");
      const found = await parallel([1, 2, 3].map(() => () => agent("Find a bug in " + args.file)));
      log("found " + found.length);
      phase("Judge");
      const verdict = await agent("Is it real?", { label: "judge", schema: VERDICT, reasoningEffort: "high" });
      const list = await agent("Name two", { label: "namer", schema: { type: "array", items: { type: "string" } } });
      return step("report", () => ({ found, verdict, list }));
    }, { phases: [{ title: "Look" }, { title: "Judge" }, { title: "Mend" }] }),
    define("two", async ({ agent }) => [await agent("first", { label: "a" }), await agent("second", { label: "b" })]),
    define("lost", async ({ agent }) => ({ answer: await agent("Go.", { agent: "nobody" }) })),
    define("steps", async ({ step, signal }) => {
      const one = await step("one", () => { say("one is made"); return "uno"; });
      say("after one");
      if (process.env.HANG === "yes") await new Promise(() => setInterval(() => {}, 1000));
      return one;
    }),
    define("waits", async ({ agent, signal }) => {
      signal.addEventListener("abort", () => say("aborted"));
      say("waits");
      return agent("Take your time.");
    }),
    define("sleeps", async ({ signal }) => {
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    }),
    define("dies", async () => process.exit(7)),
  ],
});`;

let stage: ServerStage;
beforeAll(async () => {
  stage = await serverStage();
  const path = stage.folder.at("home/extensions/works/extension.mjs");
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, extension);
});
afterAll(() => stage[Symbol.asyncDispose]());

const said = async (): Promise<string[]> =>
  (await readFile(stage.folder.at("work/said.txt"), "utf8").catch(() => "")).split("\n").filter(Boolean);

async function joined(session: CopilotSession): Promise<CopilotSession> {
  const status = async () => (await session.rpc.extensions.list()).extensions.map((one) => one.status).join();
  await expect.poll(status, PATIENT).toBe("running");
  return session;
}

async function opened(client: CopilotClient = stage.client): Promise<CopilotSession> {
  await rm(stage.folder.at("work/said.txt"), { force: true });
  return joined(await client.createSession({ onPermissionRequest: approveAll, requestExtensions: true }));
}

describe("a factory", () => {
  it("a factory has agents that are tasks of the session, each call made once, and its run can be watched", async () => {
    const session = await opened();
    const updates: number[] = [];
    session.on("factory.run_updated", ({ data }) => void updates.push(data.revision));
    const started: unknown[] = [];
    session.on("subagent.started", ({ data }) => void started.push(Reflect.get(data, "factoryRunId")));
    const before = stage.model.requests.length;
    stage.play(
      says("A bug."),
      says('Sure.\n```json\n{"value": {"real": true, "note": "yes"}}\n```'),
      says('{"value": ["x", "y"]}'),
    );
    const run = await session.factory.run("review", { args: { file: "a.txt" } });
    expect(run).toEqual({
      runId: run.runId,
      attempt: 1,
      status: "completed",
      result: { found: ["A bug.", "A bug.", "A bug."], verdict: { real: true, note: "yes" }, list: ["x", "y"] },
    });
    const asked = stage.model.requests.slice(before).map(({ body }) => body as { reasoning_effort?: string });
    expect(asked.map((body) => body.reasoning_effort)).toEqual([undefined, "high", undefined]);
    expect(started).toEqual([run.runId, run.runId, run.runId]);
    const { tasks } = await session.rpc.tasks.list();
    expect(tasks.map(({ status }) => status)).toEqual(["completed", "completed", "completed"]);
    const detail = await session.factory.getRunDetail(run.runId);
    expect(detail).toMatchObject({
      ...{ factoryName: "review", status: "completed", declaredPhaseCount: 3, liveAgentCount: 0 },
      ...{ totalSpawnedAgentCount: 3, currentPhase: { id: "phase-2", ordinal: 1 }, approved: {} },
      consumed: { subagents: 3 },
    });
    expect(detail.phases.map(({ title, status, totalAgentCount }) => [title, status, totalAgentCount])).toEqual([
      ["Look", "completed", 1],
      ["Judge", "completed", 2],
      ["Mend", "skipped", 0],
    ]);
    expect(detail.agents.map(({ label, agentType, status }) => [label, agentType, status])).toEqual([
      ["agent", "general-purpose", "completed"],
      ["judge", "general-purpose", "completed"],
      ["namer", "general-purpose", "completed"],
    ]);
    expect(JSON.stringify(detail)).not.toMatch(/Find a bug/);
    const { records } = await session.factory.getRunProgress(run.runId, { limit: 2 });
    expect(records.map(({ kind, text }) => `${kind} ${text}`)).toEqual(["log found 3", "phase Judge"]);
    expect(updates.length).toBeGreaterThan(5);
    expect(updates).toEqual([...updates].sort((a, b) => a - b));
    // The main agent was not told of any of it.
    stage.play(says("Hello."));
    await session.sendAndWait("Hi.");
    expect(JSON.stringify(stage.model.requests.at(-1)?.body)).not.toMatch(/A bug/);
    await session.disconnect();
  });

  it("a factory ends at a limit with its kind, and continues from there with a higher one", async () => {
    const session = await opened();
    stage.play(says("one"));
    const run = await session.factory.run("two", { limits: { maxTotalSubagents: 1 } });
    expect(run).toMatchObject({
      status: "error",
      failure: { type: "factory_limit_reached", kind: "maxTotalSubagents", value: 1, runId: run.runId },
      snapshot: { journal: [] },
    });
    stage.play(says("two"));
    const limits = { maxTotalSubagents: 2 };
    const [again, twice] = await Promise.allSettled([
      session.factory.resume(run.runId, { limits }),
      session.factory.resume(run.runId, { limits }),
    ]).then((both) => both.map((one) => (one.status === "fulfilled" ? one.value : one.reason)));
    expect(twice).toMatchObject({ code: "already_active" });
    expect(again).toMatchObject({ runId: run.runId, status: "completed", result: ["one", "two"] });
    const [summary] = await session.factory.listRuns();
    expect(summary).toMatchObject({ runId: run.runId, status: "completed", totalSpawnedAgentCount: 2 });
    const late = await session.factory.run("sleeps", { limits: { timeoutSeconds: 0.2 } });
    expect(late).toMatchObject({ status: "error", failure: { kind: "timeoutSeconds", value: 0.2 } });
    await expect(session.factory.run("two", { limits: { maxTotalSubagents: 0 } })).rejects.toThrow(/positive whole/);
    await expect(session.factory.run("three")).rejects.toThrow(/Available: review, two/);
    await session.disconnect();
  });

  it("a factory keeps a budget only where prices are known", async () => {
    const session = await opened();
    const run = await session.factory.run("two", { limits: { maxAiCredits: 5 } });
    expect(run).toMatchObject({ status: "error", failure: { type: "factory_accounting_incomplete" } });
    await session.disconnect();
  });

  it("a factory continues without an agent that cannot start, and reports that", async () => {
    const session = await opened();
    const run = await session.factory.run("lost");
    expect(run).toMatchObject({ status: "completed", result: { answer: null } });
    const { records } = await session.factory.getRunProgress(run.runId);
    expect(records.map(({ text }) => text).join()).toMatch(/nobody: There is no agent "nobody"/);
    await session.disconnect();
  });

  it("a factory is cancelled at once, with its agents", async () => {
    const session = await opened();
    stage.play(stalls());
    const before = stage.model.requests.length;
    const running = session.factory.run("waits");
    await expect.poll(said, PATIENT).toEqual(["waits"]);
    await expect.poll(() => stage.model.requests.length, PATIENT).toBe(before + 1);
    const active = async () => (await session.factory.listRuns())[0];
    await expect.poll(async () => (await active())?.liveAgentCount, PATIENT).toBe(1);
    const runId = (await active())?.runId ?? "";
    await expect(session.factory.resume(runId)).rejects.toMatchObject({ code: "already_active" });
    expect(await session.factory.cancel(runId)).toMatchObject({ runId, status: "cancelled" });
    expect(await running).toMatchObject({ status: "cancelled" });
    await expect.poll(said, PATIENT).toEqual(["waits", "aborted"]);
    const statuses = async () => (await session.rpc.tasks.list()).tasks.map(({ status }) => status);
    await expect.poll(statuses, PATIENT).toEqual(["cancelled"]);
    await session.disconnect();
  });

  it("a factory is halted when its extension dies, and can be resumed when it is back", async () => {
    const session = await opened();
    const run = await session.factory.run("dies");
    expect(run).toMatchObject({ status: "halted", reason: expect.stringContaining("extension") });
    await expect(session.factory.resume(run.runId)).rejects.toMatchObject({ code: "non_resumable" });
    await session.rpc.extensions.enable({ id: "user:works" });
    await joined(session);
    expect(await session.factory.resume(run.runId)).toMatchObject({ status: "halted" });
    await session.disconnect();
  });

  it("a factory's run is controlled only by the program that runs it", async () => {
    const session = await opened();
    stage.play(stalls());
    const before = stage.model.requests.length;
    const running = session.factory.run("waits");
    await expect.poll(said, PATIENT).toEqual(["waits"]);
    await expect.poll(() => stage.model.requests.length, PATIENT).toBe(before + 1);
    const [{ runId = "" } = {}] = await session.factory.listRuns();
    const { factory } = session.rpc;
    const from = { runId, executionToken: "guessed" };
    await expect(factory.journal.put({ ...from, key: "k", resultJson: 1 })).rejects.toThrow(/is over/);
    await expect(factory.log({ ...from, lines: [] })).rejects.toThrow(/is over/);
    const opts = {};
    await expect(factory.agent({ ...from, factoryRunId: runId, prompt: "x", opts })).rejects.toThrow(/is over/);
    await session.factory.cancel(runId);
    await running;
    await session.disconnect();
  });
});

describe("a run that was cut off", () => {
  it("a factory run that was cut off survives a kill, and repeats no step", async () => {
    const client = stage.newClient();
    const hanging = extension.replace('process.env.HANG === "yes"', "true");
    const path = stage.folder.at("home/extensions/works/extension.mjs");
    await writeFile(path, hanging);
    const session = await opened(client);
    void session.factory.run("steps").catch(() => undefined);
    await expect.poll(said, PATIENT).toEqual(["one is made", "after one"]);
    const [{ runId = "" } = {}] = await session.factory.listRuns();
    await client.forceStop();
    await writeFile(path, extension);
    const next = await joined(
      await stage.client.resumeSession(session.sessionId, { onPermissionRequest: approveAll, requestExtensions: true }),
    );
    expect(await next.factory.getRun(runId)).toMatchObject({
      status: "halted",
      snapshot: { journal: [{ key: "one", result: "uno" }] },
    });
    expect(await next.factory.resume(runId)).toMatchObject({ runId, status: "completed", result: "uno" });
    expect(await said()).toEqual(["one is made", "after one", "after one"]);
    await next.disconnect();
  });

  it("a factory run ends with its session", async () => {
    const session = await opened();
    const running = session.factory.run("sleeps").catch(() => undefined);
    await expect.poll(async () => (await session.factory.listRuns()).length, PATIENT).toBe(1);
    const [{ runId = "" } = {}] = await session.factory.listRuns();
    await session.disconnect();
    await running;
    const next = await stage.client.resumeSession(session.sessionId, { onPermissionRequest: approveAll });
    expect(await next.factory.getRun(runId)).toMatchObject({ status: "halted", reason: "The session was closed." });
    await next.disconnect();
  });
});
