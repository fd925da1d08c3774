import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Disk, nodeDisk } from "../../src/lib/node/disk.ts";
import { systemStamp } from "../../src/lib/stamp.ts";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import { createRuntime } from "../../src/runtime/runtime.ts";
import { storedRewinds } from "../../src/runtime/sessions/stored-rewinds.ts";
import { jsonlStore } from "../../src/store/jsonl.ts";
import { type FaultPlan, faultDisk } from "../../src/testing/fault-disk.ts";
import { modelServer } from "../../src/testing/model-server.ts";
import { expectPaired } from "../../src/testing/story.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";

const slow = process.env.TROUPE_SLOW !== undefined;
const ID = "one";
let folder: Awaited<ReturnType<typeof tempFolder>>;
/** A session that has changed files in each of two answers, and the folder it worked in. */
let template: string;
let work: string;

const edit = (path: string, from: string, to: string) => ["edit", { path, old_str: from, new_str: to }] as const;
const create = (path: string, text: string) => ["create", { path, file_text: text }] as const;

beforeAll(async () => {
  folder = await tempFolder();
  [template, work] = [join(folder.path, "template"), join(folder.path, "work")];
  mkdirSync(work);
  const steps = [
    calls(create("a.txt", "one\n"), create("b.txt", "one\n")),
    says("made"),
    calls(edit("a.txt", "one", "two"), create("deep/c.txt", "new\n"), ["bash", { command: "rm b.txt" }]),
    says("changed"),
  ];
  await using server = await modelServer({ steps, models: ["m"] });
  const environment = { PATH: process.env.PATH, HOME: folder.path, TROUPE_SANDBOX: "off" };
  const runtime = createRuntime({
    environment: { ...environment, TROUPE_BASE_URL: server.baseUrl, TROUPE_API_KEY: "k", TROUPE_MODEL: "m" },
    home: template,
  });
  const session = await runtime.createSession({ cwd: work, sessionId: ID, permissions: { allTools: true } });
  await session.sendAndWait({ prompt: "make" });
  cpSync(work, join(folder.path, "before"), { recursive: true });
  await session.sendAndWait({ prompt: "change" });
  cpSync(work, join(folder.path, "after"), { recursive: true });
  await session.close();
  await runtime.close();
});
afterAll(() => folder[Symbol.asyncDispose]());

let count = 0;

/** As the session left it: a home of its own, and the folder with its files. */
function staged(): string {
  const home = join(folder.path, `home-${++count}`);
  cpSync(template, home, { recursive: true });
  rmSync(work, { recursive: true });
  cpSync(join(folder.path, "after"), work, { recursive: true });
  return home;
}

/** A disk that stands still for good when its process dies: whoever waits for it waits for ever. */
function mortal(plan: Omit<FaultPlan, "kill">): { disk: Disk; dead: Promise<void>; died: () => boolean } {
  let isDead = false;
  let die = (): void => undefined;
  const dead = new Promise<void>((resolve) => {
    die = resolve;
  });
  const kill = (): void => {
    isDead = true;
    die();
  };
  const faulty = faultDisk(nodeDisk, { ...plan, kill });
  const disk = new Proxy(faulty, {
    get: (target, name: keyof Disk) => (isDead ? () => new Promise(() => undefined) : target[name]),
  });
  return { disk, dead, died: () => isDead };
}

type Death = Pick<FaultPlan, "fault" | "operations"> & { readonly stride: number };
const DEATHS: readonly Death[] = [
  { fault: { kind: "kill", when: "before" }, stride: slow ? 1 : 5 },
  { fault: { kind: "tear", share: 0.5, end: "kill" }, operations: ["write"], stride: 1 },
  ...(slow ? [{ fault: { kind: "kill", when: "after" }, stride: 1 } as const] : []),
];

/** Does it again and again, dying later each time, until it survives; returns how many operations it takes. */
async function atEveryOperation(
  act: (home: string, disk: Disk) => Promise<void>,
  check: (home: string) => Promise<void>,
  { first = 1, prepare }: { first?: number; prepare?: (home: string) => Promise<void> } = {},
): Promise<number> {
  let operations = 0;
  for (const death of DEATHS) {
    for (let at = first; ; at += death.stride) {
      const home = staged();
      await prepare?.(home);
      const { disk, dead, died } = mortal({ at, ...death });
      await Promise.race([act(home, disk), dead]);
      // The process is gone, and so is its claim on the session.
      rmSync(join(home, "session-state", ID, "lock"), { force: true });
      await check(home);
      rmSync(home, { recursive: true });
      if (!died()) break;
      operations = Math.max(operations, at);
    }
  }
  return operations;
}

const storeOf = (home: string, disk: Disk = nodeDisk) => jsonlStore({ root: home, disk, stamp: systemStamp });

async function rewound(home: string, disk: Disk): Promise<void> {
  const { rewinds, close } = await storedRewinds(ID, {
    stateRoot: home,
    store: storeOf(home, disk),
    disk,
    stamp: systemStamp,
  });
  const [, second] = await rewinds.points();
  await rewinds.rewind(second?.eventId ?? "", { files: true });
  await close();
}

