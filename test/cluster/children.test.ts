/** Agents that run as sessions of their own on other workers. Long versions: `npm run test:cluster`. */

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { calls, type HttpPlay, says } from "../../src/testing/index.ts";
import { postgresPrograms } from "../support/postgres.ts";
import { check } from "./checker.ts";
import { startAgentLate } from "./late-answer.ts";
import { ClusterStage, HANG, SLOW } from "./stage.ts";

const programs = postgresPrograms();

if (programs === undefined) it.skip("agents run on other workers (skipped: no Postgres here)");

describe.runIf(programs !== undefined)("agents elsewhere", { timeout: 180_000 }, () => {
  let stage: ClusterStage;
  let repository: string;

  beforeAll(async () => {
    stage = await ClusterStage.open(programs ?? "", { lease: 4 });
    repository = join(stage.repositories, "app");
    mkdirSync(repository);
    const author = ["-c", "user.name=t", "-c", "user.email=t@t"];
    execFileSync("git", ["init", "-q", "-b", "main"], { cwd: repository });
    execFileSync("git", [...author, "commit", "-q", "--allow-empty", "-m", "start"], { cwd: repository });
  });
  afterEach(() => stage.clear());
  afterAll(() => stage?.close());

  const newWord = (): string => `word-${crypto.randomUUID()}`;
  const task = (prompt: string, more: object = {}) =>
    calls([
      "task",
      {
        ...{ agent_type: "general-purpose", name: "helper", description: "help", mode: "sync", isolation: "worktree" },
        ...{ prompt, ...more },
      },
    ]);

  const bash = (command: string) => calls(["bash", { command, description: "act" }]);

  async function submit(steps: readonly HttpPlay[], ...flags: string[]) {
    const word = newWord();
    stage.play(word, ...steps);
    const args = ["submit", "-p", `Do ${word}.`, "--json", "--repo", repository, ...flags];
    const { stdout, stderr } = await stage.run(args);
    expect(stderr).toBe("");
    return JSON.parse(stdout) as { workId: string; sessionId: string };
  }
  const outcomeOf = async (workId: string): Promise<unknown> => (await stage.workOutcomes([workId]))[0];
  const eventsOf = async (sessionId: string, type: string): Promise<readonly Record<string, unknown>[]> => {
    const { rows } = await stage.database.query<{ event: Record<string, unknown> }>(
      "select line::jsonb as event from troupe.event where session_id = $1 and line::jsonb->>'type' = $2 order by seq",
      [sessionId, type],
    );
    return rows.map(({ event }) => event);
  };

  /** A command that ends when `release` is called. */
  function heldCommand(): { readonly path: string; readonly step: HttpPlay; release(): void } {
    const path = join(stage.repositories, `held-${crypto.randomUUID()}`);
    const command = `echo "$PPID" >> '${path}.runs'; while [ ! -e '${path}' ]; do sleep 0.1; done; echo acted`;
    return { path: `${path}.runs`, step: bash(command), release: () => writeFileSync(path, "") };
  }
  const runsOf = (path: string): number => (existsSync(path) ? readFileSync(path, "utf8").split("\n").length - 1 : 0);
  const isRunning = (path: string) => expect.poll(() => runsOf(path), HANG).toBe(1);
  /** Resolves when the worker has this session and takes no other one. */
  async function hasOnly(worker: string, sessionId: string): Promise<void> {
    const held = `troupe.session where id = '${sessionId}' and holder = '${worker}'`;
    await expect.poll(() => stage.count(held), HANG).toBe(1);
    expect((await stage.run(["cluster", "drain", worker])).code).toBe(0);
    await expect.poll(() => stage.count(`troupe.worker where id = '${worker}' and draining`), HANG).toBe(1);
  }
  const expectOnce = async (sessionId: string): Promise<void> => {
    expect(await eventsOf(sessionId, "troupe.task_sent")).toHaveLength(1);
    expect(await eventsOf(sessionId, "troupe.task_returned")).toHaveLength(1);
    const ends = (await eventsOf(sessionId, "troupe.task_state")).filter(
      ({ data }) => (data as { to: string }).to === "completed",
    );
    expect(ends).toHaveLength(1);
    await stage.rest();
    expect(check(await stage.record())).toEqual([]);
  };

  it.runIf(SLOW)(
    "an agent on another worker returns its answer to the call, and runs in a session of its own",
    async () => {
      const word = newWord();
      stage.play(word, says("the helper's answer"));
      await stage.worker("a");
      const { workId, sessionId } = await submit([task(`Do ${word}.`), says("all done")]);
      await expect.poll(() => outcomeOf(workId), HANG).toEqual({ kind: "done", answer: "all done" });
      const [result] = await eventsOf(sessionId, "tool.execution_complete");
      expect(JSON.stringify(result)).toContain("the helper's answer");
      expect(await stage.count(`troupe.work where session_id = '${sessionId}.helper' and parent = '${workId}'`)).toBe(
        1,
      );
      await expectOnce(sessionId);
    },
  );

  it.runIf(SLOW)(
    "an agent on another worker starts with its session's files, and returns its changes on a branch",
    async () => {
      const word = newWord();
      const commit = "git -c user.name=t -c user.email=t@t commit -qm";
      stage.play(word, bash(`cat new.txt && echo more >> new.txt && git add -A && ${commit} helped`), says("changed"));
      await stage.worker("files");
      const { workId, sessionId } = await submit([
        bash("echo one > new.txt"),
        task(`Do ${word}.`),
        bash(`b=$(git for-each-ref --format='%(refname)' refs/heads/troupe); git show "$b:new.txt"; cat new.txt`),
        says("all done"),
      ]);
      await expect.poll(() => outcomeOf(workId), HANG).toEqual({ kind: "done", answer: "all done" });
      const results = (await eventsOf(sessionId, "tool.execution_complete")).map((event) => JSON.stringify(event));
      expect(results[1]).toContain("on the branch troupe/");
      expect(results[2]).toContain(JSON.stringify("one\nmore\none").slice(1, -1));
      await expectOnce(sessionId);
    },
  );

  it("an agent on another worker holds no slot for the session that waits for it", async () => {
    const word = newWord();
    stage.play(word, says("the helper's answer"));
    await stage.worker("one", { concurrency: 1, flags: ["--allow-all-tools", "--park-after", "0.2"] });
    const { workId, sessionId } = await submit([task(`Do ${word}.`), says("all done")]);
    await expect.poll(() => outcomeOf(workId), HANG).toEqual({ kind: "done", answer: "all done" });
    await expectOnce(sessionId);
  });

  it("an agent on another worker answers its call, also if it was started when a second worker took the session", async () => {
    const word = newWord();
    stage.play(word, says("the helper's answer"));
    await stage.worker("late");
    const before = await submit([task(`Do ${word}.`), says("all done")]);
    await expect.poll(() => outcomeOf(before.workId), HANG).toEqual({ kind: "done", answer: "all done" });
    await stage.rest();
    const { sessionId, workId } = await startAgentLate(stage, before);
    await expect.poll(() => outcomeOf(workId), HANG).toEqual({ kind: "done", answer: "all done" });
    await stage.rest();
    const answers = (await eventsOf(sessionId, "assistant.message")).filter(
      ({ data, agentId }) => agentId === undefined && (data as { toolRequests: unknown[] }).toolRequests.length === 0,
    );
    expect(answers).toHaveLength(1);
    const [result] = await eventsOf(sessionId, "tool.execution_complete");
    expect(JSON.stringify(result)).toContain("the helper's answer");
  });

  it.runIf(SLOW)(
    "an agent on another worker continues when its session's worker is killed, and returns once",
    async () => {
      const word = newWord();
      const held = heldCommand();
      stage.play(word, held.step, says("the helper's answer"));
      const first = await stage.worker("first", { concurrency: 1 });
      const { workId, sessionId } = await submit([bash("sleep 2"), task(`Do ${word}.`), says("all done")]);
      await hasOnly(first.id, sessionId);
      await stage.worker("second");
      await isRunning(held.path);
      first.child.kill("SIGKILL");
      await expect.poll(() => stage.takeOvers([sessionId]), HANG).toBe(1);
      held.release();
      await expect.poll(() => outcomeOf(workId), HANG).toEqual({ kind: "done", answer: "all done" });
      expect(runsOf(held.path)).toBe(1);
      // The call of the lost worker waits on: no model is told that it was interrupted.
      const [, result] = await eventsOf(sessionId, "tool.execution_complete");
      expect(JSON.stringify(result)).toContain("the helper's answer");
      await expectOnce(sessionId);
    },
  );

  it.runIf(SLOW)("an agent on another worker is continued by a third one when its own is killed", async () => {
    const word = newWord();
    const held = heldCommand();
    stage.play(word, held.step, says("the helper's answer"));
    const first = await stage.worker("parent", { concurrency: 1 });
    const { workId, sessionId } = await submit([bash("sleep 2"), task(`Do ${word}.`), says("all done")]);
    await hasOnly(first.id, sessionId);
    const lost = await stage.worker("child");
    await isRunning(held.path);
    lost.child.kill("SIGKILL");
    held.release();
    await stage.worker("heir");
    await expect.poll(() => outcomeOf(workId), HANG).toEqual({ kind: "done", answer: "all done" });
    expect(await stage.takeOvers([`${sessionId}.helper`])).toBe(1);
    await expectOnce(sessionId);
  });

  it.runIf(SLOW)("an agent on another worker has no more rights than its session", async () => {
    const word = newWord();
    const path = join(stage.repositories, "never");
    stage.play(word, bash(`touch '${path}'`), says("tried"));
    const first = await stage.worker("strict", { concurrency: 1, flags: ["--allow-tool", "shell(sleep:*)"] });
    const { workId, sessionId } = await submit([bash("sleep 2"), task(`Do ${word}.`), says("all done")]);
    await hasOnly(first.id, sessionId);
    await stage.worker("lax");
    await expect.poll(() => outcomeOf(workId), HANG).toEqual({ kind: "done", answer: "all done" });
    const [denied] = await eventsOf(`${sessionId}.helper`, "troupe.permission");
    expect(denied).toMatchObject({ data: { decision: "denied", toolName: "bash" } });
    expect(existsSync(path)).toBe(false);
    await expectOnce(sessionId);
  });

  it.runIf(SLOW)("an agent on another worker ends with the work that started it", async () => {
    const word = newWord();
    const held = heldCommand();
    stage.play(word, held.step, says("the helper's answer"));
    await stage.worker("a");
    const { workId, sessionId } = await submit([task(`Do ${word}.`), says("all done")]);
    await isRunning(held.path);
    expect((await stage.run(["cluster", "cancel", workId])).code).toBe(0);
    await expect.poll(() => outcomeOf(workId), HANG).toMatchObject({ kind: "aborted" });
    const child = `troupe.work where session_id = '${sessionId}.helper' and outcome->>'kind' = 'aborted'`;
    await expect.poll(() => stage.count(child), HANG).toBe(1);
  });
});
