// Scenarios that run troupe and the floor as programs, in turns. Each gives samples, and samples become figures.
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { manyAgentsScenario } from "./many-agents.mjs";
import { runChild } from "./run-child.mjs";
import { median, spread } from "./statistics.mjs";

const TURNS = 60;
const COMMANDS = 20;
const LONG_ANSWER_BYTES = 2_000_000;
const SANDBOXED = { kind: "difference", limit: 13 };
const launcher = fileURLToPath(new URL("../bin/troupe.js", import.meta.url));
const floorAgent = fileURLToPath(new URL("./floor-agent.mjs", import.meta.url));

export const agentScenarios = [
  {
    name: "version",
    runs: (reps) => Math.max(20, reps * 4),
    argv: { floor: ["-e", "0"], troupe: [launcher, "--version"] },
    figures: (samples) => [
      figure("`--version` against `node -e 0`", "ms", samples, ({ wallMs }) => wallMs, { kind: "ratio", limit: 1.3 }),
    ],
  },
  {
    name: "start",
    runs: (reps) => Math.max(10, reps * 2),
    prompt: "Say so. [[bench:turns:0]]",
    requests: 1,
    figures: (samples) => [
      figure("exec to first model request", "ms", samples, ({ firstRequestMs }) => firstRequestMs, {
        kind: "difference",
        limit: 80,
      }),
      figure("exec to exit", "ms", samples, ({ wallMs }) => wallMs),
      figure("size of the first request", "KB", samples, ({ requestBytes }) => requestBytes / 1000),
    ],
  },
  {
    name: "turns",
    runs: (reps) => reps,
    measure: true,
    prompt: `Read the files one by one. [[bench:turns:${TURNS}]]`,
    requests: TURNS + 1,
    figures: turnFigures,
  },
  {
    name: "shell",
    runs: (reps) => reps,
    prompt: `Run the commands one by one. [[bench:shell:${COMMANDS}]]`,
    requests: COMMANDS + 1,
    figures: (samples) => [shellFigure("own time per shell turn, in the sandbox", samples, SANDBOXED)],
  },
  {
    // Real models take at least this long, and troupe uses the time to start the next bubblewrap.
    name: "shell-think",
    runs: (reps) => reps,
    prompt: `Run the commands one by one. [[bench:think:${COMMANDS}]]`,
    requests: COMMANDS + 1,
    figures: (samples) => [shellFigure("own time per shell turn, in the sandbox, model of 30 ms", samples)],
  },
  {
    // Shows which part of a shell turn is the sandbox.
    name: "shell-off",
    runs: (reps) => reps,
    prompt: `Run the commands one by one. [[bench:shell:${COMMANDS}]]`,
    requests: COMMANDS + 1,
    environment: { TROUPE_SANDBOX: "off" },
    figures: (samples) => [shellFigure("own time per shell turn, sandbox off", samples)],
  },
  {
    name: "stream",
    runs: (reps) => reps,
    measure: true,
    prompt: `Tell me everything. [[bench:text:${LONG_ANSWER_BYTES}]]`,
    requests: 1,
    answerBytes: LONG_ANSWER_BYTES,
    figures: (samples) => [
      figure("CPU of a 2 MB answer in 32-byte deltas", "ms", samples, ({ cpuMs }) => cpuMs, {
        kind: "ratio",
        limit: 2.5,
      }),
      figure("exec to exit", "ms", samples, ({ wallMs }) => wallMs),
      figure("peak memory", "MB", samples, ({ peakBytes }) => peakBytes / 1e6),
    ],
  },
  manyAgentsScenario(figure),
];

