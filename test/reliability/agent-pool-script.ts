/** A tree of three levels and one beside it, played from nothing but the request, so that any process can go on with it. */
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { calls, type Moves, says, type WantedCall } from "../../src/model/faux/faux-step.ts";
import type { ModelRequest } from "../../src/model/provider.ts";
import { defineTool, type Tool } from "../../src/tools/tool.ts";

export const treeAgents = ["chief", "worker", "helper", "clerk", "scout"] as const;
type Role = (typeof treeAgents)[number] | "director";

/** Leaves a mark for everyone to see: a second one would show that something ran twice. */
export const actIn = (root: string): Tool =>
  defineTool({
    name: "act",
    description: "Leaves a mark.",
    input: z.object({ token: z.string() }),
    async run({ token }) {
      appendFileSync(join(root, "ledger"), `${token}\n`);
      return { content: `did ${token}` };
    },
  });

/** What each does, one step after each result. Whoever is told to continue says that it does, and no more. */
const plans: Record<Role, readonly (readonly WantedCall[])[]> = {
  director: [
    [task("chief", "background"), task("scout", "background"), task("clerk", "sync")],
    [["read_agent", { agent_id: "chief", wait: true, timeout: 20 }, `read-chief-${process.pid}`]],
  ],
  chief: [[task("worker", "sync")]],
  worker: [[act("worker")], [task("helper", "sync")]],
  helper: [[act("helper")]],
  clerk: [[act("clerk")]],
  scout: [],
};

export function playTree({ system, messages }: ModelRequest): Moves {
  const role: Role = treeAgents.find((name) => system.includes(name)) ?? "director";
  const spoken = messages.findLastIndex(({ role: who }) => who !== "user");
  if (messages.slice(spoken + 1).some(({ content }) => content.includes("continue"))) return says(`${role} continued`);
  const step = messages.filter(({ role: who }) => who === "assistant").length;
  const wanted = plans[role][step];
  return wanted ? calls(...wanted) : says(`${role} done`);
}

function task(name: string, mode: "sync" | "background"): WantedCall {
  const args = { description: name, prompt: `work as ${name}`, agent_type: name, name, mode };
  return ["task", args, `task-${name}-${process.pid}`];
}

function act(token: string): WantedCall {
  return ["act", { token }, `act-${token}-${process.pid}`];
}
