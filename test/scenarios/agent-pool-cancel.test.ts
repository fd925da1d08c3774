/**
 * Four verbs that stop, and a message that does not, against agents in every state at two depths. Two trees stand side by
 * side: one the main agent waits for (f1, f2, f3), one in the background (b1, b2, b3); the last of each is in the state.
 */
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fauxModel } from "../../src/model/faux/faux-model.ts";
import { otherwise } from "../../src/model/faux/faux-plan.ts";
import { calls, type Moves, says, stalls, type WantedCall } from "../../src/model/faux/faux-step.ts";
import type { ModelRequest } from "../../src/model/provider.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import type { Session } from "../../src/session/session.ts";
import type { Registry } from "../../src/tasks/registry.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { realAgentPool } from "../reliability/agent-pool-real.ts";
import { checkTasks } from "../support/task-checker.ts";
import { HANG_MS } from "../support/work.ts";

const states = ["queued", "model call", "child process", "approval", "idle", "nested child"] as const;
type State = (typeof states)[number];
type Tree = "f" | "b";

interface Cell {
  readonly session: Session;
  readonly registry: Registry;
  /** How often each was asked, by name. */
  readonly asked: ReadonlyMap<string, number>;
  readonly depth: number;
  readonly trees: readonly Tree[];
}

/** What each does, and which trees die of it: whole, or from the last one on. */
const verbs = {
  "stop waiting": {
    async act({ registry }: Cell) {
      const stop = new AbortController();
      const waiting = registry.wait("b1", { timeoutMs: 60_000, sinceAnswer: 5, signal: stop.signal });
      stop.abort();
      await waiting.catch(() => undefined);
    },
    dies: () => [],
  },
  "stop one": {
    act: ({ registry, depth }: Cell) => registry.cancel(`b${depth}`),
    dies: (cell: Cell) => subtree(cell, `b${cell.depth}`),
  },
  "stop this turn": { act: async ({ session }: Cell) => session.abort(), dies: (cell: Cell) => subtree(cell, "f1") },
  "stop everything": {
    act: ({ registry }: Cell) => registry.cancelAll(),
    dies: ({ registry }: Cell) => registry.list().map(({ id }) => id),
  },
  "new message": {
    act: async ({ session }: Cell) => {
      await session.send({ prompt: "and another thing" });
      await session.send({ prompt: "at once", mode: "immediate" });
    },
    dies: () => [],
  },
} satisfies Record<string, { act(cell: Cell): Promise<unknown>; dies(cell: Cell): readonly string[] }>;
type Verb = keyof typeof verbs;

// Agents of agents are always waited for, so none of them is ever idle.
const cells = ([1, 3] as const).flatMap((depth) =>
  states
    .filter((state) => depth === 1 || state !== "idle")
    .flatMap((state) => (Object.keys(verbs) as Verb[]).map((verb) => ({ verb, state, depth }))),
);

let folder: Awaited<ReturnType<typeof tempFolder>>;
/** How many cells were entered: each has folders and processes of its own, at a second look too. */
let entered = 0;

beforeAll(async () => {
  folder = await tempFolder();
});
afterAll(() => folder[Symbol.asyncDispose]());

describe("cancelled agents end soon with their processes, and all others continue", () => {
  it.concurrent.each(cells)("$verb: $state, $depth deep", async ({ verb, state, depth }) => {
    const mark = `6${++entered}`;
    const { cell, close, isPending } = await enter({ state, depth, mark });
    const { registry, trees, asked } = cell;
    const last = trees.map((tree) => `${tree}${depth}`);
    await untilNone(() => last.filter((name) => !isIn(state, name, cell, { mark, isPending })));
    if (state === "idle") await cell.session.queue.whenIdle();

    const { act, dies } = verbs[verb];
    const doomed = dies(cell);
    const others = registry.list().flatMap(({ id, status }) => (doomed.includes(id) || isOver(status) ? [] : [id]));
    const isTreeDoomed = (tree: Tree): boolean => doomed.includes(`${tree}${depth}`);
    const processes = trees.filter((tree) => isRunning(mark, tree));
    const before = new Map(asked);
    const began = performance.now();
    await act(cell);
    await untilNone(() => doomed.filter((id) => !isOver(statusOf(registry, id))));
    await untilNone(() => processes.filter((tree) => isTreeDoomed(tree) && isRunning(mark, tree)));
    expect(performance.now() - began).toBeLessThan(HANG_MS);
    expect(doomed.map((id) => [id, statusOf(registry, id)])).toEqual(doomed.map((id) => [id, "cancelled"]));

    await expectParentsWake(cell, verb, before);
    expect(others.filter((id) => statusOf(registry, id) === "cancelled")).toEqual([]);
    expect(processes.filter((tree) => isRunning(mark, tree))).toEqual(processes.filter((tree) => !isTreeDoomed(tree)));
    await close();
    await untilNone(() => trees.filter((tree) => isRunning(mark, tree)));
    expect(checkTasks(cell.session.events)).toEqual([]);
  });
});

