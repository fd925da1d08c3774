// Scenarios of the session log, through the library as programs use it.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runChild } from "./run-child.mjs";
import { spread } from "./statistics.mjs";

const EVENTS = 100_000;
const RATE = 10_000;
const SESSIONS = 20;
const library = fileURLToPath(new URL("../dist/lib/index.js", import.meta.url));
const program = fileURLToPath(new URL("./store-work.mjs", import.meta.url));

export const storeScenarios = [
  {
    name: "resume",
    async figures({ stage, full }) {
      const home = join(stage.home, "resume");
      await work(stage, "fill", home, "long-session", EVENTS);
      const runs = [];
      for (let run = 0; run < (full ? 7 : 3); run++) {
        runs.push(await work(stage, "resume", home, "long-session", stage.workspace));
      }
      const short = runs.find(({ events }) => events < EVENTS);
      if (short) throw new Error(`the session came back with ${short.events} events of ${EVENTS}`);
      return [
        {
          name: `open a session of ${EVENTS.toLocaleString("en")} events`,
          unit: "ms",
          troupe: spread(runs.map(({ openMs }) => openMs)),
          target: { kind: "most", limit: 1000 },
        },
        { name: "peak memory of that", unit: "MB", troupe: spread(runs.map(({ peakBytes }) => peakBytes / 1e6)) },
      ];
    },
  },
  {
    name: "append",
    async figures({ stage, full }) {
      const seconds = full ? 20 : 3;
      const results = { floor: [], troupe: [] };
      for (let round = 0; round < (full ? 1 : 3); round++) {
        for (const peer of round % 2 === 0 ? ["floor", "troupe"] : ["troupe", "floor"]) {
          const home = join(stage.home, `append-${peer}-${round}`);
          results[peer].push(await work(stage, "append", home, peer, SESSIONS, RATE, seconds));
        }
      }
      const lossy = results.troupe.find(({ lost }) => lost !== 0);
      if (lossy) throw new Error(`${lossy.lost} acknowledged events were not in the log`);
      const row = (name, unit, pick, target) => ({
        name,
        unit,
        floor: spread(results.floor.map(pick)),
        troupe: spread(results.troupe.map(pick)),
        ...(target && { target }),
      });
      const load = `${SESSIONS} sessions, ${seconds} s`;
      return [
        row(`events per second, ${load}`, "/s", ({ rate }) => rate, { kind: "least", limit: RATE * 0.99 }),
        row("acknowledged after, p99", "ms", ({ p99 }) => p99, { kind: "most", limit: 60 }),
        row("acknowledged after, p50", "ms", ({ p50 }) => p50),
        row("cores used", "cores", ({ cores }) => cores),
      ];
    },
  },
];

async function work(stage, ...words) {
  if (!existsSync(library)) throw new Error("dist/lib/index.js is missing: run npm run build");
  const argv = [program, ...words.map(String)];
  const run = await runChild({ argv, environment: {}, cwd: stage.workspace, scratch: stage.scratch, measure: true });
  if (run.code !== 0) throw new Error(`${words[0]} ended with ${run.code}: ${run.complaint}`);
  return { ...JSON.parse(run.output()), peakBytes: run.peakBytes };
}