/** One run of one peer, checked: a program that did not do the work has no figures. Throws what went wrong. */
export async function runAgent({ scenario, peer, stage, mock, wire, nodeArguments = [] }) {
  const argv = scenario.argv?.[peer] ?? commandLine(peer, scenario.prompt);
  await mock.take();
  const run = await runChild({
    argv: [...nodeArguments, ...argv],
    environment: {
      ...environmentOf({ peer, stage, wire, port: mock.port }),
      ...(peer === "troupe" && scenario.environment),
    },
    cwd: stage.workspace,
    scratch: stage.scratch,
    measure: scenario.measure,
  });
  const requests = await mock.take();
  const problem = problemOf({ scenario, run, requests });
  if (problem) throw new Error(`${peer} did not do the work: ${problem}${run.complaint && ` (${run.complaint})`}`);
  const [first] = requests;
  return {
    ...run,
    gaps: requests.slice(1).map(({ gapMs }) => gapMs),
    ...(first && { firstRequestMs: first.arrivedAt - run.startedAt, requestBytes: first.bytes }),
  };
}

function problemOf({ scenario, run, requests }) {
  const refused = requests.find(({ problem }) => problem);
  if (refused) return refused.problem;
  if (run.code !== 0) return `it ended with ${run.code}`;
  if (requests.length !== (scenario.requests ?? 0)) {
    return `${requests.length} model requests instead of ${scenario.requests ?? 0}`;
  }
  if (scenario.answerBytes && run.outBytes < scenario.answerBytes) return `it printed only ${run.outBytes} bytes`;
  return undefined;
}

function commandLine(peer, prompt) {
  return peer === "floor" ? [floorAgent, prompt] : [launcher, "-p", prompt, "--allow-all", "--silent"];
}

export function environmentOf({ peer, stage, wire, port }) {
  const base = `http://127.0.0.1:${port}/v1`;
  if (peer === "floor") return { FLOOR_BASE_URL: base, FLOOR_WIRE: wire };
  return {
    TROUPE_BASE_URL: base,
    TROUPE_API_KEY: "mock",
    TROUPE_MODEL: "mock-model",
    TROUPE_WIRE_API: wire,
    TROUPE_HOME: join(stage.home, "troupe"),
  };
}

function figure(name, unit, samples, pick, target) {
  return {
    name,
    unit,
    floor: spread(samples.floor.map(pick)),
    troupe: spread(samples.troupe.map(pick)),
    ...(target && { target }),
  };
}

/** The first gap is left out: it holds the start of the watchdog and everything compiled on first use. */
function shellFigure(name, { floor, troupe }, target) {
  const own = (runs) => spread(runs.flatMap(({ gaps }) => gaps.slice(1)));
  return { name, unit: "ms", floor: own(floor), troupe: own(troupe), ...(target && { target }) };
}

/** A gap is the agent's own time: from the end of one response to the arrival of the next request. */
function turnFigures(samples) {
  const around = (from, to) => (runs) => runs.flatMap(({ gaps }) => gaps.slice(from - 1, to));
  const gapFigure = (name, gapsOf, target) => ({
    name,
    unit: "ms",
    floor: spread(gapsOf(samples.floor)),
    troupe: spread(gapsOf(samples.troupe)),
    target,
  });
  // The very first gap is left out: it holds what is compiled on first use.
  const growth = (runs) => median(around(TURNS - 9, TURNS)(runs)) / median(around(2, 11)(runs));
  const near = { kind: "difference", limit: 3 };
  return [
    gapFigure("own time per turn, turns 16 to 25", around(16, 25), near),
    gapFigure("own time per turn, turns 51 to 60", around(TURNS - 9, TURNS), near),
    {
      name: "growth, last ten turns over first ten",
      unit: "×",
      floor: { p50: growth(samples.floor) },
      troupe: { p50: growth(samples.troupe) },
      target: { kind: "most", limit: 1.3 },
    },
    figure("peak memory", "MB", samples, ({ peakBytes }) => peakBytes / 1e6, { kind: "ratio", limit: 1.8 }),
    figure("CPU", "ms", samples, ({ cpuMs }) => cpuMs),
    figure("exec to exit", "ms", samples, ({ wallMs }) => wallMs),
  ];
}
