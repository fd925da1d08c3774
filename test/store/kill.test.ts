import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readLog } from "../../src/store/log/read-log.ts";
import type { Fault, FaultPlan } from "../../src/testing/fault-disk.ts";
import { HANG_MS } from "../support/work.ts";
import { buildChild, runChild, startChild } from "./child.ts";
import { encodeLog, idsOf, message, messages, realStore, temporaryFolder } from "./support.ts";

const isSlow = Boolean(process.env.TROUPE_SLOW);
let programFolder = "";
let program = "";

beforeAll(async () => {
  programFolder = mkdtempSync(join(tmpdir(), "troupe-child-"));
  program = await buildChild(programFolder);
});
afterAll(() => rmSync(programFolder, { recursive: true, force: true }));

const logPath = (root: string): string => join(root, "session-state", "one", "events.jsonl");

/** Kills a process at operation 1, 2, 3 … until one comes to its end, four processes at a time. */
async function killAtEvery(
  plan: Omit<FaultPlan, "at">,
  attempt: (plan: FaultPlan) => Promise<boolean>,
): Promise<number> {
  for (let first = 1; ; first += 4) {
    const killed = await Promise.all([0, 1, 2, 3].map((offset) => attempt({ ...plan, at: first + offset })));
    const survivor = killed.indexOf(false);
    if (survivor !== -1) {
      expect(killed.slice(survivor)).not.toContain(true);
      return first + survivor - 1;
    }
  }
}

const tears = (isSlow ? [0, 0.25, 0.5, 0.75, 1] : [0.5]).map((share): [string, Omit<FaultPlan, "at">] => [
  `at ${share} of every write`,
  { fault: { kind: "tear", share, end: "kill" }, operations: ["write"] },
]);
const kills: [string, Omit<FaultPlan, "at">][] = [
  ["before every operation", { fault: { kind: "kill", when: "before" } }],
  ...(isSlow
    ? [
        ["after every operation", { fault: { kind: "kill", when: "after" } as Fault }] as [
          string,
          Omit<FaultPlan, "at">,
        ],
      ]
    : []),
  ...tears,
];

test.each(kills)(
  "a process killed %s loses nothing that was acknowledged, and the next one continues",
  async (_name, plan) => {
    const points = await killAtEvery(plan, async (at) => {
      const root = temporaryFolder();
      const ended = await runChild(program, "write", root, JSON.stringify(at));
      if (ended.lines.at(-1) === "end") return false;
      expect(ended).toMatchObject({ signal: "SIGKILL", errors: "" });
      const store = realStore(root);
      const exists = existsSync(logPath(root)) && statSync(logPath(root)).size > 0;
      const log = exists ? await store.open("one") : await store.create("one");
      expect(log.heldBy).toBeUndefined();
      const ids = idsOf(log.events);
      expect(ids.slice(0, ended.lines.length)).toEqual(ended.lines);
      expect(ids).toEqual(idsOf(messages(ids.length)));
      await log.append(message(ids.length + 1), { barrier: true });
      await log.close();
      expect(await store.read("one")).toEqual({ events: messages(ids.length + 1), removed: [], damage: [] });
      return true;
    });
    expect(points).toBeGreaterThan(12);
  },
);

test("a repair killed before every operation and repeated gives the same result", async () => {
  const torn = Buffer.concat([...encodeLog(messages(3)), Buffer.from('{"id":"torn')]);
  const offset = torn.length - 11;
  const points = await killAtEvery({ fault: { kind: "kill", when: "before" } }, async (plan) => {
    const root = temporaryFolder();
    mkdirSync(join(root, "session-state", "one"), { recursive: true });
    writeFileSync(logPath(root), torn);
    const ended = await runChild(program, "open", root, JSON.stringify(plan));
    const log = await realStore(root).open("one");
    await log.close();
    expect(idsOf(log.events)).toEqual(idsOf(messages(3)));
    expect(readFileSync(logPath(root))).toEqual(torn.subarray(0, offset));
    const saved = join(log.directory, "damaged");
    expect(readdirSync(saved).filter((name) => name.endsWith(".bin"))).toEqual([`${offset}.bin`]);
    expect(readFileSync(join(saved, `${offset}.bin`), "utf8")).toBe('{"id":"torn');
    return ended.signal === "SIGKILL";
  });
  expect(points).toBeGreaterThan(10);
});

const races = isSlow ? 1000 : 20;
/** Milliseconds. Other tests run at the same time unless the slow ones do. */
const longest = isSlow ? 200 : HANG_MS;

test(`exactly one of four processes that open a session at once writes (${races} races)`, async () => {
  const root = temporaryFolder();
  const directory = join(root, "session-state", "one");
  mkdirSync(directory, { recursive: true });
  writeFileSync(logPath(root), Buffer.concat(encodeLog([message(1)])));
  const children = [0, 1, 2, 3].map(() => startChild(program, "race", root));
  const tell = async (line: string, answers: number): Promise<string[]> => {
    for (const child of children) child.input.write(`${line}\n`);
    return Promise.all(children.map(async (child) => (await child.lines(answers)).at(-1) ?? ""));
  };
  const waits: number[] = [];
  for (let round = 0; round < races; round++) {
    if (round % 4 > 0) leaveStaleLock(directory, round);
    const answers = await tell("open", 2 * round + 1);
    const results = answers.map((answer) => JSON.parse(answer));
    expect(results.filter((result) => result.heldBy === undefined).length, answers.join()).toBe(1);
    waits.push(...results.flatMap((result) => (result.heldBy === undefined ? [] : [result.took])));
    await tell("close", 2 * round + 2);
  }
  for (const child of children) child.input.end();
  expect((await Promise.all(children.map((child) => child.ended))).map(({ errors }) => errors).join("")).toBe("");
  expect(waits.length).toBe(3 * races);
  expect(waits.sort((a, b) => a - b)[Math.floor(waits.length * 0.95)]).toBeLessThan(longest);
  const { events, damage } = await readLog(logPath(root));
  expect({ count: events.length, damage }).toEqual({ count: 1 + 5 * races, damage: [] });
  expect(readdirSync(directory)).toEqual(["events.jsonl"]);
});

/** Of a process with the pid of this one that began at another time, of one that is gone, or of nobody. */
function leaveStaleLock(directory: string, round: number): void {
  const reused = JSON.stringify({ pid: process.pid, started: "1", token: `stale-${round}` });
  const gone = JSON.stringify({ pid: 2 ** 22 + 1, started: "1", token: `stale-${round}` });
  const dying = JSON.stringify({ pid: 2 ** 22 + 1, started: "1", token: `dying-${round}` });
  const lock = join(directory, "lock");
  writeFileSync(lock, [reused, gone, "\0\0\0"][round % 3] ?? "");
  utimesSync(lock, 1000 + round, 1000 + round);
  if (round % 5 === 0 && round % 3 < 2) writeFileSync(`${lock}.after-stale-${round}`, dying);
}
