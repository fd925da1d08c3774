/** Folds many events, without draining, and prints how much the memory of the process has grown. */
import { setTimeout as pause } from "node:timers/promises";
import { SessionView } from "../../src/view/session-view.ts";
import { syntheticEvents } from "./synthetic.ts";

const WARM_UP = 20_000;
const count = Number(process.argv[2]);
const collect = (globalThis as { gc?: () => void }).gc;

/** The least of several readings: the engine gives memory back some time after a collection. */
async function memory(): Promise<{ rss: number; heap: number }> {
  let least = { rss: Number.POSITIVE_INFINITY, heap: Number.POSITIVE_INFINITY };
  for (let reading = 0; reading < 5; reading++) {
    collect?.();
    await pause(100);
    const { rss, heapUsed } = process.memoryUsage();
    least = { rss: Math.min(least.rss, rss), heap: Math.min(least.heap, heapUsed) };
  }
  return least;
}

const folded = new SessionView();
const events = syntheticEvents(WARM_UP + count);
for (let done = 0; done < WARM_UP; done++) folded.apply(events.next().value);
const before = await memory();
const from = performance.now();
for (const event of events) folded.apply(event);
const ms = performance.now() - from;
const after = await memory();

const rounded = (value: number): number => Number(value.toFixed(1));
const { main, agents, droppedAgents } = folded.view;
console.log(
  JSON.stringify({
    events: count,
    rssGrowthMb: rounded((after.rss - before.rss) / 1_000_000),
    heapGrowthMb: rounded((after.heap - before.heap) / 1_000_000),
    microsecondsPerEvent: rounded((ms * 1_000) / count),
    mainBlocks: main.blocks.length,
    agents: agents.size,
    droppedAgents,
  }),
);
