// The interactive terminal on a real pseudo terminal, beside other terminal agents where they are installed.
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { now, runChild } from "./run-child.mjs";
import { quantile, spread } from "./statistics.mjs";
import { deepApproval } from "./terminal-approval.mjs";
import { keyTimes, loadPty, pause, startProgram, streamingModel } from "./terminal-stage.mjs";

const bin = fileURLToPath(new URL("../bin/troupe.js", import.meta.url));
const store = fileURLToPath(new URL("./store-work.mjs", import.meta.url));
const EVENTS = 20_000;
const PASTE_BYTES = 10 * 1024 * 1024;
const CTRL_C = "\u0003";
/** The status line of a session that is open; before that it says "starting". */
const OPEN = /interactive · [^\n]*Esc (?:Esc rewinds|interrupts)/;
const most = (limit) => ({ kind: "most", limit });

/** Separate entries of one name, so that one that fails leaves the figures of the others. */
export const terminalScenarios = [
  part((where, full) => firstFrames({ ...where, rounds: full ? 15 : 5 })),
  part((where, full) => keys({ ...where, count: full ? 300 : 100 })),
  part(async (where, full) => [await idle({ ...where, settle: full ? 45 : 30, seconds: full ? 60 : 10 })]),
  part((where, full) => approval({ ...where, rounds: full ? 15 : 5 })),
  part(async (where, full) => [await openLong({ ...where, rounds: full ? 15 : 5 })]),
  part(async (where) => [await paste(where)]),
  part(async (where, full) => [await draft({ ...where, rounds: full ? 15 : 5 })]),
];

/** Nothing is measured where the optional package for pseudo terminals is not installed. */
function part(figures) {
  return {
    name: "terminal",
    async figures({ stage, full }) {
      const pty = loadPty();
      return pty ? figures({ pty, stage }, full) : [];
    },
  };
}

function environment(stage, name, more = {}) {
  const home = join(stage.home, `terminal-${name}`);
  mkdirSync(home, { recursive: true });
  return {
    PATH: process.env.PATH,
    TERM: "xterm-256color",
    HOME: home,
    TROUPE_HOME: home,
    TROUPE_NO_DISCOVERY: "1",
    TROUPE_SANDBOX: "off",
    ...more,
  };
}

const open = (pty, stage, { name, args = [], more = {} }) =>
  startProgram(pty, {
    file: process.execPath,
    args: [bin, ...args],
    cwd: stage.workspace,
    env: environment(stage, name, more),
  });

