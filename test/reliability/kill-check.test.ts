import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { encodeLine, noRecord } from "../../src/store/log/line.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";

interface Round {
  readonly folder: string;
  readonly home: string;
  readonly workspace: string;
  readonly sessionId: string;
  readonly told: readonly (readonly object[])[];
  readonly tokens: readonly string[];
}
type KillCheck = { checkRound(round: Round): Promise<string[]> };
const { checkRound } = (await import(new URL("../../scripts/kill-check.mjs", import.meta.url).href)) as KillCheck;

let folder: Awaited<ReturnType<typeof tempFolder>>;
let count = 0;
beforeAll(async () => {
  folder = await tempFolder();
});
afterAll(() => folder[Symbol.asyncDispose]());

type Plain = { readonly id: string; readonly type: string; readonly agentId?: string; readonly data: object };
const command = { toolName: "bash", arguments: { command: "echo T1 >> ledger.txt" } };
const good: readonly Plain[] = [
  { id: "a", type: "session.start", data: {} },
  { id: "b", type: "assistant.turn_start", data: { turnId: "0" } },
  { id: "c", type: "tool.execution_start", data: { toolCallId: "1", ...command } },
  { id: "d", type: "permission.requested", data: { requestId: "p" } },
  { id: "e", type: "permission.completed", data: { requestId: "p" } },
  { id: "f", type: "tool.execution_complete", data: { toolCallId: "1", success: true } },
  { id: "g", type: "subagent.started", agentId: "kid", data: {} },
  { id: "h", type: "subagent.failed", agentId: "kid", data: {} },
  { id: "i", type: "assistant.turn_end", data: { turnId: "0" } },
];
const without = (...ids: string[]): Plain[] => good.filter(({ id }) => !ids.includes(id));

const delivered: readonly Plain[] = [
  { id: "j", type: "troupe.task_message", data: { messageId: "m" } },
  { id: "k", type: "troupe.task_message_delivered", data: { messageIds: ["m"] } },
  { id: "l", type: "troupe.task_message_delivered", data: { messageIds: ["m"] } },
];

interface Fault {
  readonly events?: readonly Plain[];
  readonly change?: (log: string) => string;
  readonly ledger?: string;
  readonly told?: readonly string[];
  readonly file?: string;
}

function check({ events = good, change = (log) => log, ledger = "T1\n", told = ["a", "c"], file }: Fault) {
  const at = join(folder.path, String(++count));
  const session = join(at, "home", "session-state", "one");
  const workspace = join(at, "work");
  for (const place of [session, workspace]) mkdirSync(place, { recursive: true });
  let last = noRecord;
  let log = "";
  for (const event of events) {
    const { bytes, link } = encodeLine(event as unknown as SessionEvent, last);
    last = link;
    log += bytes.toString();
  }
  writeFileSync(join(session, "events.jsonl"), change(log));
  writeFileSync(join(workspace, "ledger.txt"), ledger);
  if (file !== undefined) writeFileSync(join(at, file), "");
  const shown = told.map((id) => ({ id, type: "any" }));
  const round = { folder: at, home: join(at, "home"), workspace, sessionId: "one" };
  return checkRound({ ...round, told: [shown], tokens: ["T1"] });
}

const faults: Readonly<Record<string, readonly [Fault, RegExp]>> = {
  "a changed byte": [{ change: (log) => log.replace("echo T1", "echo T2") }, /checksum/],
  "a line that is gone": [{ change: (log) => log.split("\n").toSpliced(3, 1).join("\n") }, /seq 5 after 3/],
  "a torn end": [{ change: (log) => log.slice(0, -9) }, /whole line/],
  "a shown event that is gone": [{ told: ["a", "z"] }, /z was shown and is not in the log/],
  "events shown in another order": [{ told: ["c", "a"] }, /another order/],
  "a call without an end": [{ events: without("f") }, /tool.execution_start of main\/1 has no end/],
  "a call with two ends": [{ events: [...good, { ...good[5], id: "x" } as Plain] }, /tool.execution_complete .* twice/],
  "an agent without an end": [{ events: without("h") }, /subagent.started of kid has no end/],
  "a request without an answer": [{ events: without("e") }, /permission.requested of p has no end/],
  "a turn without an end": [{ events: without("i") }, /assistant.turn_start of main has no end/],
  "a message that was delivered twice": [{ events: [...good, ...delivered] }, /message m was delivered 2 times/],
  "an effect that happened twice": [{ ledger: "T1\nT1\n" }, /T1 happened 2 times/],
  "an effect that is missing": [{ ledger: "" }, /T1 is missing/],
  "an effect without a call in the log": [{ events: without("c", "f") }, /T1 happened and its call is not in the log/],
  "a temporary file in the workspace": [{ file: "work/.troupe-1.tmp" }, /was left in the workspace/],
  "a temporary file of the session": [
    { file: "home/session-state/one/lock.1.tmp" },
    /left in the folder of the session/,
  ],
};

describe("the checker of kill rounds", () => {
  it("the checker of kill rounds finds no problem in an undamaged log", async () => {
    expect(await check({})).toEqual([]);
  });

  it.each(Object.entries(faults))("the checker of kill rounds notices %s", async (_name, [fault, words]) => {
    expect((await check(fault)).join("\n")).toMatch(words);
  });
});
