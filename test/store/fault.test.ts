import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { TroupeError } from "../../src/protocol/errors.ts";
import type { SessionLog } from "../../src/store/store.ts";
import { countOperations, type Fault, type FaultPlan, faultDisk } from "../../src/testing/fault-disk.ts";
import { powerLossDisk } from "../../src/testing/power-loss-disk.ts";
import { encodeLog, hastyDisk, idsOf, message, messages, realStore, seeded, temporaryFolder } from "./support.ts";

const EVENTS = 12;
const isBarrier = (n: number): boolean => n % 3 === 0;
const logPath = (root: string): string => join(root, "session-state", "one", "events.jsonl");

/** Appends one by one and returns the ids that were acknowledged. A failed append is tried again after `recover`. */
async function writeSession(log: SessionLog, recover: () => Promise<boolean>): Promise<string[]> {
  const acknowledged: string[] = [];
  for (let n = 1; n <= EVENTS; n++) {
    const event = message(n);
    try {
      await log.append(event, { barrier: isBarrier(n) });
      acknowledged.push(event.id);
    } catch (error) {
      expect(error).toBeInstanceOf(TroupeError);
      if (!(await recover())) break;
      n--;
    }
  }
  return acknowledged;
}

/** Runs `attempt` with a fault at operation 1, 2, 3 … until the operation is no longer reached. */
async function atEveryOperation(fault: Fault, attempt: (plan: FaultPlan) => Promise<void>): Promise<number> {
  for (let at = 1; ; at++) {
    const plan: FaultPlan = { at, fault };
    await attempt(plan);
    if (!plan.fired) return at - 1;
    if (at > 500) throw new Error("the fault never stops firing");
  }
}

async function checkReopened(root: string, acknowledged: readonly string[]): Promise<string[]> {
  const store = realStore(root, { disk: hastyDisk });
  const exists = existsSync(logPath(root)) && statSync(logPath(root)).size > 0;
  expect(exists || acknowledged.length === 0).toBe(true);
  const log = exists ? await store.open("one") : await store.create("one");
  const ids = idsOf(log.events);
  expect(ids.slice(0, acknowledged.length)).toEqual(acknowledged);
  expect(ids).toEqual(idsOf(messages(ids.length)));
  await log.append(message(ids.length + 1), { barrier: true });
  await log.close();
  const after = await store.read("one");
  expect({ ids: idsOf(after.events), damage: after.damage }).toEqual({
    ids: idsOf(messages(ids.length + 1)),
    damage: [],
  });
  return ids;
}

const passing: [string, Fault][] = [
  ["full for a moment", { kind: "fail", code: "ENOSPC" }],
  ["broken for a moment", { kind: "fail", code: "EIO" }],
  ...[0, 0.2, 0.5, 0.9, 1].map((share): [string, Fault] => [
    `torn after ${share} of a write`,
    { kind: "tear", share, end: "fail", code: "ENOSPC" },
  ]),
];