/** Peers are installed in the folder that TROUPE_BENCH_PEERS names, with npm; each has a text of its first frame. */
const peers = [
  { name: "pi", program: "pi", shows: /\u001b\[\?2026h|─{10}|│|>/ },
  { name: "gemini-cli", program: "gemini", shows: /[▝█]|Gemini|│|Type your message/ },
  { name: "opencode", program: "opencode", shows: /[█▀▄]|opencode|Ask anything/i },
  { name: "codex", program: "codex", shows: /\u001b\[\?(?:1049|2026)h/ },
  { name: "claude-code", program: "claude", shows: /Welcome|Claude/ },
];

async function firstFrames({ pty, stage, rounds }) {
  const figures = [];
  const own = { bare: [], frame: [], ready: [] };
  for (let round = 0; round < rounds; round++) {
    const bare = startProgram(pty, {
      file: process.execPath,
      args: ["-e", "process.stdout.write('up')"],
      cwd: stage.workspace,
      env: environment(stage, "bare"),
    });
    own.bare.push(await bare.until("up"));
    const program = open(pty, stage, { name: "frame" });
    own.frame.push(await program.until("›"));
    own.ready.push(await program.until(OPEN));
    program.kill();
    await program.ended;
  }
  const floor = spread(own.bare);
  figures.push({ name: "first frame", unit: "ms", floor, troupe: spread(own.frame), target: most(150) });
  figures.push({ name: "session open", unit: "ms", floor, troupe: spread(own.ready) });
  for (const peer of peers) {
    const file = join(process.env.TROUPE_BENCH_PEERS ?? "", "node_modules", ".bin", peer.program);
    if (!process.env.TROUPE_BENCH_PEERS || !existsSync(file)) continue;
    const times = [];
    for (let round = 0; round < rounds; round++) {
      const env = environment(stage, peer.name, { GEMINI_API_KEY: "x", ANTHROPIC_API_KEY: "x", OPENAI_API_KEY: "x" });
      const program = startProgram(pty, { file, args: [], cwd: stage.workspace, env });
      times.push(await program.until(peer.shows, { timeoutMs: 60_000 }));
      program.kill();
      await program.ended;
    }
    const target = { kind: "ratio", limit: 1 };
    figures.push({
      name: `first frame, ${peer.name} as floor`,
      unit: "ms",
      floor: spread(times),
      troupe: spread(own.frame),
      target,
    });
  }
  return figures;
}

/** The least that a program on a terminal does with a key. */
const ECHO = `let text = "";
process.stdin.setRawMode(true).on("data", (data) => {
  for (const key of String(data)) text = key === "\\u0015" ? "" : text + key;
  process.stdout.write("\\r\\u001b[K› " + text);
});
process.stdout.write("up");`;

async function keys({ pty, stage, count }) {
  const env = environment(stage, "echo");
  const echo = startProgram(pty, { file: process.execPath, args: ["-e", ECHO], cwd: stage.workspace, env });
  await echo.until("up");
  await pause(500);
  const least = await keyTimes(echo, count);
  echo.kill();
  await echo.ended;
  const quiet = open(pty, stage, { name: "keys" });
  await quiet.until(OPEN);
  await pause(500);
  const calm = await keyTimes(quiet, count);
  quiet.kill();
  await quiet.ended;
  const model = await streamingModel();
  const more = { TROUPE_BASE_URL: model.baseUrl, TROUPE_MODEL: "stream", TROUPE_API_KEY: "x" };
  const busy = open(pty, stage, { name: "stream", more });
  await busy.until(OPEN);
  busy.write("go\r");
  await busy.until("some words of an answer");
  const under = await keyTimes(busy, count);
  busy.kill();
  await busy.ended;
  model.close();
  const p99 = (values) => ({ p50: quantile(values, 0.99), p90: quantile(values, 1) });
  return [
    { name: "key to paint, p99 / most", unit: "ms", floor: p99(least), troupe: p99(calm), target: most(16) },
    {
      name: "key to paint in a 2 MB stream with 30 agents, p99 / most",
      unit: "ms",
      troupe: p99(under),
      target: most(50),
    },
  ];
}

/**
 * Writes to the terminal, and wake-ups of all threads, of a session at rest. V8 collects garbage a few times in the
 * first half minute; the time to settle is for this.
 */
async function idle({ pty, stage, settle, seconds }) {
  const program = open(pty, stage, { name: "idle" });
  await program.until(OPEN);
  await pause(settle * 1000);
  const before = { writes: program.writes, switches: switchesOf(program.pid) };
  await pause(seconds * 1000);
  const writes = program.writes - before.writes;
  const wakes = switchesOf(program.pid) - before.switches;
  program.kill();
  await program.ended;
  if (writes > 0) throw new Error(`${writes} writes in ${seconds} s of rest`);
  return { name: `wake-ups in ${seconds} s at rest (no writes)`, unit: "", troupe: spread([wakes]), target: most(0) };
}

/** Voluntary context switches of all threads: each is a return from waiting. */
function switchesOf(pid) {
  const status = readdirSync(`/proc/${pid}/task`).map((id) => readFileSync(`/proc/${pid}/task/${id}/status`, "utf8"));
  const counts = status.map((text) => Number(/^voluntary_ctxt_switches:\s*(\d+)/m.exec(text)?.[1] ?? 0));
  return counts.reduce((sum, count) => sum + count, 0);
}

const approval = ({ pty, stage, rounds }) =>
  deepApproval({
    rounds,
    home: join(stage.home, "terminal-deep"),
    open: ({ args, more }) => open(pty, stage, { name: "deep", args, more }),
  });

async function openLong({ pty, stage, rounds }) {
  const home = join(stage.home, "terminal-long");
  const sessionId = "11111111-2222-4333-8444-555555555555";
  mkdirSync(home, { recursive: true });
  const argv = [store, "fill", home, sessionId, String(EVENTS)];
  await runChild({ argv, environment: {}, cwd: stage.workspace, scratch: stage.scratch });
  const times = [];
  for (let round = 0; round < rounds; round++) {
    const program = open(pty, stage, { name: "long", args: ["--resume", sessionId, "--model", "understudy"] });
    times.push(await program.until(OPEN, { timeoutMs: 60_000 }));
    program.write(CTRL_C);
    program.kill("SIGTERM");
    await Promise.race([program.ended, pause(5_000)]);
    program.kill();
  }
  return {
    name: `open a session of ${EVENTS.toLocaleString("en")} events`,
    unit: "ms",
    troupe: spread(times),
    target: most(1000),
  };
}

/** From the last byte of the paste to its marker; the draft on disk must hold every byte. */
async function paste({ pty, stage }) {
  const text = `${randomBytes(PASTE_BYTES / 2).toString("hex")}\n`;
  const program = open(pty, stage, { name: "paste" });
  await program.until(OPEN);
  program.write("\u001b[200~");
  for (let at = 0; at < text.length; at += 65_536) {
    program.write(text.slice(at, at + 65_536));
    await pause(0);
  }
  const from = now();
  program.write("\u001b[201~");
  const time = await program.until("[paste #1", { from, timeoutMs: 60_000 });
  const folder = join(stage.home, "terminal-paste", "drafts");
  for (let look = 0; look < 100 && draftIn(folder) !== text; look++) await pause(100);
  const isWhole = draftIn(folder) === text;
  program.kill();
  await program.ended;
  if (!isWhole) throw new Error("the draft is not what was pasted");
  return { name: "10 MB paste, last byte to marker", unit: "ms", troupe: spread([time]), target: most(300) };
}

function draftIn(folder) {
  if (!existsSync(folder)) return undefined;
  const [name] = readdirSync(folder).filter((one) => one.endsWith(".json"));
  if (name === undefined) return undefined;
  try {
    return JSON.parse(readFileSync(join(folder, name), "utf8")).text;
  } catch {
    return undefined;
  }
}

/** Share of drafts that survive a kill 300 ms after the last key. */
async function draft({ pty, stage, rounds }) {
  let kept = 0;
  for (let round = 0; round < rounds; round++) {
    const program = open(pty, stage, { name: `draft-${round}` });
    await program.until(OPEN);
    program.write("half a thought");
    await program.until("half a thought");
    await pause(300);
    program.kill();
    await program.ended;
    if (draftIn(join(stage.home, `terminal-draft-${round}`, "drafts")) === "half a thought") kept++;
  }
  return {
    name: "drafts kept after kill -9, 300 ms old",
    unit: "%",
    troupe: spread([(100 * kept) / rounds]),
    target: { kind: "least", limit: 100 },
  };
}
