// Scenarios of scale: one very long session that was compacted again and again, and a home with very many sessions.
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runChild } from "./run-child.mjs";
import { spread } from "./statistics.mjs";

const program = fileURLToPath(new URL("./scale-work.mjs", import.meta.url));
const troupe = fileURLToPath(new URL("../bin/troupe.js", import.meta.url));
const COMPACT_EVERY = 1_000;

export const scaleScenarios = [
  {
    name: "scale-long",
    async figures({ stage, full }) {
      const home = join(stage.home, "scale-long");
      const events = full ? 1_000_000 : 200_000;
      const count = events.toLocaleString("en");
      const { bytes } = await work(stage, "fill-long", home, "long", events, COMPACT_EVERY);
      const first = await work(stage, "resume", home, "long", stage.workspace);
      const runs = [];
      for (let run = 0; run < (full ? 7 : 3); run++) {
        runs.push(await work(stage, "resume", home, "long", stage.workspace));
      }
      const wrong = runs.find((run) => run.count < events || run.page !== 500);
      if (wrong)
        throw new Error(`the session came back with ${wrong.count} events of ${events}, a page of ${wrong.page}`);
      const forked = await work(stage, "fork", home, "long");
      const inFork = await work(stage, "resume", home, forked.sessionId, stage.workspace);
      const shown = await commands(stage, home, full ? 7 : 3, ["sessions", "show", "long"]);
      const row = (name, unit, pick, limit) => ({
        ...{ name, unit, troupe: spread(runs.map(pick)) },
        ...(limit !== undefined && { target: { kind: "most", limit } }),
      });
      return [
        row(`open a compacted session of ${count} events`, "ms", ({ openMs }) => openMs, 1000),
        row("peak memory of that", "MB", ({ openBytes }) => openBytes / 1e6, 200),
        row("500 events from the middle of it", "ms", ({ pageMs }) => pageMs, 100),
        row("close it", "ms", ({ closeMs }) => closeMs),
        row("events in memory", "", ({ live }) => live),
        figure("fork it", "ms", forked.forkMs),
        figure("CPU time of that", "ms", forked.cpuMs),
        { ...figure("peak memory of that", "MB", forked.bytes / 1e6), target: { kind: "most", limit: 200 } },
        { ...figure("open the fork for the first time", "ms", inFork.openMs), target: { kind: "most", limit: 1000 } },
        { name: "`troupe sessions show`, exec to exit", unit: "ms", troupe: spread(shown) },
        figure("open it without a snapshot", "ms", first.openMs),
        figure("peak memory of that", "MB", first.openBytes / 1e6),
        figure("its log", "MB", bytes / 1e6),
      ];
    },
  },
  {
    name: "scale-many",
    async figures({ stage, full }) {
      const home = join(stage.home, "scale-many");
      const sessions = full ? 10_000 : 2_000;
      const count = sessions.toLocaleString("en");
      await work(stage, "fill-many", home, sessions);
      const first = await work(stage, "list", home);
      const repetitions = full ? 7 : 3;
      const lists = [];
      for (let run = 0; run < repetitions; run++) lists.push(await work(stage, "list", home));
      if (lists.some(({ length }) => length !== sessions))
        throw new Error(`not all of ${sessions} sessions were listed`);
      const served = [];
      for (let run = 0; run < repetitions; run++) served.push(await work(stage, "list-served", home));
      if (served.some(({ length }) => length !== sessions)) throw new Error("session.list does not list all sessions");
      const listing = await commands(stage, home, repetitions, ["sessions", "list"]);
      const going = await commands(stage, home, repetitions, ["-p", "hi", "--model", "understudy", "--continue"]);
      const most = { kind: "most", limit: 200 };
      return [
        {
          name: `list ${count} sessions in a fresh process`,
          unit: "ms",
          troupe: spread(lists.map((l) => l.firstMs)),
          target: most,
        },
        {
          name: "list them again in the same process",
          unit: "ms",
          troupe: spread(lists.map((l) => l.secondMs)),
          target: most,
        },
        {
          name: "`session.list` over a server, the first",
          unit: "ms",
          troupe: spread(served.map((l) => l.firstMs)),
          target: most,
        },
        {
          name: "`session.list` over a server, again",
          unit: "ms",
          troupe: spread(served.map((l) => l.secondMs)),
          target: most,
        },
        { name: "`troupe sessions list`, exec to exit", unit: "ms", troupe: spread(listing) },
        { name: "`troupe -p --continue` with the understudy, exec to exit", unit: "ms", troupe: spread(going) },
        figure("list them without session-list.json", "ms", first.firstMs),
      ];
    },
  },
];

const figure = (name, unit, value) => ({ name, unit, troupe: { p50: value } });

async function commands(stage, home, times, words) {
  const took = [];
  for (let run = 0; run < times; run++) {
    const { code, wallMs, complaint } = await runChild({
      ...{ argv: [troupe, ...words], environment: { TROUPE_HOME: home }, cwd: stage.workspace, scratch: stage.scratch },
    });
    if (code !== 0) throw new Error(`troupe ${words.join(" ")} ended with ${code}: ${complaint}`);
    took.push(wallMs);
  }
  return took;
}

async function work(stage, ...words) {
  const argv = [program, ...words.map(String)];
  const run = await runChild({ argv, environment: {}, cwd: stage.workspace, scratch: stage.scratch, measure: true });
  if (run.code !== 0) throw new Error(`${words[0]} ended with ${run.code}: ${run.complaint}`);
  return JSON.parse(run.output());
}
