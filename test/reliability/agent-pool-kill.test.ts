import { cpSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fauxModel } from "../../src/model/faux/faux-model.ts";
import { otherwise } from "../../src/model/faux/faux-plan.ts";
import type { ModelRequest } from "../../src/model/provider.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import type { Session } from "../../src/session/session.ts";
import type { Registry } from "../../src/tasks/registry.ts";
import { expectPaired } from "../../src/testing/story.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { agentsWithoutEnd } from "../support/agent-pool.ts";
import { dataOf } from "../support/stage.ts";
import { checkTasks } from "../support/task-checker.ts";
import { buildProgram, type Ended, runProgram } from "./agent-pool-build.ts";
import { actIn, playTree, treeAgents } from "./agent-pool-script.ts";
import { agentPoolStore, openAgentPool } from "./agent-pool-stage.ts";

const slow = process.env.TROUPE_SLOW !== undefined;
/** About as many events as the whole tree takes, which depends a little on timing. */
const EVENTS = 130;
const SAMPLE = [
  ...[14, 19, 33, 47, 58, 71, 86, 97],
  ...["system.notification", "troupe.task_notice_delivered idle chief", "troupe.task_state idle chief"],
];
let folder: Awaited<ReturnType<typeof tempFolder>>;
let program: string;
let count = 0;

beforeAll(async () => {
  folder = await tempFolder();
  program = join(folder.path, "agent-pool.mjs");
  await buildProgram("test/reliability/agent-pool-program.ts", program);
});
afterAll(() => folder[Symbol.asyncDispose]());

const newRoot = (): string => {
  const root = join(folder.path, `root-${++count}`);
  mkdirSync(root, { recursive: true });
  return root;
};
const killed = (root: string, mode: "create" | "write" | "resume", at: number | string): Promise<Ended> =>
  runProgram(program, [root, mode, String(at)]);

/** Two at a time. */
async function forEach<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items];
  const one = async (): Promise<void> => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item);
  };
  await Promise.all([one(), one()]);
}

interface TakenUp {
  readonly session: Session;
  readonly registry: Registry;
  readonly requests: readonly ModelRequest[];
}

async function acceptPrompt(root: string): Promise<TakenUp> {
  const provider = fauxModel(otherwise(playTree));
  const session = await openAgentPool({ root, mode: "resume", provider, agents: treeAgents, tools: [actIn(root)] });
  if (!session.agents.tasks) throw new Error("the session has no tasks");
  return { session, registry: session.agents.tasks, requests: provider.requests };
}

const pause = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));
const ledgerOf = (root: string): readonly string[] =>
  existsSync(join(root, "ledger")) ? readFileSync(join(root, "ledger"), "utf8").trim().split("\n") : [];
const statesOf = ({ registry }: TakenUp): unknown =>
  registry.list().map(({ id, parentId, status, reason, mode }) => [id, parentId, status, reason, mode]);

/** What stands in the log of the dead process, read without any of our own folds. */
function lastStates(events: readonly SessionEvent[]): Map<string, { parentId: string | undefined; status: string }> {
  const states = new Map<string, { parentId: string | undefined; status: string }>();
  for (const { taskId, parentId } of dataOf(events, "troupe.task_created")) {
    states.set(taskId, { parentId, status: "queued" });
  }
  for (const { taskId, to } of dataOf(events, "troupe.task_state")) {
    const state = states.get(taskId);
    if (state) state.status = to;
  }
  return states;
}

/** Everyone is there, who was cut off is marked, and nothing has happened by itself. */
async function expectAllListed(taken: TakenUp, before: readonly SessionEvent[]): Promise<void> {
  await pause(10);
  const expected = [...lastStates(before)].map(([id, { parentId, status }]) => {
    const wasCutOff = status === "queued" || status === "running";
    return [id, parentId, wasCutOff ? "idle" : status, ...(wasCutOff ? ["interrupted"] : [])];
  });
  const listed = taken.registry
    .list()
    .map(({ id, parentId, status, reason }) => [
      id,
      parentId,
      status,
      ...(reason === "interrupted" ? ["interrupted"] : []),
    ]);
  expect(listed).toEqual(expected);
  expect(checkTasks(taken.session.events)).toEqual([]);
  expectPaired(taken.session.events);
  expect(agentsWithoutEnd(taken.session.events)).toEqual([]);
  expect(taken.requests).toEqual([]);
}

