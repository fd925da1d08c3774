/**
 * A process to be killed again and again: a session whose main agent starts, reads, writes to and stops agents at
 * random, under turn ends, new messages and compactions. `agent-pool-soak-program.mjs <root> <seed> <tasks wanted> live|rest`; with
 * `rest` everyone comes to rest and hears what is due, and the process ends by itself; with `live` it never does.
 */
import { existsSync, writeSync } from "node:fs";
import { join } from "node:path";
import { deferred } from "../../src/lib/deferred.ts";
import { fauxModel } from "../../src/model/faux/faux-model.ts";
import { otherwise } from "../../src/model/faux/faux-plan.ts";
import { calls, fails, type Moves, says, stalls, type WantedCall } from "../../src/model/faux/faux-step.ts";
import type { ModelRequest } from "../../src/model/provider.ts";
import { openAgentPool } from "./agent-pool-stage.ts";

const [, , root = "", seedText = "1", wantedText = "60", mode = "live"] = process.argv;
const wanted = Number(wantedText);
const random = mulberry(Number(seedText));
const LONG = "a long piece of work";
const MUTE = "say nothing";
const DOOMED = "break";
const SUMMARY = "<overview>\nAgents were directed.\n</overview>\n<checkpoint_title>\nDirecting\n</checkpoint_title>";
const HOLD = "hold still";
const held = deferred<void>();
let callCount = 0;
let isResting = false;
/** What happens for certain, whatever the dice say: one step for each call of the director, in the last life. */
const certain = mode === "rest" ? [ends, writes, stops] : [];

const session = await openAgentPool({
  root,
  mode: existsSync(join(root, "session-state", "one", "events.jsonl")) ? "resume" : "create",
  provider: fauxModel(otherwise(play)),
  agents: ["chief", "worker", "helper"],
  tools: [],
  limits: { maxConcurrency: 12 },
  contextWindow: 3_000,
});
const registry = session.agents.tasks;
if (!registry) throw new Error("the session has no tasks");
if (mode === "rest") writeSync(1, "ready\n");
for (let message = 0; mode === "live" || made() < wanted; message++) {
  // A new message while others are answered, and now and then the end of a turn: neither ends what works behind it.
  const sent = session.sendAndWait({ prompt: `go ${message}`, mode: random() < 0.3 ? "immediate" : "enqueue" });
  await pause(random() * 60);
  if (random() < 0.2) session.abort();
  if (random() < 0.1) await registry.cancel(someone());
  if (random() < 0.5) await Promise.race([sent, pause(300)]);
}
if (mode === "rest") {
  await cutShort();
  await comeToRest();
}
await session.close();
writeSync(1, "finished\n");
process.exit(0);

function made(): number {
  return registry?.list().length ?? 0;
}

function play(request: ModelRequest): Moves | Promise<Moves> {
  const last = request.messages.at(-1)?.content ?? "";
  if (last.startsWith("Stop working now and write a summary")) return stalls(pause(random() * 20), says(SUMMARY));
  const isAgent = !request.system.includes("director");
  // Somebody is at work whenever the process is killed.
  if (isAgent && last === LONG) {
    if (mode === "live") writeSync(1, "ready\n");
    return stalls(pause(60_000), says("long done"));
  }
  if (isAgent && last === MUTE) return says("");
  if (isAgent && last === DOOMED) return fails(400);
  if (!isAgent && last === HOLD) {
    held.resolve();
    return stalls(pause(60_000), says("held"));
  }
  const dice = random();
  const isDone = request.messages.filter(({ role }) => role === "assistant").length > 2;
  if (!isAgent && mode === "live" && callCount === 0) return calls(task("worker", "background", LONG));
  const next = isAgent ? undefined : certain.shift();
  if (next) return calls(...next());
  if (!isAgent) return dice < 0.35 || isResting ? says("so far") : calls(...direct());
  const life = pause(random() * 40);
  if (dice < 0.08) return fails(400);
  if (dice < 0.14) return says("");
  if (dice < 0.3 && !isDone && made() < wanted) return stalls(life, calls(task("helper", "sync")));
  return stalls(life, says(`done ${"and looked at one more file ".repeat(Math.floor(random() * 60))}`));
}

function ends(): WantedCall[] {
  return [MUTE, DOOMED, LONG].map((prompt) => task("worker", "background", prompt));
}

/** A message to the worker with the long piece of work. */
function writes(): WantedCall[] {
  return [["write_agent", { agent_id: newest(), message: "and then?" }, call("write")]];
}

function stops(): WantedCall[] {
  return [["stop_agent", { agent_id: newest() }, call("stop")]];
}

/** Returns the worker that was created last. On a busy machine it may not run yet. */
function newest(): string {
  const workers = (registry?.list() ?? []).filter(({ agentType }) => agentType === "worker");
  return workers.at(-1)?.id ?? "nobody";
}

function direct(): WantedCall[] {
  const dice = random();
  if (dice < 0.6 && made() < wanted) {
    const count = 1 + Math.floor(random() * 4);
    return Array.from({ length: count }, () => task("chief", random() < 0.3 ? "sync" : "background"));
  }
  const id = someone();
  if (dice < 0.75) return [["read_agent", { agent_id: id, wait: random() < 0.5, timeout: 1 }, call("read")]];
  if (dice < 0.92) return [["write_agent", { agent_id: id, message: "and then?" }, call("write")]];
  return [["stop_agent", { agent_id: id }, call("stop")]];
}

function task(agentType: string, how: "sync" | "background", prompt = "work"): WantedCall {
  const args = { description: "work", prompt, agent_type: agentType, name: agentType, mode: how };
  return ["task", args, call("task")];
}

function call(name: string): string {
  return `${name}-${process.pid}-${callCount++}`;
}

function someone(): string {
  const all = (registry?.list() ?? []).filter(({ agentType }) => agentType !== "worker");
  return all[Math.floor(random() * all.length)]?.id ?? "nobody";
}

/** The end of a turn in the middle of an answer. */
async function cutShort(): Promise<void> {
  await session.queue.whenIdle();
  const sent = session.sendAndWait({ prompt: HOLD });
  await held.promise;
  session.abort();
  await sent;
}

/** Waits for everyone, and lets everyone hear what is due, agents included. */
async function comeToRest(): Promise<void> {
  isResting = true;
  for (;;) {
    await session.queue.whenIdle();
    const busy = await registry?.waitForAll(120_000);
    if (busy?.length !== 0) throw new Error(`still at work: ${busy?.join(", ")}`);
    await session.sendAndWait({ prompt: "what is new?" });
    const deaf =
      registry?.list().filter(({ id, status }) => status === "idle" && registry.notices(id).length > 0) ?? [];
    if (deaf.length === 0 && registry?.notices(undefined).length === 0 && !registry.isBusy) return;
    for (const { id } of deaf) await registry?.send(id, "listen");
  }
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/** A small generator of repeatable numbers from 0 to 1. */
function mulberry(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
