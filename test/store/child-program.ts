/**
 * Runs in a process of its own, so that it can really be killed. Tells what was acknowledged on standard output, one id
 * a line, written before anything else happens.
 *
 *   write <root> <plan>           creates session "one" and appends twelve events
 *   open <root> <plan>            opens session "one", which repairs it
 *   race <root>                   at every line "open" on standard input opens session "one", writes if it may, and
 *                                 says whether it could; at every line "close" closes it
 */

import { writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { systemStamp } from "../../src/lib/stamp.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { jsonlStore } from "../../src/store/jsonl.ts";
import type { SessionLog } from "../../src/store/store.ts";
import { type FaultPlan, faultDisk } from "../../src/testing/fault-disk.ts";

const [mode = "", root = "", ...rest] = process.argv.slice(2);
const say = (text: string): void => void writeSync(1, `${text}\n`);

if (mode === "write") await write(JSON.parse(rest[0] ?? "") as FaultPlan);
else if (mode === "open") await open(JSON.parse(rest[0] ?? "") as FaultPlan);
else await race();

async function write(plan: FaultPlan): Promise<void> {
  const log = await jsonlStore({ root, disk: faultDisk(nodeDisk, plan), stamp: systemStamp }).create("one");
  for (let n = 1; n <= 12; n++) {
    const event: SessionEvent = {
      id: `event-${n}`,
      timestamp: "2026-01-01T00:00:00.000Z",
      parentId: n === 1 ? null : `event-${n - 1}`,
      type: "user.message",
      data: { content: `message ${n}` },
    };
    await log.append(event, { barrier: n % 3 === 0 });
    say(event.id);
  }
  await log.close();
  say("end");
}

async function open(plan: FaultPlan): Promise<void> {
  const log = await jsonlStore({ root, disk: faultDisk(nodeDisk, plan), stamp: systemStamp }).open("one");
  await log.close();
  say("end");
}

async function race(): Promise<void> {
  const store = jsonlStore({ root, disk: nodeDisk, stamp: systemStamp });
  let log: SessionLog | undefined;
  for await (const line of createInterface({ input: process.stdin })) {
    if (line === "close") {
      await log?.close();
      say("closed");
      continue;
    }
    const before = performance.now();
    log = await store.open("one");
    const took = performance.now() - before;
    if (!log.heldBy) await Promise.all([1, 2, 3, 4, 5].map((n) => log?.append(info(n), { barrier: false })));
    say(JSON.stringify({ heldBy: log.heldBy?.pid, took }));
  }
}

function info(n: number): SessionEvent {
  const data = { infoType: "race", message: `${n} by ${process.pid}` };
  return { id: `info-${process.pid}-${n}`, timestamp: "", parentId: null, type: "session.info", data };
}
