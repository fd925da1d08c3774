// `npm run test:kills`: kills the built program (SIGKILL) amid its work, resumes the session and checks its log. Arguments:
//   --rounds N    rounds (1000)
//   --kind K      only this kind: turns, background, nested, mixed, messages, compaction or server
//   --seed S      the seed of the first round; each that follows adds one
//   --seconds N   begins no more rounds after this time (7200)
//   --workers N   rounds at a time (one per core)
//   --keep        keeps the folders of rounds that passed, too
// A round has a home, a workspace and a model of its own. About a third are killed again while they recover, and two of
// five run their commands without the sandbox. `unstored` counts those that were killed before there was a log.
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { checkRound, leftRunning } from "./kill-check.mjs";
import { kinds, startModel } from "./kill-script.mjs";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "1000" },
    kind: { type: "string" },
    seed: { type: "string", default: String(Date.now() % 1_000_000_000) },
    seconds: { type: "string", default: "7200" },
    workers: { type: "string", default: String(availableParallelism()) },
    keep: { type: "boolean", default: false },
  },
});
const [rounds, seed, seconds, workers] = [values.rounds, values.seed, values.seconds, values.workers].map(Number);
const names = values.kind === undefined ? Object.keys(kinds) : [values.kind];
if (!names.every((name) => name in kinds))
  stop(`There is no kind "${values.kind}". Kinds: ${Object.keys(kinds).join(", ")}.`);
if (![rounds, seed, seconds, workers].every((number) => Number.isInteger(number) && number >= 0) || workers < 1) {
  stop("--rounds, --seed, --seconds and --workers are whole numbers.");
}

const root = fileURLToPath(new URL("..", import.meta.url));
const program = join(root, "bin/troupe.js");
if (!existsSync(join(root, "dist/lib/testing.js"))) stop("There is no build. Run `npm run build` first.");
const testing = await import(pathToFileURL(join(root, "dist/lib/testing.js")).href);
const { approveAll, createClient } = await import(pathToFileURL(join(root, "dist/lib/sdk.js")).href);

const RUN_MS = 120_000;
/** Within so many lines a resumed session still recovers. */
const SOON = 12;
const base = mkdtempSync(join(tmpdir(), "troupe-kills-"));
const running = new Set();
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => end(130));

const started = performance.now();
const table = Object.fromEntries(names.map((name) => [name, { rounds: 0, kills: 0, unstored: 0, failed: 0 }]));
let next = 0;
await Promise.all(Array.from({ length: workers }, lane));
end(0);