/** Until nothing of it is left. */
async function untilNone(remaining: () => readonly string[]): Promise<void> {
  // What is measured has a bound of its own; a busy machine may take its time until there is something to measure.
  const end = performance.now() + 60_000;
  for (let left = remaining(); left.length > 0; left = remaining()) {
    if (performance.now() > end) throw new Error(`in vain: ${left.join(", ")}`);
    await new Promise((resolve) => setTimeout(resolve, 15));
  }
}

const isOver = (status: string): boolean => ["completed", "failed", "cancelled"].includes(status);
const statusOf = (registry: Registry, id: string): string => registry.view(id)?.status ?? "unknown";
/** It and everyone below it. */
function subtree({ registry }: Cell, top: string): readonly string[] {
  const isBelow = (id: string | undefined): boolean =>
    id !== undefined && (id === top || isBelow(registry.view(id)?.parentId));
  return registry.list().flatMap(({ id }) => (isBelow(id) ? [id] : []));
}

/** Who waited for what was stopped goes on with it; a main agent whose turn was stopped stays silent. */
async function expectParentsWake(cell: Cell, verb: Verb, before: ReadonlyMap<string, number>): Promise<void> {
  const { registry, asked, depth, trees } = cell;
  const asleep = (...names: readonly string[]) =>
    names.filter((name) => (asked.get(name) ?? 0) <= (before.get(name) ?? 0));
  const waitsForMore = registry.list().some(({ id, status }) => id === "place-b" && !isOver(status));
  if (verb === "stop one" && depth > 1 && !waitsForMore) await untilNone(() => asleep(`b${depth - 1}`));
  if (verb === "stop one" && !trees.includes("f")) await untilNone(() => asleep("main"));
  if (verb === "stop everything" && trees.includes("f")) await untilNone(() => asleep("main"));
  if (verb !== "stop this turn") return;
  await new Promise((resolve) => setTimeout(resolve, 30));
  expect(asleep("main")).toEqual(["main"]);
}

async function enter(what: { state: State; depth: number; mark: string }) {
  const { state, depth, mark } = what;
  const [home, cwd] = [join(folder.path, `home-${mark}`), join(folder.path, `work-${mark}`)];
  for (const made of [home, cwd]) mkdirSync(made);
  const asked = new Map<string, number>();
  const trees: readonly Tree[] = state === "idle" ? ["b"] : ["f", "b"];
  const play = (request: ModelRequest): Moves => {
    const name = /\[\[([\w-]+)\]\]/.exec(request.messages[0]?.content ?? "")?.[1] ?? "main";
    asked.set(name, (asked.get(name) ?? 0) + 1);
    return moves({
      name,
      state,
      depth,
      mark,
      trees,
      step: request.messages.filter(({ role }) => role === "assistant").length,
    });
  };
  const provider = fauxModel(otherwise(play));
  const maxConcurrency = state === "queued" ? 2 : 16;
  const { session, registry, close } = await realAgentPool({ home, cwd, provider, maxConcurrency });
  const pending = new Set<string>();
  session.subscribe((event: SessionEvent) => {
    if (event.type === "permission.requested" && isAnswerless(event.data.permissionRequest))
      pending.add(event.agentId ?? "");
  });
  session.requests.attach({
    kinds: ["permission"],
    handle: async (request, signal) => {
      const isOpen = request.kind === "permission" && isAnswerless(request.permissionRequest);
      if (!isOpen) return { kind: "approved" };
      return new Promise((resolve) => signal.addEventListener("abort", () => resolve(undefined)));
    },
  });
  await session.send({ prompt: "go" });
  const cell: Cell = { session, registry, asked, depth, trees };
  return { cell, close, isPending: (name: string) => pending.has(name) };
}

