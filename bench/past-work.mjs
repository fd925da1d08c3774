// The work of the scenarios `past` and `long`, each in a fresh process; prints one line of JSON.
//
//   past-work.mjs fill <home> <sessions>
//   past-work.mjs reindex <home>
//   past-work.mjs search <home> <queries>
//   past-work.mjs converse <home> <cwd> <sessionId> <turns> <compactions>
//   past-work.mjs resume <home> <cwd> <sessionId>
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { createRuntime } from "../dist/lib/index.js";
import { calls, modelServer, says } from "../dist/lib/testing.js";
import { median, quantile } from "./statistics.mjs";

const [, , action, home, ...rest] = process.argv;
const environment = { HOME: home, PATH: process.env.PATH, TROUPE_SANDBOX: "off", TROUPE_NO_DISCOVERY: "1" };

const TURNS = 10;
const VOCABULARY = 20_000;

/** Sessions as troupe writes them: ten questions, each with a call of a tool and an answer. */
async function fill(count) {
  const random = seeded(7);
  let bytes = 0;
  for (let number = 0; number < Number(count); number++) {
    const sessionId = `past-${String(number).padStart(6, "0")}`;
    const folder = join(home, "session-state", sessionId);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const text = linesOf(pastEvents(sessionId, number, random));
    writeFileSync(join(folder, "events.jsonl"), text, { mode: 0o600 });
    bytes += text.length;
  }
  return { bytes };
}

async function reindex() {
  const runtime = createRuntime({ environment, home });
  const from = performance.now();
  const { changed, failed } = await runtime.past.reindex();
  const tookMs = performance.now() - from;
  await runtime.close();
  return { tookMs, changed, failed: failed.length };
}

/** Each search brings the index up to date first, as the command does. */
async function search(queries) {
  const runtime = createRuntime({ environment, home });
  const random = seeded(11);
  const first = performance.now();
  await runtime.past.search({ words: "warm up" });
  const firstMs = performance.now() - first;
  const waits = [];
  let found = 0;
  for (let number = 0; number < Number(queries); number++) {
    const words = Array.from({ length: 1 + (number % 3) }, () => word(random));
    const last = words.pop();
    words.push(number % 4 === 0 ? last.slice(0, 3) : last);
    const from = performance.now();
    found += (await runtime.past.search({ words: words.join(" ") })).length;
    waits.push(performance.now() - from);
  }
  await runtime.close();
  return { firstMs, p50: median(waits), p95: quantile(waits, 0.95), most: Math.max(...waits), found };
}

const RESULT_CHARACTERS = 1_000;
const TURNS_PER_MESSAGE = 20;
const SUMMARY =
  "<overview>\nThe user reads files.\n</overview>\n<history>\n1. read\n</history>\n<checkpoint_title>\nReading\n</checkpoint_title>";

/** One session that reads on and on while its window fills up again and again. */
async function converse(cwd, sessionId, turns, compactions) {
  const marks = [];
  const problems = [];
  let made = 0;
  writeFileSync(join(cwd, "long.txt"), "a line of text that is read again and again\n".repeat(RESULT_CHARACTERS / 44));
  const server = await modelServer({
    keepRequests: 1,
    handler: ({ request, atMs }) => {
      const { messages } = request;
      problems.push(...unpaired(messages));
      if (messages.at(-1).content.startsWith("Stop working now")) return says(SUMMARY);
      marks.push(atMs);
      return ++made % TURNS_PER_MESSAGE === 0 ? says(`answer ${made}`) : calls(["view", { path: "long.txt" }]);
    },
  });
  await settle(server, { turns: Number(turns), compactions: Number(compactions) });
  const runtime = createRuntime({ environment, home });
  const session = await runtime.createSession({
    cwd,
    sessionId,
    model: { name: "bench/long" },
    permissions: { allTools: true },
  });
  let done = 0;
  let failed = 0;
  session.subscribe(({ type, data }) => {
    if (type === "session.compaction_complete") data.success ? done++ : failed++;
  });
  for (let number = 0; number * TURNS_PER_MESSAGE < Number(turns); number++) {
    const outcome = await session.sendAndWait({ prompt: `message number ${number}` });
    if (outcome.kind !== "done") throw new Error(`message ${number} ended with ${JSON.stringify(outcome)}`);
  }
  await session.close();
  await runtime.close();
  await server.close();
  const took = marks.slice(1).map((mark, index) => mark - marks[index]);
  const quarter = took.length >> 2;
  const [early, late] = [median(took.slice(1, quarter)), median(took.slice(-quarter))];
  return { turns: made, compactions: done, failed, problems: problems.slice(0, 5), early, late };
}

