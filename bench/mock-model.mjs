// A scripted model endpoint on the loopback. It holds no conversation: a marker in the prompt says what to play, and
// the number of tool results in the request says how far it has come.
//
//   [[bench:turns:N]]       N calls of `view`, one after the other, then "done"
//   [[bench:shell:N]]       N calls of `bash` with an `echo`, one after the other, then "done"
//   [[bench:think:N]]       the same by a model that thinks for 30 ms before each reply
//   [[bench:text:BYTES]]    one text of that many bytes, in deltas of 32
//   [[bench:drip:N]]        N short deltas, one each millisecond, each with the moment it was sent (`@<ns>;`);
//                           text and thoughts in turns, for pieces of one kind that arrive together become one event
//   [[bench:agents:N]]      N calls of `task` at once, then "done"; each agent reads a file, see many-agents.mjs
//   [[bench:team:N]]        the same without thinking, for sessions that may lose their process
//
// Runs as a child process with an IPC channel: `{ port }` when it listens; `"take"` is answered with the requests
// seen since the last one. Times are of the monotonic clock, which all processes of a machine share.
import { createServer } from "node:http";
import { join } from "node:path";
import { decideManyAgents, decideTeam } from "./many-agents.mjs";
import { wires } from "./wires.mjs";

const DELTA_BYTES = 32;
const DRIP_MS = 1;
const THINK_MS = 30;
const WRITE_BYTES = 16 * 1024;
const folder = process.argv[2];
const longAnswers = new Map();
let requests = [];
let answers = 0;
let lastEnd;

const server = createServer((request, response) => {
  const arrivedAt = now();
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    answer({ request, response, arrivedAt, raw: Buffer.concat(chunks) }).catch((error) => {
      note({ arrivedAt, problem: error.message });
      if (!response.headersSent) response.writeHead(400, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: { message: `mock: ${error.message}` } }));
    });
  });
});
server.keepAliveTimeout = 120_000;
server.listen(0, "127.0.0.1", () => process.send({ port: server.address().port }));

process.on("message", () => {
  process.send({ requests });
  requests = [];
  lastEnd = undefined;
});
process.on("disconnect", () => process.exit(0));

async function answer({ request, response, arrivedAt, raw }) {
  const name = Object.keys(wires).find((wire) => request.url.split("?")[0].endsWith(wires[wire].path));
  if (request.method !== "POST" || !name) throw new Error(`no such route: ${request.method} ${request.url}`);
  const body = JSON.parse(raw);
  if (body.stream !== true) throw new Error("only streamed replies are played");
  const { prompt, results } = wires[name].read(body);
  const gapMs = lastEnd === undefined ? null : arrivedAt - lastEnd;
  const step = decide(prompt, results);
  const reply = { id: `r${++answers}`, model: body.model, ...step };
  if (step.delayMs) await new Promise((resolve) => setTimeout(resolve, step.delayMs));

  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  response.once("finish", () => {
    lastEnd = now();
    note({ arrivedAt, endedAt: lastEnd, gapMs, turn: results.length, bytes: raw.length });
  });
  if (step.drips !== undefined) await drip(response, wires[name].stream({ ...reply, deltas: moments(step.drips) }));
  else if (step.bytes === undefined) response.end([...wires[name].stream(reply)].join(""));
  else await sendLong(response, longAnswer(name, step.bytes));
}

function decide(prompt, results) {
  const [, marker] = /\[\[bench:([a-z]+:\d+)\]\]/.exec(prompt.join("\n")) ?? [];
  if (marker === undefined) throw new Error("the prompt has no [[bench:…]] marker");
  const agents = decideManyAgents(marker, results, { view: viewCall });
  const team = decideTeam(marker, results, { view: viewCall, effect: effectCall });
  if (agents ?? team) return agents ?? team;
  const [kind, amount] = marker.split(":");
  if (kind === "text") return { bytes: Number(amount) };
  if (kind === "drip") return { drips: Number(amount) };
  const turn = results.length;
  const [mark, call] = kind === "turns" ? [fileMark, viewCall] : [shellMark, shellCall];
  // A fast turn is worth nothing if its tool failed.
  if (turn > 0 && !results[turn - 1].includes(mark(turn - 1))) {
    throw new Error(`result ${turn} does not contain "${mark(turn - 1)}": ${results[turn - 1].slice(0, 200)}`);
  }
  if (turn >= Number(amount)) return { deltas: ["done"] };
  return { ...call(turn), ...(kind === "think" && { delayMs: THINK_MS }) };
}

function shellCall(turn) {
  return { calls: [{ name: "bash", arguments: JSON.stringify({ command: `echo ${shellMark(turn)}` }) }] };
}

/** Leaves a line with the working folder, the time and a token. */
function effectCall(number) {
  const command = `date +"$PWD %s%N effect-${number}-" >> '${join(folder, "ledger")}'`;
  return { calls: [{ name: "bash", arguments: JSON.stringify({ command }) }] };
}

const shellMark = (turn) => `command ${turn} of the bench`;

function viewCall(turn) {
  const path = join(folder, `f${turn % 100}.txt`);
  return { calls: [{ name: "view", arguments: JSON.stringify({ path }) }] };
}

const fileMark = (turn) => `file ${turn % 100} of the bench`;

/** Encoded once and kept, so that the mock itself costs next to nothing while it sends. */
function longAnswer(name, bytes) {
  const key = `${name} ${bytes}`;
  if (!longAnswers.has(key)) {
    const blocks = [];
    let block = "";
    for (const event of wires[name].stream({ id: "long", model: "mock-model", deltas: pieces(bytes) })) {
      block += event;
      if (block.length < WRITE_BYTES) continue;
      blocks.push(Buffer.from(block));
      block = "";
    }
    longAnswers.set(key, [...blocks, Buffer.from(block)]);
  }
  return longAnswers.get(key);
}

function* pieces(bytes) {
  const line = "The quick brown fox jumps over the lazy dog while the band plays on.\n";
  const text = line.repeat(Math.ceil(bytes / line.length) + 1);
  for (let from = 0; from < bytes; from += DELTA_BYTES) yield text.slice(from, Math.min(from + DELTA_BYTES, bytes));
}

async function sendLong(response, blocks) {
  for (const block of blocks) {
    if (response.destroyed) return;
    if (!response.write(block)) await drained(response);
  }
  response.end();
}

/** Each is made when it is taken, so it says when it went out. */
function* moments(count) {
  for (let sent = 0; sent < count; sent++) {
    const text = `@${process.hrtime.bigint()}; and the band plays on, word by word,\n`;
    yield sent % 2 === 0 ? { thought: text } : text;
  }
}

/** A timer that was late is made up for. */
async function drip(response, events) {
  const from = now();
  for (let sent = 0; !response.destroyed; sent++) {
    const earlyMs = from + sent * DRIP_MS - now();
    if (earlyMs > 0) await new Promise((resolve) => setTimeout(resolve, earlyMs));
    const { value, done } = events.next();
    if (done) break;
    response.write(value);
  }
  response.end();
}

function drained(response) {
  return new Promise((resolve) => {
    const settle = () => {
      response.off("drain", settle);
      response.off("close", settle);
      resolve();
    };
    response.on("drain", settle);
    response.on("close", settle);
  });
}

function note(entry) {
  requests.push(entry);
}

function now() {
  return Number(process.hrtime.bigint()) / 1e6;
}
