// The work of the scale scenarios, each in a fresh process; prints one line of JSON.
//
//   scale-work.mjs fill-long <home> <sessionId> <events> <events between compactions>
//   scale-work.mjs fill-many <home> <sessions>
//   scale-work.mjs resume <home> <sessionId> <cwd>
//   scale-work.mjs fork <home> <sessionId>
//   scale-work.mjs list <home>
//   scale-work.mjs list-served <home>
import { closeSync, mkdirSync, openSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { crc32 } from "node:zlib";
import { createRuntime } from "../dist/lib/index.js";

const [, , action, home, ...rest] = process.argv;
const environment = {
  TROUPE_BASE_URL: "http://127.0.0.1:9/v1",
  TROUPE_API_KEY: "mock",
  TROUPE_MODEL: "mock-model",
  TROUPE_WIRE_API: "completions",
};
const actions = { "fill-long": fillLong, "fill-many": fillMany, resume, fork, list, "list-served": listServed };

console.log(JSON.stringify(await actions[action](...rest)));

/** Opens the session, reads a page from the middle of its history, and closes it. */
async function resume(sessionId, cwd) {
  const runtime = createRuntime({ environment, home });
  const from = performance.now();
  const session = await runtime.resumeSession(sessionId, { cwd });
  const openMs = performance.now() - from;
  const openBytes = process.resourceUsage().maxRSS * 1024;
  const { count } = session.history.past;
  await session.history.past.read(0, 1);
  const middle = performance.now();
  const page = await session.history.past.read(count >> 1, (count >> 1) + 500);
  const pageMs = performance.now() - middle;
  const closing = performance.now();
  await session.close();
  const closeMs = performance.now() - closing;
  await runtime.close();
  return { openMs, openBytes, pageMs, closeMs, count, page: page.length, live: session.events.length };
}

/** Forks the session; the CPU time beside the wall time, as most of the latter is the disk. */
async function fork(sessionId) {
  const runtime = createRuntime({ environment, home });
  const from = performance.now();
  const before = process.cpuUsage();
  const forked = await runtime.forkSession({ sessionId });
  const { user, system } = process.cpuUsage(before);
  const forkMs = performance.now() - from;
  await runtime.close();
  return {
    sessionId: forked.sessionId,
    forkMs,
    cpuMs: (user + system) / 1000,
    bytes: process.resourceUsage().maxRSS * 1024,
  };
}

/** The second list of a process: what a server does when it is asked again. */
async function list() {
  const runtime = createRuntime({ environment, home });
  const first = performance.now();
  const { length } = await runtime.store.list();
  const firstMs = performance.now() - first;
  const second = performance.now();
  await runtime.store.list();
  const secondMs = performance.now() - second;
  await runtime.close();
  return { length, firstMs, secondMs };
}

/** The same over the contract: `session.list` of a server, from the request to the parsed answer. */
async function listServed() {
  const { createClient } = await import("../dist/lib/sdk.js");
  const path = fileURLToPath(new URL("../bin/troupe.js", import.meta.url));
  const env = { ...process.env, ...environment, TROUPE_HOME: home, TROUPE_NO_DISCOVERY: "1" };
  const client = await createClient({ connection: { kind: "stdio", path }, environment: env });
  const took = [];
  let length = 0;
  for (let run = 0; run < 4; run++) {
    const from = performance.now();
    ({ length } = await client.listSessions());
    took.push(performance.now() - from);
  }
  await client.stop();
  const [firstMs, ...others] = took;
  return { length, firstMs, secondMs: Math.min(...others) };
}

function fillLong(sessionId, events, compactEvery) {
  const log = newLog(sessionId, Date.UTC(2026, 0, 1));
  begin(log, sessionId, "/work/long");
  let messages = 0;
  let since = 0;
  for (let turn = 0; log.count() < Number(events) - 1; turn++) {
    const before = log.count();
    question(log, turn);
    messages += 4;
    since += log.count() - before;
    if (since < Number(compactEvery)) continue;
    const removed = { messagesRemoved: messages - 5, checkpointNumber: log.count() };
    const summaryContent = "<overview>\nThe user asks one question after another.\n</overview>";
    log.put("session.compaction_complete", { success: true, trigger: "threshold", ...removed, summaryContent });
    [messages, since] = [5, 0];
  }
  return { bytes: log.close() };
}

function fillMany(sessions) {
  for (let number = 0; number < Number(sessions); number++) {
    const sessionId = `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;
    const at = Date.UTC(2026, 0, 1) + number * 60_000;
    const log = newLog(sessionId, at);
    // `--continue` takes only sessions of its own folder.
    const cwd = number % 50 === 0 ? process.cwd() : `/work/project-${number % 50}`;
    begin(log, sessionId, cwd);
    question(log, number);
    log.close();
    const time = JSON.stringify(new Date(at).toISOString());
    const summary = {
      id: sessionId,
      cwd,
      user_named: false,
      title: `Question ${number}`,
      model: "mock-model",
      turns: 2,
    };
    const lines = Object.entries(summary).map(([key, value]) => `${key}: ${JSON.stringify(value)}\n`);
    const content = `${lines.join("")}created_at: ${time}\nupdated_at: ${time}\n`;
    writeFileSync(join(home, "session-state", sessionId, "workspace.yaml"), content, { mode: 0o600 });
  }
  return {};
}

function begin(log, sessionId, cwd) {
  const startTime = new Date().toISOString();
  const start = { sessionId, version: 1, producer: "troupe", copilotVersion: "0.0.0", startTime };
  log.put("session.start", { ...start, selectedModel: "mock-model", context: { cwd } });
  log.put("session.model_change", { newModel: "mock-model" });
  log.put("system.message", { role: "system", content: "You answer questions." });
}

/** A question that takes one call, then the answer: eleven events. */
function question(log, number) {
  const toolCallId = `call_${number}`;
  const given = { path: `src/file-${number % 30}.ts` };
  log.put("user.message", { content: `Question ${number}: and what about this?`, interactionId: `m${number}` });
  for (const turnId of ["0", "1"]) {
    const requests = turnId === "0" ? [{ toolCallId, name: "view", arguments: given }] : [];
    const content = turnId === "0" ? "" : `Answer ${number}: it is fine.`;
    log.put("assistant.turn_start", { turnId });
    const tokens = { inputTokens: 900, outputTokens: 20, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
    const call = { provider: "custom", model: "mock-model", costUsd: null, durationMs: 5, attempts: 1 };
    log.put("troupe.usage", { turnId, ...call, ...tokens });
    log.put("assistant.message", { messageId: `a${number}-${turnId}`, content, toolRequests: requests, turnId });
    if (turnId === "0") {
      const result = { content: `line of file ${number} `.repeat(15) };
      log.put("tool.execution_start", { toolCallId, toolName: "view", arguments: given });
      log.put("tool.execution_complete", { toolCallId, success: true, result });
    }
    log.put("assistant.turn_end", { turnId });
  }
}

/** Writes lines as the store does, a million of them in seconds. */
function newLog(sessionId, began) {
  const folder = join(home, "session-state", sessionId);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = openSync(join(folder, "events.jsonl"), "w", 0o600);
  let [seq, prev, parentId, lines, bytes] = [0, "00000000", null, "", 0];
  const flush = () => {
    bytes += writeSync(file, lines);
    lines = "";
  };
  return {
    count: () => seq,
    put(type, data) {
      const id = `${sessionId}-${++seq}`;
      const event = JSON.stringify({ id, timestamp: new Date(began + seq * 10).toISOString(), parentId, type, data });
      const covered = `${event.slice(0, -1)},"troupe":{"seq":${seq},"prev":"${prev}"`;
      prev = crc32(covered).toString(16).padStart(8, "0");
      parentId = id;
      lines += `${covered},"crc":"${prev}"}}\n`;
      if (lines.length > 1 << 20) flush();
    },
    close() {
      flush();
      closeSync(file);
      return bytes;
    },
  };
}