function end(code) {
  console.table(table);
  const sum = (field) => Object.values(table).reduce((total, row) => total + row[field], 0);
  const took = Math.round((performance.now() - started) / 1000);
  const [played, failed] = [sum("rounds"), sum("failed")];
  console.log(`${played - failed} passed, ${failed} failed (${sum("kills")} kills, seed ${seed}, ${took} s)`);
  for (const child of running) child.kill("SIGKILL");
  if (failed === 0 && !values.keep) rmSync(base, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  process.exit(code === 0 && (failed > 0 || played === 0) ? 1 : code);
}

async function lane() {
  while (next < rounds && performance.now() - started < seconds * 1000) {
    const index = next++;
    const kind = names[index % names.length];
    const row = table[kind];
    const folder = join(base, `${kind}-${seed + index}`);
    const { problems, kills, isUnstored } = await play({ kind, seed: seed + index, folder });
    row.rounds++;
    row.kills += kills;
    if (isUnstored) row.unstored++;
    if (problems.length === 0) {
      if (!values.keep) rmSync(folder, { recursive: true, force: true });
      continue;
    }
    row.failed++;
    console.log(`FAILED ${kind}, seed ${seed + index}; its files are in ${folder}`);
    for (const problem of problems.slice(0, 12)) console.log(`  ${problem}`);
    console.log(`  again: npm run test:kills -- --kind ${kind} --seed ${seed + index} --rounds 1`);
  }
}

/** One round. The same seed plans the same kills; the machine decides what exactly they hit. */
async function play({ kind, seed: own, folder }) {
  const random = randomFrom(own);
  const round = {
    kind,
    folder,
    home: join(folder, "home"),
    workspace: join(folder, "work"),
    told: [],
    sent: [],
    kills: 0,
  };
  round.sessionId = randomUUID();
  // Without the sandbox, another part ends the commands that the program leaves behind.
  if (random() < 0.4) round.sandbox = "off";
  for (const place of [round.home, round.workspace]) mkdirSync(place, { recursive: true, mode: 0o700 });
  writeFileSync(join(round.workspace, "notes.txt"), "a line\n".repeat(20));
  const model = await startModel(testing, { kind, workspace: round.workspace, random: randomFrom(own + 1e9) });
  writeFileSync(
    join(round.home, "providers.json"),
    JSON.stringify(providers(model.server.baseUrl, kinds[kind].window)),
  );
  const problems = [];
  let isUnstored = false;
  try {
    const live = kind === "server" ? serverRuns : commandRuns;
    isUnstored = (await live({ round, random, problems })) === "unstored";
    if (isUnstored) problems.push(...(await leftRunning(folder)));
    else problems.push(...(await checkRound({ ...round, tokens: model.tokens })), ...unsent(round));
  } catch (error) {
    problems.push(String(error?.stack ?? error));
  } finally {
    await model.server.close();
  }
  return { problems, kills: round.kills, isUnstored };
}

function providers(baseUrl, contextWindow = 200_000) {
  const scripted = { baseUrl, apiKey: "none", wireApi: "completions", models: { scripted: { contextWindow } } };
  return { providers: { scripted }, defaultModel: "scripted/scripted" };
}

/** When to kill: mostly once so many lines were seen and some milliseconds later, else at a time after the start. */
function planKill(random, lines) {
  if (random() < 0.15) return { afterMs: Math.floor(random() * 700) };
  return { lines: Math.floor(random() * lines), thenMs: Math.floor(random() * random() * 60) };
}

async function commandRuns({ round, random, problems }) {
  const common = ["--output-format", "json", "--allow-all"];
  await command(
    round,
    ["-p", "Begin. [[main]]", "--session-id", round.sessionId, ...common],
    planKill(random, kinds[round.kind].lines),
  );
  const again = random() < 0.5 ? ["--continue"] : ["--resume", round.sessionId];
  const isAgain = random() < 0.35;
  const second = planKill(random, SOON);
  if (!isStored(round)) return unstored(round, problems);
  if (isAgain) await command(round, ["-p", "Go on. [[finish]]", ...again, ...common], second);
  const last = await command(round, ["-p", "Go on to the end. [[finish]]", ...again, ...common]);
  if (last.code !== 0) problems.push(`resuming ended with ${last.code ?? last.signal}: ${last.errors.slice(-1500)}`);
}

/** A session whose first record was not on disk yet leaves nothing, and nobody was told of it. */
function unstored(round, problems) {
  const events = round.told.flat().filter(({ ephemeral, id }) => !ephemeral && id !== undefined);
  if (events.length > 0) problems.push(`${events.length} events were shown and there is no log`);
  return "unstored";
}

function isStored({ home, sessionId }) {
  const log = join(home, "session-state", sessionId, "events.jsonl");
  return existsSync(log) && statSync(log).size > 0 && readFileSync(log).includes(10);
}

/** Runs the program to its end or to its death. */
async function command(round, args, kill) {
  const child = start(round, args);
  const shown = [];
  round.told.push(shown);
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text) => {
    errors += text;
  });
  const death = killer(round, child, kill);
  const lines = createInterface({ input: child.stdout });
  lines.on("line", (line) => {
    // A line that the kill cut short was never whole on the way out.
    const event = parse(line);
    if (event) shown.push(event);
    death.saw();
  });
  return { ...(await ended(child, death)), errors };
}

