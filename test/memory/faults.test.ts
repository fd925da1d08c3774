import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { retractChange } from "../../src/context/memory/changes.ts";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { type Fault, type FaultPlan, faultDisk, type Operation } from "../../src/testing/fault-disk.ts";
import { powerLossDisk } from "../../src/testing/power-loss-disk.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { accepted, localAt } from "./support.ts";

type Memory = ReturnType<typeof localAt>;

const FACTS = ["Fact one.", "Fact two."];
const isSlow = Boolean(process.env.TROUPE_SLOW);
/** A lock that cannot be given back by a process that lives on keeps everyone out; that is the lock's own test. */
const ownOperations: Operation[] = [
  "mkdir",
  "openAppend",
  "write",
  "sync",
  "syncDirectory",
  "rename",
  "truncate",
  "close",
];

const kinds: [string, Fault, Operation[]?][] = [
  ["killed before every operation", { kind: "kill", when: "before" }],
  ...(isSlow ? [["killed after every operation", { kind: "kill", when: "after" }] as [string, Fault]] : []),
  ["killed in the middle of every write", { kind: "tear", share: 0.5, end: "kill" }, ["write"]],
  ["stopped by a full disk in every write", { kind: "tear", share: 0.5, end: "fail", code: "ENOSPC" }, ["write"]],
  ["stopped by a failure of every operation", { kind: "fail", code: "EIO" }, ownOperations],
];

/** What was acknowledged before the end, and whether it came to the end at all. */
async function untilEnd(memory: Memory, killed: Promise<"killed">): Promise<{ known: string[]; ended: boolean }> {
  const known: string[] = [];
  for (const fact of FACTS) {
    const result = await Promise.race([
      memory.store(accepted(fact)).then(
        () => "stored" as const,
        () => "failed" as const,
      ),
      killed,
    ]);
    if (result === "killed") return { known, ended: false };
    if (result === "stored") known.push(fact);
  }
  return { known, ended: true };
}

/** A lock of a process that died is taken over by its age or its pid; here the process lives on. */
function removeLocks(home: string): void {
  const folder = join(home, "memory");
  for (const name of readdirSync(folder).filter((entry) => entry.includes(".lock"))) rmSync(join(folder, name));
}

const factsOf = (memory: Memory): string[] =>
  memory.journals.flatMap((journal) => [...journal.read().facts.values()].map(({ fact }) => fact));

test.each(kinds)(
  "a memory that is %s loses nothing that was acknowledged, and continues to work",
  async (_, fault, operations) => {
    let points = 0;
    for (let at = 1; ; at++) {
      await using folder = await tempFolder();
      let kill = (): void => undefined;
      const killed = new Promise<"killed">((resolve) => {
        kill = () => resolve("killed");
      });
      const plan: FaultPlan = { at, fault, ...(operations && { operations }), kill };
      const memory = localAt(folder.at("home"), folder.at("work"), { disk: faultDisk(nodeDisk, plan) });
      const { known } = await untilEnd(memory, killed);
      if (!plan.fired) break;
      points++;
      if (readdirSync(folder.path).includes("home")) removeLocks(folder.at("home"));
      const again = localAt(folder.at("home"), folder.at("work"));
      const found = factsOf(again);
      expect(known.filter((fact) => !found.includes(fact))).toEqual([]);
      expect(found.filter((fact) => !FACTS.includes(fact))).toEqual([]);
      await again.store(accepted("Fact four."));
      expect(factsOf(again)).toEqual([...found, "Fact four."]);
      expect(again.journals[0]?.read().notices).toEqual([]);
    }
    expect(points).toBeGreaterThan(operations ? 3 : 20);
  },
);

test("acknowledged facts survive a power cut", async () => {
  await using folder = await tempFolder();
  const disk = powerLossDisk(nodeDisk);
  const memory = localAt(folder.at("home"), folder.at("work"), { disk });
  for (const fact of FACTS) await memory.store(accepted(fact));
  for (const share of [0, 0.5, 0.99]) {
    const after = folder.at(`after-${share}`);
    disk.layOut(folder.at("home"), after, () => share);
    expect(factsOf(localAt(after, folder.at("work")))).toEqual(FACTS);
  }
});

test.each(isSlow ? (["before", "after"] as const) : (["after"] as const))(
  "a purge killed %s any operation keeps all other facts",
  async (when) => {
    for (let at = 1; ; at++) {
      await using folder = await tempFolder();
      const memory = localAt(folder.at("home"), folder.at("work"));
      const { id } = await memory.store(accepted("Fact one."));
      await memory.store(accepted("Fact two."));
      let kill = (): void => undefined;
      const killed = new Promise<"killed">((resolve) => {
        kill = () => resolve("killed");
      });
      const plan: FaultPlan = { at, fault: { kind: "kill", when }, kill };
      const purging = localAt(folder.at("home"), folder.at("work"), { disk: faultDisk(nodeDisk, plan) });
      const end = await Promise.race([purging.journals[0]?.purge([id]), killed]);
      const found = factsOf(localAt(folder.at("home"), folder.at("work")));
      expect(found.at(-1)).toBe("Fact two.");
      if (end === "killed") continue;
      expect(found).toEqual(["Fact two."]);
      break;
    }
  },
);

test("a change that throws writes nothing", async () => {
  await using folder = await tempFolder();
  const memory = localAt(folder.at("home"), folder.at("work"));
  const [journal] = memory.journals;
  await memory.store(accepted("Fact one."));
  const change = journal?.transact({ action: "remove", by: "person" }, (state) => retractChange(state, ["nobody"]));
  await expect(change).rejects.toThrow("There is no fact nobody.");
  expect(journal?.read().transactions).toHaveLength(1);
});