/** Everyone who can go on does, by its id; then everyone has heard of everything, once. */
async function expectContinuable({ session, registry, requests }: TakenUp): Promise<void> {
  const deepestFirst = [...registry.list()].reverse();
  for (const { id, status, turns } of deepestFirst) {
    if (status !== "idle") continue;
    expect(await registry.send(id, "continue")).toEqual({ id, outcome: "delivered" });
    await registry.wait(id, { timeoutMs: 60_000 });
    const { answers } = await registry.report(id);
    expect(answers).toHaveLength(turns + 1);
    expect(answers.at(-1)?.response).toBe(`${id} continued`);
  }
  for (const { id, status } of registry.list()) {
    if (status === "idle" && registry.notices(id).length > 0) await registry.send(id, "continue");
  }
  expect(await registry.waitForAll(60_000)).toEqual([]);
  const outcome = await session.sendAndWait({ prompt: "continue" });
  expect(outcome).toEqual({ kind: "done", answer: "director continued" });
  await session.queue.whenIdle();
  expect(checkTasks(session.events, { settled: true })).toEqual([]);
  expectPaired(session.events);
  for (const request of requests) expectAnswered(request);
}

/** No provider accepts a call without its result. */
function expectAnswered({ messages }: ModelRequest): void {
  const asked = messages.flatMap((message) =>
    message.role === "assistant" ? message.calls.map(({ toolCallId }) => toolCallId) : [],
  );
  const answered = messages.flatMap((message) => (message.role === "tool" ? [message.toolCallId] : []));
  expect([...answered].sort()).toEqual([...asked].sort());
}

async function checkAfterKill(at: number | string): Promise<void> {
  const root = newRoot();
  const ended = await killed(root, "create", at);
  expect(ended.errors).toBe("");
  const { events: before } = await agentPoolStore(root).read("one");
  const kept = new Set(before.map(({ id }) => id));
  expect(ended.lines.filter((id) => !kept.has(id))).toEqual([]);
  const ledger = ledgerOf(root);

  const taken = await acceptPrompt(root);
  await expectAllListed(taken, before);
  await expectContinuable(taken);
  await taken.session.close();
  expect(ledgerOf(root)).toEqual(ledger);
  expect(new Set(ledger).size).toBe(ledger.length);
  const started = dataOf(before, "tool.execution_start").map(({ toolCallId }) => toolCallId);
  for (const token of ledger) expect(started.some((id) => id.startsWith(`act-${token}-`))).toBe(true);
}

/** Recovery cut off after each of its events, and done again, gives what it gives in one go. */
async function checkRecovery(at: number): Promise<void> {
  const root = newRoot();
  await killed(root, "create", at);
  const whole = newRoot();
  cpSync(root, whole, { recursive: true });
  const expected = await acceptPrompt(whole);
  const states = statesOf(expected);
  const { length: steps } = expected.session.events.slice(expected.session.record.inherited);
  await expected.session.close();
  const points = slow ? Array.from({ length: steps }, (_, index) => index + 1) : [Math.ceil(steps / 2)];
  for (const point of points) {
    const copy = newRoot();
    cpSync(root, copy, { recursive: true });
    expect((await killed(copy, "resume", point)).finished).toBe(false);
    const taken = await acceptPrompt(copy);
    expect(statesOf(taken)).toEqual(states);
    expect(checkTasks(taken.session.events)).toEqual([]);
    if (point === points[0]) await expectContinuable(taken);
    await taken.session.close();
  }
}

describe("a tree of agents killed by kill -9", () => {
  it("a tree of agents killed between any two events loses no agent and runs nothing twice", {
    timeout: 600_000,
  }, async () => {
    await forEach(slow ? Array.from({ length: EVENTS }, (_, index) => index + 1) : SAMPLE, checkAfterKill);
  });

  it("a tree of agents loses no agent when it is killed again while it is resumed", { timeout: 600_000 }, async () => {
    await forEach(slow ? [14, 30, 47, 61, 68, 76, 93] : [47, 68], checkRecovery);
  });

  it("a parent is notified when the process is killed between the reads and the end of a call", async () => {
    const root = newRoot();
    await killed(root, "create", "troupe.task_notice_delivered idle chief");
    const { events } = await agentPoolStore(root).read("one");
    expect(events.at(-1)?.data).toMatchObject({ taskId: "chief", by: "read" });
    const taken = await acceptPrompt(root);
    expect(taken.registry.notices(undefined).map(({ taskId }) => taskId)).toContain("chief");
    await expectContinuable(taken);
    await taken.session.close();
  });

  it("a sender is told that an idle agent does not run when the process is killed right after the message", async () => {
    const root = newRoot();
    expect(await killed(root, "write", "troupe.task_message")).toMatchObject({ finished: false, errors: "" });
    const taken = await acceptPrompt(root);
    expect(taken.registry.view("chief")).toMatchObject({ status: "idle", reason: "interrupted", unreadMessages: 1 });
    expect(taken.registry.notices(undefined).map(({ taskId }) => taskId)).toEqual(["chief"]);
    await expectContinuable(taken);
    await taken.session.close();
  });

  it("a tree of agents finishes when it is not killed", async () => {
    const root = newRoot();
    expect(await killed(root, "create", 0)).toMatchObject({ finished: true, errors: "" });
    expect([...ledgerOf(root)].sort()).toEqual(["clerk", "helper", "worker"]);
    const { events } = await agentPoolStore(root).read("one");
    expect(checkTasks(events, { settled: true })).toEqual([]);
  });
});