function start({ workspace, home, folder, sandbox }, args) {
  const child = spawn(process.execPath, [program, ...args], {
    cwd: workspace,
    env: {
      ...{ PATH: process.env.PATH, HOME: folder, TROUPE_HOME: home, TROUPE_NO_DISCOVERY: "1", LANG: "C.UTF-8" },
      ...(sandbox && { TROUPE_SANDBOX: sandbox }),
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  running.add(child);
  child.once("close", () => running.delete(child));
  return child;
}

function killer(round, child, kill) {
  let seen = 0;
  let timer;
  const strike = () => {
    if (child.exitCode === null && child.signalCode === null && child.kill("SIGKILL")) round.kills++;
  };
  const after = (milliseconds) => {
    timer ??= setTimeout(strike, milliseconds);
  };
  if (kill?.afterMs !== undefined) after(kill.afterMs);
  const saw = () => {
    if (kill?.lines !== undefined && ++seen > kill.lines) after(kill.thenMs);
  };
  return { saw, strike, clear: () => clearTimeout(timer) };
}

function ended(child, death) {
  return new Promise((resolve) => {
    const late = setTimeout(() => child.kill("SIGKILL"), RUN_MS);
    child.once("close", (code, signal) => {
      clearTimeout(late);
      death.clear();
      resolve({ code, signal });
    });
  });
}

function parse(line) {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

async function serverRuns({ round, random, problems }) {
  const person = random() < 0.6 ? personWhoLeaves(Math.floor(random() * 3)) : { ask: approveAll, left: sleep(3000) };
  const waitMs = Math.floor(random() * 80);
  // Half are killed when the request has just been left open, or when all is done.
  const kill = random() < 0.5 ? { lines: Number.POSITIVE_INFINITY } : planKill(random, kinds.server.lines);
  const isAgain = random() < 0.35;
  const second = planKill(random, SOON);
  const resume = { continuePendingWork: random() < 0.4 };
  await serve(round, kill, async (client, config) => {
    const session = await client.createSession({
      ...config,
      sessionId: round.sessionId,
      onPermissionRequest: person.ask,
    });
    await send(round, session, { prompt: "First. [[main]]" });
    await send(round, session, { prompt: "Second. [[queued]]" });
    await send(round, session, { prompt: "Third. [[steered]]", mode: "immediate" });
    await Promise.race([person.left, sleep(3000)]);
    await sleep(waitMs);
  });
  if (!isStored(round)) return unstored(round, problems);
  const takeUp = (client, config) =>
    client.resumeSession(round.sessionId, { ...config, ...resume, onPermissionRequest: approveAll });
  if (isAgain) {
    await serve(round, second, async (client, config) => {
      await send(round, await takeUp(client, config), { prompt: "Fourth. [[queued]]" });
      await sleep(500);
    });
  }
  const last = await serve(round, undefined, async (client, config) => {
    const session = await takeUp(client, config);
    await session.sendAndWait("Last. [[finish]]", 60_000);
    round.sent.push("Last. [[finish]]");
  });
  if (last.error) problems.push(`resuming failed: ${last.error.stack}`);
  if (last.code !== 0) problems.push(`the server ended with ${last.code ?? last.signal}: ${last.errors.slice(-1500)}`);
}

/** Answers so many requests and leaves the next one open. */
function personWhoLeaves(answers) {
  let leave;
  const left = new Promise((resolve) => {
    leave = resolve;
  });
  const ask = () => {
    if (answers-- > 0) return approveAll();
    leave();
    return new Promise(() => {});
  };
  return { ask, left };
}

async function send(round, session, message) {
  await session.send(message);
  round.sent.push(message.prompt);
}

/** A server and a client at work, until the work is done or the server is killed; at last the server is told to end. */
async function serve(round, kill, work) {
  const child = start(round, ["--headless", "--no-connection-token"]);
  const death = killer(round, child, kill);
  const end = ended(child, death);
  const shown = [];
  round.told.push(shown);
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text) => {
    errors += text;
  });
  const port = await Promise.race([listening(child), end.then(() => undefined)]);
  if (port === undefined) return { ...(await end), errors, error: new Error("the server never listened") };
  const client = await createClient({ connection: { kind: "tcp", port }, workingDirectory: round.workspace }).catch(
    () => undefined,
  );
  const hear = (event) => {
    shown.push(event);
    death.saw();
  };
  let error;
  const done = (client ? work(client, { onEvent: hear }) : Promise.reject(new Error("no connection"))).catch(
    (caught) => {
      error = caught;
    },
  );
  await Promise.race([done, end]);
  // What the kill was planned for may never come about: then it comes now.
  if (kill) death.strike();
  await client?.stop().catch(() => {});
  if (!kill) child.kill("SIGTERM");
  return { ...(await end), errors, error };
}

function listening(child) {
  return new Promise((resolve) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      const port = /listening on port (\d+)/.exec(line)?.[1];
      if (port) resolve(Number(port));
    });
  });
}

/** Every message that the server accepted stands in the log, once. */
function unsent({ home, sessionId, sent }) {
  const log = readFileSync(join(home, "session-state", sessionId, "events.jsonl"), "utf8")
    .split("\n")
    .slice(0, -1);
  const messages = log.map(parse).filter((event) => event?.type === "user.message" && event.agentId === undefined);
  return sent.flatMap((prompt) => {
    const count = messages.filter(({ data }) => data.content.includes(prompt)).length;
    return count === 1 ? [] : [`the accepted message "${prompt}" stands ${count} times in the log`];
  });
}

/** Numbers from 0 to 1 that a seed decides (mulberry32). */
function randomFrom(from) {
  let state = from >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

function stop(why) {
  console.error(why);
  process.exit(2);
}
