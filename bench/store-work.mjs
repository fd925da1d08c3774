// The work of the store scenarios, each in a fresh process; prints one line of JSON.
//
//   store-work.mjs fill <home> <sessionId> <events>
//   store-work.mjs resume <home> <sessionId> <cwd>
//   store-work.mjs append <home> <floor|troupe> <sessions> <events per second> <seconds>
import { mkdir, open } from "node:fs/promises";
import { join } from "node:path";
import { createRuntime } from "../dist/lib/index.js";
import { quantile } from "./statistics.mjs";

const [, , action, home, ...rest] = process.argv;
const environment = {
  TROUPE_BASE_URL: "http://127.0.0.1:9/v1",
  TROUPE_API_KEY: "mock",
  TROUPE_MODEL: "mock-model",
  TROUPE_WIRE_API: "completions",
};
const runtime = createRuntime({ environment, home });

console.log(JSON.stringify(await { fill, resume, append }[action](...rest)));

/** A finished session of that many events. */
async function fill(sessionId, events) {
  const log = await runtime.store.create(sessionId);
  const source = eventsOf(sessionId);
  let last;
  for (let made = 0; made < Number(events); made++) {
    last = log.append(source.next().value.event, { barrier: false });
    if (made % 1000 === 0) await last;
  }
  await last;
  await log.close();
  return {};
}

async function resume(sessionId, cwd) {
  const from = performance.now();
  const session = await runtime.resumeSession(sessionId, { cwd });
  const openMs = performance.now() - from;
  const events = session.events.length;
  await session.close();
  return { openMs, events };
}

/**
 * Appends at a steady rate, spread over the sessions, whether or not earlier appends were acknowledged; the wait of an
 * event counts from the moment it was due.
 */
async function append(peer, sessions, rate, seconds) {
  const count = Number(sessions);
  const perMs = Number(rate) / 1000;
  const total = Number(rate) * Number(seconds);
  await mkdir(home, { recursive: true });
  const createLog = peer === "floor" ? floorLog : (sessionId) => runtime.store.create(sessionId);
  const writers = await Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const sessionId = `append-${index}`;
      return { sessionId, log: await createLog(sessionId), source: eventsOf(sessionId) };
    }),
  );
  const waits = new Float64Array(total);
  const startCpu = process.cpuUsage();
  const started = performance.now();
  let acknowledged = 0;
  let made = 0;
  await new Promise((resolve, reject) => {
    const acknowledge = (index) => {
      waits[index] = performance.now() - started - index / perMs;
      if (++acknowledged === total) resolve();
    };
    const tick = () => {
      const due = Math.min(total, Math.floor((performance.now() - started) * perMs));
      for (; made < due; made++) {
        const index = made;
        const { log, source } = writers[index % count];
        const { event, barrier } = source.next().value;
        log.append(event, { barrier }).then(() => acknowledge(index), reject);
      }
      if (made < total) setTimeout(tick, 1);
    };
    tick();
  });
  const wallMs = performance.now() - started;
  const { user, system } = process.cpuUsage(startCpu);
  await Promise.all(writers.map(({ log }) => log.close()));
  let kept = 0;
  for (const { sessionId, log } of writers) {
    kept += log.lines ?? (await runtime.store.read(sessionId)).events.length;
  }
  return {
    rate: (total / wallMs) * 1000,
    p50: quantile(waits, 0.5),
    p99: quantile(waits, 0.99),
    cores: (user + system) / 1000 / wallMs,
    lost: total - kept,
  };
}

/** The least a log can do that keeps the same promise: what waits is written and synced together. */
async function floorLog(sessionId) {
  const file = await open(join(home, `${sessionId}.jsonl`), "w");
  let waiting = [];
  let working;
  const work = async () => {
    while (waiting.length > 0) {
      const batch = waiting;
      waiting = [];
      await file.write(batch.map(({ line }) => line).join(""));
      if (batch.some(({ barrier }) => barrier)) await file.datasync();
      for (const { resolve } of batch) resolve();
    }
    working = undefined;
  };
  return {
    lines: 0,
    append(event, { barrier }) {
      this.lines++;
      return new Promise((resolve, reject) => {
        waiting.push({ line: `${JSON.stringify(event)}\n`, barrier, resolve });
        working ??= new Promise(setImmediate).then(work);
        working.catch(reject);
      });
    },
    close: () => file.close(),
  };
}

/** The events of a session that reads one file after another, with those marked that must be synced. */
function* eventsOf(sessionId) {
  let number = 0;
  let parentId = null;
  const timestamp = new Date(0).toISOString();
  const make = (type, data, barrier = false) => {
    const id = `${sessionId}-${number++}`;
    const event = { id, timestamp, parentId, type, data };
    parentId = id;
    return { event, barrier };
  };
  const producer = { version: 1, producer: "troupe", copilotVersion: "0.0.0", startTime: timestamp };
  yield make("session.start", { sessionId, ...producer, selectedModel: "mock-model" });
  yield make("user.message", { content: "Read the files one by one." }, true);
  for (let turn = 0; ; turn++) {
    const turnId = String(turn);
    const toolCallId = `call_${turn}`;
    const toolRequest = { toolCallId, name: "view", arguments: { path: `/workspace/f${turn}.txt` } };
    const message = { messageId: `message_${turn}`, content: "", toolRequests: [toolRequest], turnId };
    const tokens = { inputTokens: 1000, outputTokens: 20, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
    const usage = { turnId, provider: "custom", model: "mock-model", costUsd: null, durationMs: 5, attempts: 1 };
    const content = "a line of text in a small file\n".repeat(6);
    yield make("assistant.turn_start", { turnId });
    yield make("troupe.usage", { ...usage, ...tokens });
    yield make("assistant.message", message, true);
    yield make("tool.execution_start", { toolCallId, toolName: "view", arguments: toolRequest.arguments }, true);
    yield make("tool.execution_complete", { toolCallId, success: true, result: { content } }, true);
    yield make("assistant.turn_end", { turnId }, true);
  }
}