describe("the store at every operation of a session", () => {
  test.each(passing)(
    "a disk with %s at any operation loses nothing: recovery continues with the same event",
    async (_name, fault) => {
      const fired = await atEveryOperation(fault, async (plan) => {
        const root = temporaryFolder();
        const log = await realStore(root, { disk: faultDisk(hastyDisk, plan) }).create("one");
        const acknowledged = await writeSession(log, async () => {
          await log.repairAfterFailedWrite();
          return true;
        });
        await log.close().catch(() => undefined);
        expect(acknowledged).toEqual(idsOf(messages(EVENTS)));
        rmSync(join(root, "session-state", "one", "lock"), { force: true });
        const ids = await checkReopened(root, acknowledged);
        expect(ids).toEqual(acknowledged);
      });
      expect(fired).toBeGreaterThan(EVENTS);
    },
  );

  test.each(["ENOSPC", "EIO"])(
    "a disk that keeps failing with %s at any operation gets no more acknowledged, and keeps the rest",
    async (code) => {
      const fired = await atEveryOperation({ kind: "fail", code, lasting: true }, async (plan) => {
        const root = temporaryFolder();
        const log = await realStore(root, { disk: faultDisk(hastyDisk, plan) }).create("one");
        const acknowledged = await writeSession(log, async () => {
          await expect(log.repairAfterFailedWrite()).rejects.toMatchObject({ kind: "storage" });
          await expect(log.append(message(99), { barrier: false })).rejects.toMatchObject({ kind: "storage" });
          return false;
        });
        await log.close().catch(() => undefined);
        rmSync(join(root, "session-state", "one", "lock"), { force: true });
        await checkReopened(root, acknowledged);
      });
      expect(fired).toBeGreaterThan(EVENTS);
    },
  );

  test("a store continues at every operation of a session once a full disk has space again", async () => {
    await atEveryOperation({ kind: "fail", code: "ENOSPC", lasting: true }, async (plan) => {
      const root = temporaryFolder();
      const log = await realStore(root, { disk: faultDisk(hastyDisk, plan) }).create("one");
      const acknowledged = await writeSession(log, async () => {
        await log.repairAfterFailedWrite().catch(() => undefined);
        plan.healed = true;
        await log.repairAfterFailedWrite();
        return true;
      });
      expect(acknowledged).toEqual(idsOf(messages(EVENTS)));
      await log.close();
      rmSync(join(root, "session-state", "one", "lock"), { force: true });
      expect(await checkReopened(root, acknowledged)).toEqual(acknowledged);
    });
  });
});

test("concurrent appends fail together, with the cause in the message", async () => {
  const root = temporaryFolder();
  const plan: FaultPlan = { at: 3, operations: ["write"], fault: { kind: "fail", code: "ENOSPC" } };
  const store = realStore(root, { disk: faultDisk(hastyDisk, plan) });
  const log = await store.create("one");
  await log.append(message(1), { barrier: true });
  const results = await Promise.allSettled(messages(5, 2).map((event) => log.append(event, { barrier: false })));
  const failure = {
    kind: "storage",
    message: "Could not write the session log: the disk is full (ENOSPC).",
    hint: "Free some space. The session continues from the last saved event.",
  };
  expect(results).toMatchObject(Array(5).fill({ status: "rejected", reason: failure }));
  await expect(log.append(message(9), { barrier: false })).rejects.toMatchObject(failure);
  await expect(log.flush()).rejects.toMatchObject(failure);
  await log.repairAfterFailedWrite();
  await log.append(message(2), { barrier: true });
  await log.close();
  expect(await store.read("one")).toEqual({ events: messages(2), removed: [], damage: [] });
});

test("acknowledged events without a sync are written to a new file after a failed sync", async () => {
  const root = temporaryFolder();
  const plan: FaultPlan = { at: 1, operations: ["sync"], fault: { kind: "fail", code: "EIO" } };
  const log = await realStore(root, { disk: faultDisk(nodeDisk, plan) }).create("one");
  await log.append(message(1), { barrier: false });
  const before = statSync(logPath(root)).ino;
  await expect(log.append(message(2), { barrier: true })).rejects.toMatchObject({ kind: "storage" });
  await log.repairAfterFailedWrite();
  expect(statSync(logPath(root)).ino).not.toBe(before);
  await log.append(message(2), { barrier: true });
  await log.close();
  expect(await checkReopened(root, ["event-1", "event-2"])).toEqual(["event-1", "event-2"]);
});