async function restored(home: string, disk: Disk): Promise<void> {
  const { rewinds, close } = await storedRewinds(ID, {
    stateRoot: home,
    store: storeOf(home, disk),
    disk,
    stamp: systemStamp,
  });
  await rewinds.restore({ files: true });
  await close();
}

/** What a person finds who opens the session again: all as before, or all as after. */
async function checkWhole(home: string): Promise<void> {
  const runtime = createRuntime({ environment: { HOME: folder.path }, home });
  const session = await runtime.resumeSession(ID, { cwd: work, model: { name: "understudy" } });
  const messages = (await session.record.rewinds.points()).map(({ userMessage }) => userMessage);
  expectPaired(session.events);
  await session.close();
  await runtime.close();
  expect([["make"], ["make", "change"]]).toContainEqual(messages);
  expect(treeOf(work)).toEqual(treeOf(join(folder.path, messages.length === 1 ? "before" : "after")));
  expect((await storeOf(home).read(ID)).damage).toEqual([]);
}

function treeOf(root: string): Record<string, string> {
  const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter(
    // What a write that was cut off has left is swept when it is old enough to be nobody's.
    (entry) => entry.isFile() && !/^\.troupe-\w+\.tmp$/.test(entry.name),
  );
  return Object.fromEntries(
    files.map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return [path.slice(root.length), readFileSync(path, "utf8")] as const;
    }),
  );
}

describe("a kill at every operation on disk", { timeout: 300_000 }, () => {
  it("a kill at every disk operation leaves a rewind with files done or not done, also in the conversation", async () => {
    expect(await atEveryOperation(rewound, checkWhole)).toBeGreaterThan(25);
  });

  it("a kill at every disk operation leaves the undo of a rewind done or not done", async () => {
    expect(
      await atEveryOperation(restored, checkWhole, { first: 2, prepare: (home) => rewound(home, nodeDisk) }),
    ).toBeGreaterThan(25);
  });

  it("a kill at every disk operation leaves a fork complete or absent, and its source unchanged", async () => {
    const before = (await storeOf(template).read(ID)).events.map(({ id }) => id);
    const forked = async (home: string, disk: Disk): Promise<void> => {
      await createRuntime({ environment: { HOME: folder.path }, home, disk }).forkSession({ sessionId: ID });
    };
    const check = async (home: string): Promise<void> => {
      const store = storeOf(home);
      const { events, damage } = await store.read(ID);
      expect(damage).toEqual([]);
      expect(events.slice(0, before.length).map(({ id }) => id)).toEqual(before);
      expect(events.slice(before.length).map(({ type }) => type)).toEqual(
        events.length > before.length ? ["session.info"] : [],
      );
      const forks = (await store.ids()).filter((id) => id !== ID);
      expect(forks.length).toBeLessThanOrEqual(1);
      for (const fork of forks) {
        const made = await store.read(fork);
        expect(made.damage).toEqual([]);
        expect(made.events.map(({ id }) => id).slice(0, before.length)).toEqual(before);
        expect(made.events.slice(before.length).map(({ type }) => type)).toEqual([
          "troupe.session_named",
          "session.info",
        ]);
        for (const name of ["workspace.yaml", "checkpoints/changes.jsonl"]) {
          expect(existsSync(join(home, "session-state", fork, name))).toBe(true);
        }
      }
      // What is half done is in nobody's way.
      await forked(home, nodeDisk);
      expect((await store.ids()).length).toBe(forks.length + 2);
    };
    expect(await atEveryOperation(forked, check, { first: 3 })).toBeGreaterThan(25);
  });
});

it("the user's changes between a kill and the next opening are kept", async () => {
  const dyingAt = async (at: number): Promise<{ home: string; isRewound: boolean }> => {
    const home = staged();
    const { disk, dead } = mortal({ at, fault: { kind: "kill", when: "before" } });
    await Promise.race([rewound(home, disk), dead]);
    rmSync(join(home, "session-state", ID, "lock"), { force: true });
    const { events } = await storeOf(home).read(ID);
    return { home, isRewound: events.some(({ type }) => type === "troupe.rewound") };
  };
  // The first operation after the event is on disk: the plan stands, and not one file has been touched.
  let [early, late] = [0, 64];
  while (late - early > 1) {
    const middle = (early + late) >> 1;
    if ((await dyingAt(middle)).isRewound) late = middle;
    else early = middle;
  }
  const { home } = await dyingAt(late);
  expect(treeOf(work)).toEqual(treeOf(join(folder.path, "after")));
  writeFileSync(join(work, "a.txt"), "a person's\n");
  const runtime = createRuntime({ environment: { HOME: folder.path }, home });
  const session = await runtime.resumeSession(ID, { cwd: work, model: { name: "understudy" } });
  expect(session.events).toContainEqual(
    expect.objectContaining({ type: "session.warning", data: expect.objectContaining({ warningType: "rewind" }) }),
  );
  await session.close();
  await runtime.close();
  expect(treeOf(work)).toEqual({ "/a.txt": "a person's\n", "/b.txt": "one\n" });
});
