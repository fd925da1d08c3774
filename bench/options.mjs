import { parseArgs } from "node:util";

/** Take longer than all others, so they run only when they are named, or with `--full`. */
const onlyNamed = ["cluster", "cluster-parked"];

export const scenarioNames = [
  ...[
    "version",
    "start",
    "turns",
    "shell",
    "shell-think",
    "shell-off",
    "stream",
    "many-agents",
    "resume",
    "append",
    "past",
    "long",
  ],
  ...["scale-long", "scale-many"],
  ...["events", "clients", "sessions", "sandbox", "terminal", "web", ...onlyNamed],
];
const wireNames = ["completions", "responses", "anthropic"];

export const help = `Usage: npm run bench -- [options]

Measures troupe beside a floor (the least a Node program can do for the same work), both against one scripted model
on the loopback, and compares the figures with their targets. Exit code 1 when a target is missed.

  --reps <n>      repetitions of each scenario (default 7)
  --only <names>  only these scenarios: ${scenarioNames.join(", ")} (comma separated)
  --wire <name>   ${wireNames.join(", ")} (default completions)
  --full          the long forms of resume, append, past, long, scale, cluster and the contract (events, clients, sessions)
  --json          figures as JSON on stdout
  --profile       also write a CPU profile of troupe per scenario into bench/results/
  --help          this text
`;

/** Throws an Error that says what is wrong with the command line. */
export function readOptions(argv) {
  const { values } = parseArgs({
    args: argv,
    options: {
      reps: { type: "string", default: "7" },
      only: { type: "string", multiple: true, default: [] },
      wire: { type: "string", default: "completions" },
      full: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
      profile: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const reps = Number(values.reps);
  if (!Number.isInteger(reps) || reps < 1 || reps > 1000) throw new Error("--reps takes a whole number from 1 to 1000");
  if (!wireNames.includes(values.wire)) throw new Error(`--wire takes one of ${wireNames.join(", ")}`);
  const only = values.only.flatMap((names) => names.split(","));
  const unknown = only.find((name) => !scenarioNames.includes(name));
  if (unknown !== undefined) throw new Error(`--only ${unknown}: known are ${scenarioNames.join(", ")}`);
  const all = scenarioNames.filter((name) => values.full || !onlyNamed.includes(name));
  return { ...values, reps, only: only.length > 0 ? only : all };
}