describe("a torn log", () => {
  const torn = Buffer.concat([...encodeLog(messages(3)), Buffer.from('{"id":"torn')]);

  async function prepared(): Promise<string> {
    const root = temporaryFolder();
    await nodeDisk.mkdir(join(root, "session-state", "one"));
    writeFileSync(logPath(root), torn);
    writeFileSync(join(root, "session-state", "one", "lock"), JSON.stringify({ pid: process.pid, started: "1" }));
    return root;
  }

  test.each<[string, Fault]>([...passing, ["broken for ever", { kind: "fail", code: "EIO", lasting: true }]])(
    "a torn log opens with a disk that is %s at any step of the repair, and a second repair gives the same",
    async (_name, fault) => {
      const fired = await atEveryOperation(fault, async (plan) => {
        const root = await prepared();
        const log = await realStore(root, { disk: faultDisk(hastyDisk, plan) }).open("one");
        expect(idsOf(log.events)).toEqual(idsOf(messages(3)));
        expect(log.damage).toMatchObject([{ kind: "torn_tail", line: 4, bytes: 11 }]);
        plan.healed = true;
        await log.repairAfterFailedWrite().catch(() => log.repairAfterFailedWrite());
        await log.append(message(4), { barrier: true }).catch(async () => {
          await log.repairAfterFailedWrite();
          await log.append(message(4), { barrier: true });
        });
        await log.close();
        rmSync(join(root, "session-state", "one", "lock"), { force: true });
        await checkReopened(root, idsOf(messages(4)));
        const saved = join(root, "session-state", "one", "damaged", `${torn.length - 11}.bin`);
        expect(readFileSync(saved, "utf8")).toBe('{"id":"torn');
      });
      expect(fired).toBeGreaterThan(8);
    },
  );
});

const seeds = process.env.TROUPE_SLOW ? 2000 : 30;

test(`a power cut at any time never loses what was synced (${seeds} seeds)`, { timeout: 300_000 }, async () => {
  for (let seed = 1; seed <= seeds; seed++) {
    const random = seeded(seed);
    const root = temporaryFolder();
    const disk = powerLossDisk(hastyDisk);
    const log = await realStore(root, { disk, limits: { syncWithinMs: 2 } }).create("one");
    const stopAt = 1 + Math.floor(random() * EVENTS);
    let durable = 0;
    for (let n = 1; n <= stopAt; n++) {
      const appended = log.append(message(n), { barrier: isBarrier(n) });
      if (n < stopAt || random() < 0.5) await appended;
      else appended.catch(() => undefined);
      if (isBarrier(n) && n < stopAt) durable = n;
    }
    const after = temporaryFolder();
    disk.layOut(root, after, random);
    await log.close();
    // The process that held it did not survive the cut; this one, which did, must not pass for it.
    rmSync(join(after, "session-state", "one", "lock"), { force: true });
    await checkReopened(after, idsOf(messages(durable)));
  }
});

test("an append costs one write and at most one sync, and concurrent appends share them", async () => {
  const { disk, operations } = countOperations(hastyDisk);
  const store = realStore(temporaryFolder(), { disk });
  const log = await store.create("one");
  await log.append(message(1), { barrier: true });
  operations.length = 0;
  await log.append(message(2), { barrier: true });
  expect(operations).toEqual(["write", "sync"]);
  operations.length = 0;
  await Promise.all(messages(100, 3).map((event, index) => log.append(event, { barrier: index === 50 })));
  expect(operations).toEqual(["write", "sync"]);
  operations.length = 0;
  await log.append(message(200), { barrier: false });
  expect(operations).toEqual(["write"]);
  await expect.poll(() => operations).toEqual(["write", "sync"]);
  await log.close();
});

test("appends wait when the queue is full, and none is dropped", async () => {
  const root = temporaryFolder();
  const store = realStore(root, { disk: hastyDisk, limits: { queueBytes: 2000 } });
  const log = await store.create("one");
  const appended = messages(500).map((event) => log.append(event, { barrier: false }));
  await log.flush();
  const synced = readFileSync(logPath(root), "utf8").split("\n").length - 1;
  await Promise.all(appended);
  await log.close();
  expect(synced).toBe(500);
  expect(await store.read("one")).toEqual({ events: messages(500), removed: [], damage: [] });
});