async function resume(cwd, sessionId) {
  const runtime = createRuntime({ environment, home });
  const from = performance.now();
  const session = await runtime.resumeSession(sessionId, { cwd });
  const openMs = performance.now() - from;
  const events = session.events.length;
  await session.close();
  await runtime.close();
  return { openMs, events };
}

/** A model whose window fills as often as is wanted, tools and system prompt included. */
async function settle({ baseUrl }, { turns, compactions }) {
  const fixed = 4_750;
  const ofTurn = RESULT_CHARACTERS / 4 + 20;
  // Compacted at 80 %, when about a third of the turns stays: the first time takes longest, so it comes early enough.
  const contextWindow = Math.round((1.2 * (turns / compactions) * ofTurn + fixed) / 0.8);
  const bench = { type: "openai", baseUrl, auth: "none", models: { long: { contextWindow } } };
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, "providers.json"), JSON.stringify({ providers: { bench } }));
}

/** A provider refuses a call without a result, and a result without a call. */
function unpaired(messages) {
  const open = new Set();
  for (const message of messages) {
    if (message.role === "tool" && !open.delete(message.toolCallId)) return [`stray result ${message.toolCallId}`];
    if (message.role !== "tool" && open.size > 0) return [`no result for ${[...open].join(", ")}`];
    for (const { toolCallId } of message.calls ?? []) open.add(toolCallId);
  }
  return open.size > 0 ? [`no result for ${[...open].join(", ")}`] : [];
}

function* pastEvents(sessionId, number, random) {
  let count = 0;
  let parentId = null;
  const began = Date.UTC(2026, 0, 1) + number * 60_000;
  const make = (type, data) => {
    const id = `${sessionId}-${count}`;
    const event = { id, timestamp: new Date(began + count++ * 1000).toISOString(), parentId, type, data };
    parentId = id;
    return event;
  };
  const context = { cwd: `/work/project-${number % 50}`, repository: `octo/project-${number % 50}`, branch: "main" };
  const start = {
    sessionId,
    version: 1,
    producer: "troupe",
    copilotVersion: "0.0.0",
    startTime: new Date(began).toISOString(),
  };
  yield make("session.start", { ...start, selectedModel: "mock-model", context });
  yield make("system.message", { role: "system", content: words(random, 400) });
  const tokens = { inputTokens: 1000, outputTokens: 20, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
  for (let turn = 0; turn < TURNS; turn++) {
    const toolCallId = `call_${turn}`;
    const path = `src/${word(random)}/${word(random)}.ts`;
    yield make("user.message", { content: words(random, 25), delivery: "idle", interactionId: `m${turn}` });
    for (const step of [0, 1]) {
      const turnId = String(step);
      const requests = step === 0 ? [{ toolCallId, name: turn % 3 === 0 ? "edit" : "view", arguments: { path } }] : [];
      yield make("assistant.turn_start", { turnId });
      yield make("troupe.usage", {
        turnId,
        provider: "x",
        model: "mock-model",
        costUsd: null,
        durationMs: 5,
        attempts: 1,
        ...tokens,
      });
      const content = step === 0 ? "" : words(random, 120);
      yield make("assistant.message", { messageId: `a${turn}${step}`, content, toolRequests: requests, turnId });
      if (step === 0) {
        const [{ name: toolName, arguments: given }] = requests;
        yield make("tool.execution_start", { toolCallId, toolName, arguments: given });
        yield make("tool.execution_complete", { toolCallId, success: true, result: { content: words(random, 250) } });
      }
      yield make("assistant.turn_end", { turnId });
    }
  }
}

/** With the integrity of our own logs. */
function linesOf(events) {
  const hex = (value) => value.toString(16).padStart(8, "0");
  let [seq, prev, text] = [0, 0, ""];
  for (const event of events) {
    const covered = `${JSON.stringify(event).slice(0, -1)},"troupe":{"seq":${++seq},"prev":"${hex(prev)}"`;
    prev = crc32(covered);
    text += `${covered},"crc":"${hex(prev)}"}}\n`;
  }
  return text;
}

const SYLLABLES = ["ka", "lo", "mi", "ren", "sta", "vor", "quen", "dis", "par", "ter", "in", "ob", "ul", "sem", "tra"];

/** A few words are everywhere and most are rare, as in any text. */
function word(random) {
  let rest = Math.floor(VOCABULARY ** random());
  let text = "";
  do {
    text += SYLLABLES[rest % SYLLABLES.length];
    rest = Math.floor(rest / SYLLABLES.length);
  } while (rest > 0);
  return text;
}

const words = (random, count) => Array.from({ length: count }, () => word(random)).join(" ");

function seeded(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

console.log(JSON.stringify(await { fill, reindex, search, converse, resume }[action](...rest)));
