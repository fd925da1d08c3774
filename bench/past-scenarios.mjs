// Scenarios of what has grown: many past sessions, and one that is very long.
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runChild } from "./run-child.mjs";
import { spread } from "./statistics.mjs";

const program = fileURLToPath(new URL("./past-work.mjs", import.meta.url));
const troupe = fileURLToPath(new URL("../bin/troupe.js", import.meta.url));
const QUERIES = 200;

export const pastScenarios = [
  {
    name: "past",
    async figures({ stage, full }) {
      const home = join(stage.home, "past");
      const sessions = full ? 10_000 : 1_000;
      const count = sessions.toLocaleString("en");
      const { bytes } = await work(stage, "fill", home, sessions);
      const made = await work(stage, "reindex", home);
      if (made.changed !== sessions || made.failed !== 0)
        throw new Error(`read ${made.changed} of ${sessions} sessions`);
      const search = await work(stage, "search", home, QUERIES);
      if (search.found === 0) throw new Error("nothing was found");
      const command = await commands(stage, home, full ? 7 : 3);
      return [
        figure(`index of ${count} sessions made anew`, "s", made.tookMs / 1000, { kind: "most", limit: 60 }),
        figure("their logs", "MB", bytes / 1e6),
        figure(`search in ${count} sessions, p95 of ${QUERIES}`, "ms", search.p95, { kind: "most", limit: 150 }),
        figure("the same, p50", "ms", search.p50),
        { name: "`troupe search`, exec to exit", unit: "ms", troupe: spread(command) },
      ];
    },
  },
  {
    name: "long",
    async figures({ stage, full }) {
      const home = join(stage.home, "long");
      const [turns, compactions] = full ? [2_000, 20] : [400, 8];
      const long = await work(stage, "converse", home, stage.workspace, "long", turns, compactions);
      if (long.problems.length > 0) throw new Error(`a request was not valid: ${long.problems[0]}`);
      if (long.failed > 0) throw new Error(`${long.failed} compactions failed`);
      const runs = [];
      for (let run = 0; run < 3; run++) runs.push(await work(stage, "resume", home, stage.workspace, "long"));
      return [
        figure(`compactions in ${turns.toLocaleString("en")} turns`, "", long.compactions, {
          kind: "least",
          limit: compactions,
        }),
        figure("growth of a turn, last quarter over first", "×", long.late / long.early, { kind: "most", limit: 1.3 }),
        figure("a turn in the last quarter", "ms", long.late),
        {
          name: "take it up again",
          unit: "ms",
          troupe: spread(runs.map(({ openMs }) => openMs)),
          target: { kind: "most", limit: 1000 },
        },
      ];
    },
  },
];

const figure = (name, unit, value, target) => ({ name, unit, troupe: { p50: value }, ...(target && { target }) });

async function commands(stage, home, times) {
  const took = [];
  for (let run = 0; run < times; run++) {
    const argv = [troupe, "search", "kalo"];
    const { code, wallMs } = await runChild({
      argv,
      environment: { TROUPE_HOME: home },
      cwd: stage.workspace,
      scratch: stage.scratch,
    });
    if (code !== 0) throw new Error(`troupe search ended with ${code}`);
    took.push(wallMs);
  }
  return took;
}

async function work(stage, ...words) {
  const argv = [program, ...words.map(String)];
  const run = await runChild({ argv, environment: {}, cwd: stage.workspace, scratch: stage.scratch });
  if (run.code !== 0) throw new Error(`${words[0]} ended with ${run.code}: ${run.complaint}`);
  return JSON.parse(run.output());
}
