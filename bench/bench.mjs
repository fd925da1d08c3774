// `npm run bench`: troupe beside the floor, against one scripted model, compared with the targets of docs/benchmarks.md.
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { agentScenarios, runAgent } from "./agent-scenarios.mjs";
import { parkedScenarios } from "./cluster-parked.mjs";
import { clusterScenarios } from "./cluster-scenarios.mjs";
import { contractScenarios } from "./contract-scenarios.mjs";
import { help, readOptions } from "./options.mjs";
import { pastScenarios } from "./past-scenarios.mjs";
import { figureTable, judge, machineLine, missed } from "./report.mjs";
import { endChildren, startMock } from "./run-child.mjs";
import { sandboxScenarios } from "./sandbox-scenarios.mjs";
import { scaleScenarios } from "./scale-scenarios.mjs";
import { startServer } from "./serve.mjs";
import { describeMachine, makeStage } from "./stage.mjs";
import { storeScenarios } from "./store-scenarios.mjs";
import { terminalScenarios } from "./terminal-scenarios.mjs";
import { webScenarios } from "./web-scenarios.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const results = join(root, "bench", "results");

process.exitCode = await main(process.argv.slice(2));

async function main(argv) {
  let options;
  try {
    options = readOptions(argv);
  } catch (error) {
    console.error(`bench: ${error.message}\n\n${help}`);
    return 2;
  }
  if (options.help) {
    console.log(help);
    return 0;
  }
  if (!existsSync(join(root, "dist", "cli", "start.cjs"))) {
    console.error("bench: there is nothing to measure yet: run npm run build first");
    return 2;
  }
  const stage = makeStage();
  const removeSignals = cleanUpOnSignal(stage);
  try {
    return await measure(options, stage);
  } finally {
    removeSignals();
    endChildren();
    stage.remove();
  }
}

async function measure(options, stage) {
  const machine = describeMachine(stage);
  say(options, machineLine(machine));
  const figures = [];
  const failures = [];
  const mock = await startMock(stage.workspace);
  const wanted = ({ name }) => options.only.includes(name);
  const attempt = async (scenario, work) => {
    const from = performance.now();
    try {
      for (const figure of await work()) figures.push(judge({ scenario: scenario.name, ...figure }));
    } catch (error) {
      failures.push(`${scenario.name}: ${error.message}`);
    }
    say(options, `${scenario.name}: ${((performance.now() - from) / 1000).toFixed(1)} s`);
  };
  for (const scenario of agentScenarios.filter(wanted)) {
    await attempt(scenario, async () => scenario.figures(await samplesOf({ scenario, stage, mock, options })));
    if (options.profile) await attempt(scenario, () => profile({ scenario, stage, mock, options }));
  }
  for (const scenario of contractScenarios.filter(wanted)) {
    const serve = (more) => startServer({ stage, mock, ...more });
    await attempt(scenario, () => scenario.figures({ serve, stage, full: options.full }));
    if (options.profile) await attempt(scenario, () => profileServer({ scenario, serve, stage, options }));
  }
  mock.stop();
  for (const scenario of [
    ...storeScenarios,
    ...pastScenarios,
    ...scaleScenarios,
    ...sandboxScenarios,
    ...terminalScenarios,
    ...webScenarios,
    ...clusterScenarios,
    ...parkedScenarios,
  ].filter(wanted)) {
    await attempt(scenario, () => scenario.figures({ stage, full: options.full }));
  }
  for (const figure of figures) if (figure.pass === false) failures.push(missed(figure));
  print({ options, machine, figures, failures });
  return failures.length > 0 ? 1 : 0;
}

/** The peers take turns, and each repetition another one begins: what disturbs the machine disturbs both alike. */
async function samplesOf({ scenario, stage, mock, options }) {
  const peers = ["floor", "troupe"];
  const samples = { floor: [], troupe: [] };
  const run = (peer) => runAgent({ scenario, peer, stage, mock, wire: options.wire });
  for (const peer of peers) await run(peer); // fills the caches of the disk
  for (let repetition = 0; repetition < scenario.runs(options.reps); repetition++) {
    for (const peer of repetition % 2 === 0 ? peers : peers.toReversed()) samples[peer].push(await run(peer));
  }
  return samples;
}

async function profile({ scenario, stage, mock, options }) {
  const nodeArguments = profiling(scenario, options);
  await runAgent({ scenario, peer: "troupe", stage, mock, wire: options.wire, nodeArguments });
  return [];
}

async function profileServer({ scenario, serve, stage, options }) {
  const nodeArguments = profiling(scenario, options);
  await scenario.figures({ serve: (more) => serve({ ...more, nodeArguments }), stage, full: false });
  return [];
}

function profiling(scenario, options) {
  mkdirSync(results, { recursive: true });
  const name = `${scenario.name}-${options.wire}.cpuprofile`;
  say(options, `${scenario.name}: profile in ${join("bench", "results", name)}`);
  return ["--cpu-prof", "--cpu-prof-interval=200", `--cpu-prof-dir=${results}`, `--cpu-prof-name=${name}`];
}

function print({ options, machine, figures, failures }) {
  if (options.json) {
    const { wire, reps, full } = options;
    console.log(JSON.stringify({ machine, wire, reps, full, figures, failures }, null, 2));
  } else {
    console.log(
      `\n${machineLine(machine)}\nwire ${options.wire}, ${options.reps} repetitions\n\n${figureTable(figures)}\n`,
    );
    console.log(
      failures.length > 0 ? `FAIL\n${failures.map((name) => `  ${name}`).join("\n")}` : "PASS: every target is met",
    );
  }
}

/** Progress goes to stderr, so that stdout holds the result alone. */
function say({ json }, line) {
  if (!json) process.stderr.write(`${line}\n`);
}

function cleanUpOnSignal(stage) {
  const end = (signal) => {
    endChildren();
    stage.remove();
    process.exit(signal === "SIGINT" ? 130 : 143);
  };
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, end);
  return () => {
    for (const signal of ["SIGINT", "SIGTERM"]) process.off(signal, end);
  };
}
