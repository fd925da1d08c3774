/**
 * `node attack-program.mjs <job>`: plays attacks and prints one line of JSON for each. The job is JSON: whose program, with
 * which guards, which attacks (all when left out), and where to work.
 */
import { type Attack, Findings } from "./attack.ts";
import { attacks } from "./attacks.ts";
import { Stage } from "./stage.ts";

interface Job {
  readonly root: string;
  /** Built without the guards that have no switch. */
  readonly weakened?: string;
  readonly base: string;
  readonly guards: "on" | "off";
  readonly ids?: readonly string[];
  readonly parallel: number;
}

// A canary's connection may break at any time, and an attack may leave one behind.
process.on("uncaughtException", (error) => console.error(error));
const job = JSON.parse(process.argv[2] ?? "{}") as Job;
const waiting = attacks.filter(({ id }) => job.ids?.includes(id) ?? true);
await Promise.all(Array.from({ length: job.parallel }, worker));

async function worker(): Promise<void> {
  for (let attack = waiting.shift(); attack; attack = waiting.shift()) await play(attack);
}

async function play(attack: Attack): Promise<void> {
  const { guards, base, root, weakened } = job;
  const isWeakened = guards === "off" && attack.control === "weakened program";
  const stage = new Stage({ guards, base, root: isWeakened ? (weakened ?? root) : root, id: attack.id });
  const started = performance.now();
  const findings = await attack.run(stage).catch((cause: unknown) => {
    const failed = new Findings();
    failed.failure(cause);
    return failed;
  });
  stage.close();
  const { effects, breaches } = findings;
  const milliseconds = Math.round(performance.now() - started);
  console.log(JSON.stringify({ id: attack.id, effects, breaches, milliseconds }));
}