const isAnswerless = (request: object): boolean => JSON.stringify(request).includes("echo unanswered");

function moves(who: {
  name: string;
  state: State;
  depth: number;
  mark: string;
  trees: readonly Tree[];
  step: number;
}): Moves {
  const { name, state, depth, trees, step } = who;
  const tree = name[0] === "f" ? "f" : "b";
  if (name.startsWith("place")) return stalls();
  if (step > 0) return says(`${name} goes on`);
  if (name === "main") {
    const fillers =
      state === "queued" && depth === 1 ? [task("place-1", "background"), task("place-2", "background")] : [];
    return calls(...fillers, ...trees.map((one) => task(`${one}1`, one === "f" ? "sync" : "background")));
  }
  if (name.includes("y")) return sleeping(who.mark, tree);
  const level = Number(name[1]);
  if (level < depth) {
    // The only place that its parent can lend goes to the one before it.
    const filler = state === "queued" && level === depth - 1 ? [task(`place-${tree}`, "sync")] : [];
    return calls(...filler, task(`${tree}${level + 1}`, "sync"));
  }
  switch (state) {
    case "child process":
      return sleeping(who.mark, tree);
    case "approval":
      return calls(["bash", { command: "env echo unanswered", description: "ask" }, `ask-${tree}`]);
    case "nested child":
      return calls(task(`${tree}y`, "sync"));
    case "idle":
      return says("ready");
    default:
      return stalls();
  }
}

function task(name: string, mode: "sync" | "background"): WantedCall {
  const args = { description: "work", prompt: `[[${name}]]`, agent_type: "general-purpose", name, mode };
  return ["task", args, `task-${name}`];
}

const sleepOf = (mark: string, tree: Tree): string => `600.${mark}${tree === "f" ? 1 : 2}`;

function sleeping(mark: string, tree: Tree): Moves {
  return calls(["bash", { command: `sleep ${sleepOf(mark, tree)}`, description: "sleep" }, `sleep-${tree}`]);
}

/** Whether the machine has a process that sleeps for this tree. */
function isRunning(mark: string, tree: Tree): boolean {
  return sleepers().has(`sleep\0${sleepOf(mark, tree)}\0`);
}

const LOOK_MS = 40;
let looked: { readonly at: number; readonly lines: ReadonlySet<string> } = { at: 0, lines: new Set() };

/** To look at every process costs more than what is tested: all cells look together, and not always. */
function sleepers(): ReadonlySet<string> {
  if (performance.now() - looked.at < LOOK_MS) return looked.lines;
  const lines = readdirSync("/proc").flatMap((name) => (/^\d+$/.test(name) ? [commandLine(name)] : []));
  looked = { at: performance.now(), lines: new Set(lines.filter((line) => line.startsWith("sleep\0"))) };
  return looked.lines;
}

function commandLine(processId: string): string {
  try {
    return readFileSync(`/proc/${processId}/cmdline`, "utf8");
  } catch {
    return ""; // it has ended meanwhile
  }
}

function isIn(
  state: State,
  name: string,
  cell: Cell,
  { mark, isPending }: { mark: string; isPending(name: string): boolean },
): boolean {
  const { registry, asked } = cell;
  const tree = name[0] === "f" ? "f" : "b";
  switch (state) {
    case "queued":
    case "idle":
      return statusOf(registry, name) === state;
    case "model call":
      return statusOf(registry, name) === "running" && asked.get(name) === 1;
    case "child process":
    case "nested child":
      return isRunning(mark, tree);
    case "approval":
      return isPending(name);
  }
}
