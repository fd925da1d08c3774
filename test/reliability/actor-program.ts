/**
 * A process to be killed: one session on a scripted model whose first reply asks for three tools with effects. It
 * says each kept event on stdout the moment the session tells it (that is: acknowledges it), and each tool appends
 * one token to a ledger, so that a parent can see what was promised and what was done.
 */
import { appendFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { systemStamp } from "../../src/lib/stamp.ts";
import { fauxModel } from "../../src/model/faux/faux-model.ts";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import { policyOf } from "../../src/runtime/permissions/policy.ts";
import { Session } from "../../src/session/session.ts";
import { jsonlStore } from "../../src/store/jsonl.ts";
import { type FaultPlan, faultDisk } from "../../src/testing/fault-disk.ts";
import { defineTool } from "../../src/tools/tool.ts";
import { memoryGrants } from "../support/memory-grants.ts";

const [, , root = "", mode = "create", planText = "", roundsText = "1"] = process.argv;
const plan = planText === "" ? undefined : (JSON.parse(planText) as FaultPlan);
const rounds = Number(roundsText);
const disk = plan ? faultDisk(nodeDisk, plan) : nodeDisk;
const store = jsonlStore({ root, disk, stamp: systemStamp });

const act = defineTool({
  name: "act",
  description: "Leaves a mark.",
  input: z.object({ token: z.string() }),
  async run({ token }) {
    appendFileSync(join(root, "ledger"), `${token}\n`);
    return { content: `did ${token}` };
  },
});

const steps = Array.from({ length: rounds }, (_, round) => {
  const token = (name: string): string => `${mode}-${process.pid}-${round}-${name}`;
  return [
    calls(
      ["act", { token: token("a") }, token("a")],
      ["act", { token: token("b") }, token("b")],
      ["act", { token: token("c") }, token("c")],
    ),
    says("done ".repeat(200)),
  ];
}).flat();

const options = {
  log: await (mode === "create" ? store.create("one") : store.open("one")),
  stamp: systemStamp,
  version: "0",
  model: { provider: fauxModel(...steps), providerId: "faux", model: "faux", costOf: () => 0 },
  promptAndTools: { system: "You act.", tools: [act] },
  cwd: root,
  roots: [root],
  context: { cwd: root },
  policy: policyOf({}, { roots: [root], stateRoot: root, writable: [] }),
  ports: {},
  grants: memoryGrants(),
};
const session = await (mode === "create" ? Session.create(options) : Session.resume(options));
session.record.follow((event) => {
  if (!event.ephemeral) writeSync(1, `${event.id}\n`);
});
for (let round = 0; round < rounds; round++) {
  const outcome = await session.sendAndWait({ prompt: `round ${round}` });
  if (outcome.kind !== "done")
    writeSync(2, `outcome ${outcome.kind} ${"error" in outcome ? outcome.error.message : ""}\n`);
}
await session.close();
writeSync(1, "finished\n");
