/**
 * A process to be killed: a session whose agents have agents of their own. It says each kept event on stdout when the
 * session tells it. `agent-pool-program.mjs <root> create|stop|write|resume|settle <last event>`, where the last event is a number,
 * or a type with a state and a task (`troupe.task_state idle chief`), and 0 = it lives.
 */
import { writeSync } from "node:fs";
import { fauxModel } from "../../src/model/faux/faux-model.ts";
import { otherwise } from "../../src/model/faux/faux-plan.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { actIn, playTree, treeAgents } from "./agent-pool-script.ts";
import { openAgentPool } from "./agent-pool-stage.ts";

const [, , root = "", mode = "create", last = "0"] = process.argv;
const session = await openAgentPool({
  root,
  mode: ["create", "stop", "write"].includes(mode) ? "create" : "resume",
  provider: fauxModel(otherwise(playTree)),
  agents: treeAgents,
  tools: [actIn(root)],
  ...(last !== "0" && { isLast }),
});
session.record.follow((event) => {
  if (!event.ephemeral) writeSync(1, `${event.id}\n`);
});
const work: Record<string, () => Promise<unknown>> = {
  create: () => session.sendAndWait({ prompt: "go" }),
  stop: stopOnTheWay,
  write: async () => {
    await session.sendAndWait({ prompt: "go" });
    await session.agents.tasks?.send("chief", "continue");
  },
  // A session that is taken up does nothing by itself.
  resume: () => pause(20),
  settle,
};
await work[mode]?.();
if (mode !== "resume") await session.close();
writeSync(1, "finished\n");
process.exit(0);

function isLast({ type, data }: SessionEvent, count: number): boolean {
  const [wantedType, to, taskId] = last.split(" ");
  if (wantedType !== type) return String(count) === last;
  const isMeant = (key: string, wanted: string | undefined): boolean =>
    wanted === undefined || Object.entries(data).some(([name, value]) => name === key && value === wanted);
  return isMeant("to", to) && isMeant("taskId", taskId);
}

/** The one at the top is stopped while those below it work. */
async function stopOnTheWay(): Promise<void> {
  const sent = session.sendAndWait({ prompt: "go" });
  while (session.agents.tasks?.view("helper") === undefined) await pause(1);
  await session.agents.tasks?.cancel("chief");
  await sent;
}

/** The main agent hears of what was; then everyone who can go on does, and whoever has to hears of that. */
async function settle(): Promise<void> {
  const { tasks } = session.agents;
  await session.sendAndWait({ prompt: "continue" });
  for (const { id } of [...(tasks?.list() ?? [])].reverse()) await tasks?.send(id, "continue");
  await tasks?.waitForAll(60_000);
  const deaf = tasks?.list().filter(({ id, status }) => status === "idle" && tasks.notices(id).length > 0) ?? [];
  for (const { id } of deaf) await tasks?.send(id, "continue");
  await tasks?.waitForAll(60_000);
  await session.sendAndWait({ prompt: "continue" });
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
