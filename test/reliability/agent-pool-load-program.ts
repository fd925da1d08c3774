/**
 * Many agents at once in one process, put together as the command line does, against a model on the loopback; prints
 * what became of them and what it cost. `agent-pool-load-program.mjs <base URL> <home> <folder> <agents>`.
 */
import { performance } from "node:perf_hooks";
import { realAgentPool } from "./agent-pool-real.ts";

const [, , baseUrl = "", home = "", cwd = "", count = "1"] = process.argv;
const permissions = { allTools: true };
const { session, registry, close } = await realAgentPool({
  baseUrl,
  home,
  cwd,
  permissions,
  maxConcurrency: Number(count),
});
let mostAtWork = 0;
const watch = setInterval(() => {
  const atWork = registry.list({ includeEnded: false }).filter(({ status }) => status === "running").length;
  mostAtWork = Math.max(mostAtWork, atWork);
}, 100);
/** Processor time between two turns of the event loop. A busy machine makes turns late without any work of ours. */
const turns: number[] = [];
let used = process.cpuUsage();
const beat = setInterval(() => {
  const { user, system } = process.cpuUsage(used);
  turns.push((user + system) / 1000);
  used = process.cpuUsage();
}, 10);
const began = performance.now();
const outcome = await session.sendAndWait({ prompt: `[[load:${count}]]` });
const wallMs = performance.now() - began;
clearInterval(beat);
const busyP99Ms = turns.sort((a, b) => a - b)[Math.floor(turns.length * 0.99)] ?? Number.POSITIVE_INFINITY;
clearInterval(watch);
const states: Record<string, number> = {};
for (const { status } of registry.list()) states[status] = (states[status] ?? 0) + 1;
const peakBytes = process.resourceUsage().maxRSS * 1024;
const answer = outcome.kind === "done" ? outcome.answer : outcome.kind;
await close();
const facts = { answer, states, mostAtWork, wallMs, busyP99Ms, peakBytes };
process.stdout.write(`${JSON.stringify(facts)}\n`, () => process.exit(0));
