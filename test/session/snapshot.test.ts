import { appendFileSync, copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { systemStamp } from "../../src/lib/stamp.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { snapshotRules } from "../../src/session/compaction/condense.ts";
import { EventLog } from "../../src/session/event-log.ts";
import { visibleEvents } from "../../src/store/log/rewound.ts";
import type { SessionLog, Store } from "../../src/store/store.ts";
import { encodeLog, hastyDisk, realStore, seeded, temporaryFolder } from "../store/support.ts";
import { foldAll, randomLog } from "./random-log.ts";

/** Random logs per property, and how many of them must open from their snapshot. */
const [SEEDS, LEAST_USED] = process.env.TROUPE_SLOW === undefined ? [20, 6] : [60, 31];

const rules = { ...snapshotRules, minLogBytes: 1, chunkEvents: 10 };
const withSnapshots = (root: string): Store => realStore(root, { disk: hastyDisk, snapshots: rules });

interface Place {
  readonly root: string;
  readonly log: string;
  readonly snapshot: string;
}

function placeOf(bytes: Buffer): Place {
  const root = temporaryFolder();
  const directory = join(root, "session-state", "one");
  mkdirSync(directory, { recursive: true });
  const log = join(directory, "events.jsonl");
  writeFileSync(log, bytes);
  return { root, log, snapshot: join(directory, "snapshot.json") };
}

const stateOf = async ({ events, removed, damage, count }: SessionLog) => ({
  state: await foldAll(events, removed),
  damage: damage.map(({ savedTo: _, ...rest }) => rest),
  count,
});

/** Opens a copy of the log as it is now from its beginning, without any snapshot. */
async function fromTheWholeLog({ log }: Place) {
  const copy = placeOf(readFileSync(log));
  const opened = await realStore(copy.root, { disk: hastyDisk }).open("one");
  const state = await stateOf(opened);
  await opened.close();
  return state;
}

async function opened({ root }: Place) {
  const log = await withSnapshots(root).open("one");
  const state = await stateOf(log);
  await log.close();
  return state;
}

/** Opening it with the snapshot it has by now, if any, is like reading all of it. */
async function expectSame(place: Place, about: string): Promise<void> {
  const expected = await fromTheWholeLog(place);
  expect(await opened(place), about).toEqual(expected);
}

/** Damages some lines, repeats others, and tears the end, each with some probability. */
function damaged(lines: Buffer[], random: () => number): Buffer {
  const pieces = lines.map((line) => {
    const bytes = Buffer.from(line);
    const fate = random();
    if (fate < 0.01) bytes[Math.floor(random() * (bytes.length - 1))] = 0x41;
    if (fate > 0.99) return Buffer.concat([bytes, bytes]);
    if (fate > 0.985) return Buffer.concat([bytes.subarray(0, -1)]);
    return bytes;
  });
  const end = random() < 0.3 ? [Buffer.from('{"id":"torn","type":"user.mess')] : [];
  return Buffer.concat([...pieces, ...end]);
}

function logOf(seed: number): { random: () => number; events: SessionEvent[]; lines: Buffer[] } {
  const random = seeded(seed);
  const events = randomLog(random, 30 + Math.floor(random() * 200), { rewinds: seed % 3 === 0 });
  return { random, events, lines: encodeLog(events) };
}

describe("a session that is opened with a snapshot", () => {
  it(`a session with a snapshot has the state of its whole log at every length (${SEEDS} logs with damage)`, async () => {
    let used = 0;
    for (let seed = 1; seed <= SEEDS; seed++) {
      const { random, lines } = logOf(seed);
      const cut = 5 + Math.floor(random() * (lines.length - 5));
      const isDamaged = seed % 2 === 0;
      const head = isDamaged ? damaged(lines.slice(0, cut), random) : Buffer.concat(lines.slice(0, cut));
      const place = placeOf(head);
      await expectSame(place, `seed ${seed}, first opening`);
      if (existsSync(place.snapshot)) used++;
      await expectSame(place, `seed ${seed}, second opening`);
      appendFileSync(place.log, Buffer.concat(lines.slice(cut)));
      await expectSame(place, `seed ${seed}, with a tail`);
      await expectSame(place, `seed ${seed}, once more`);
    }
    expect(used).toBeGreaterThanOrEqual(LEAST_USED);
  });

  it("a session with a snapshot has the state of the whole log after it continued and was closed", async () => {
    for (let seed = 1; seed <= SEEDS / 2; seed++) {
      const { random, events, lines } = logOf(502 + 3 * seed);
      const place = placeOf(Buffer.concat(lines.slice(0, -40)));
      const store = withSnapshots(place.root);
      const log = await store.open("one");
      const session = new EventLog({
        ...{ store: log, stamp: systemStamp, fold: () => undefined, minCondensed: 5 },
        onListenerDefect: (error) => expect.fail(String(error)),
      });
      for (const { agentId, type, data } of events.slice(-40)) {
        const said = session.emit(agentId, type, data as never);
        if (random() < 0.5) await said;
      }
      await log.flush();
      expect((await foldAll(session.events, log.removed)).tasks).toEqual((await fromTheWholeLog(place)).state.tasks);
      await session.snapshot();
      await log.close();
      await expectSame(place, `seed ${seed}`);
    }
  });

  it("a session with a missing, cut, altered or foreign snapshot reads the log again", async () => {
    const { lines } = logOf(1);
    const place = placeOf(Buffer.concat(lines));
    await opened(place);
    const good = readFileSync(place.snapshot);
    const expected = await fromTheWholeLog(place);
    const header = good.toString("utf8", 0, good.indexOf(10));
    const other = placeOf(Buffer.concat(logOf(4).lines));
    await opened(other);
    const harmed: [string, () => void][] = [
      ["missing", () => rmSync(place.snapshot)],
      ["empty", () => writeFileSync(place.snapshot, "")],
      ["cut short", () => writeFileSync(place.snapshot, good.subarray(0, -10))],
      ["no JSON", () => writeFileSync(place.snapshot, "\0\0\0")],
      ["of another log", () => copyFileSync(other.snapshot, place.snapshot)],
      ["of other rules", () => writeFileSync(place.snapshot, good.toString().replace('"rules":1', '"rules":9'))],
      [
        "of another version",
        () => writeFileSync(place.snapshot, good.toString().replace('"version":1', '"version":9')),
      ],
      ["with a byte changed", () => writeFileSync(place.snapshot, changedAt(good, header.length + 50))],
      [
        "a folder",
        () => {
          rmSync(place.snapshot);
          mkdirSync(place.snapshot);
        },
      ],
    ];
    for (const [name, harm] of harmed) {
      harm();
      expect(await opened(place), name).toEqual(expected);
    }
  });

  it("a changed line before the snapshot is noticed, and the damage is reported", async () => {
    const { lines } = logOf(1);
    const place = placeOf(Buffer.concat(lines));
    await opened(place);
    expect((await opened(place)).damage).toEqual([]);
    const bytes = readFileSync(place.log);
    writeFileSync(place.log, changedAt(bytes, (lines[0]?.length ?? 0) + 30));
    const expected = await fromTheWholeLog(place);
    expect(expected.damage).toHaveLength(1);
    expect(await opened(place)).toEqual(expected);
  });

  it("a log that became shorter than its snapshot is read correctly", async () => {
    const { lines } = logOf(2);
    const place = placeOf(Buffer.concat(lines));
    await opened(place);
    writeFileSync(place.log, Buffer.concat(lines.slice(0, 20)));
    await expectSame(place, "shorter");
  });

  it("a session with a snapshot has the same state when the process dies at any disk operation", async () => {
    const { lines } = logOf(1);
    for (let operations = 0; operations < 25; operations++) {
      const place = placeOf(Buffer.concat([...lines.slice(0, -5), ...(operations % 2 ? [Buffer.from("{torn")] : [])]));
      let left = operations;
      const dying = new Proxy(hastyDisk, {
        get:
          (disk, name) =>
          async (...given: unknown[]) => {
            if (left-- <= 0) throw Object.assign(new Error("gone"), { code: "EIO" });
            return (disk as unknown as Record<string | symbol, (...all: unknown[]) => unknown>)[name]?.(...given);
          },
      });
      const log = await realStore(place.root, { disk: dying, snapshots: rules })
        .open("one")
        .catch(() => undefined);
      await log?.snapshot({ events: log.events, count: log.count });
      await log?.close().catch(() => undefined);
      rmSync(join(place.root, "session-state", "one", "lock"), { force: true });
      await expectSame(place, `after ${operations} operations`);
      await expectSame(place, `after ${operations} operations, again`);
    }
  });
});

describe("pages of a log", () => {
  it(`pages of a log form the log together, whatever their size (${SEEDS} logs with damage and rewinds)`, async () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const { random, lines } = logOf(900 + seed);
      const place = placeOf(seed % 5 === 0 ? damaged(lines, random) : Buffer.concat(lines));
      const log = await withSnapshots(place.root).open("one");
      const expected = visibleEvents(await log.everything()).events;
      expect(log.count).toBe(expected.length);
      const size = 1 + Math.floor(random() * 90);
      const pages: SessionEvent[] = [];
      for (let from = 0; from < log.count; from += size) pages.push(...(await log.page(from, from + size)));
      expect(pages, `seed ${seed}`).toEqual(expected);
      await log.close();
    }
  });

  it(`pages of a log give all events in order, with or without a newline at the end (${SEEDS} logs)`, async () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const { random, lines } = logOf(1200 + seed);
      const bytes = seed % 3 === 0 ? damaged(lines, random) : Buffer.concat(lines);
      const place = placeOf(seed % 2 === 0 ? bytes : bytes.subarray(0, -1));
      const store = withSnapshots(place.root);
      const { events: expected, damage } = await store.read("one");
      const all: SessionEvent[] = [];
      const reported: unknown[] = [];
      for await (const event of store.events("one", (found) => reported.push(...found))) all.push(event);
      expect(all, `seed ${seed}`).toEqual(expected);
      expect(reported, `seed ${seed}`).toEqual(damage);
    }
  });

  it("pages of a log include events appended during reading, and follow a rewind", async () => {
    const { events, lines } = logOf(1);
    const place = placeOf(Buffer.concat(lines));
    const log = await withSnapshots(place.root).open("one");
    const total = events.length;
    expect(await log.page(total - 1, total + 5)).toEqual(events.slice(-1));
    const more = { ...(events[0] as SessionEvent), id: "more" };
    await log.append(more, { barrier: true });
    expect(await log.page(total, total + 5)).toEqual([more]);
    const mark: SessionEvent = {
      ...{ id: "back", timestamp: more.timestamp, parentId: null, type: "troupe.rewound" },
      data: { upToEventId: events[3]?.id ?? "", eventsRemoved: 1 },
    };
    await log.append(mark, { barrier: true });
    expect(await log.page(0, 100)).toEqual([...events.slice(0, 3), mark]);
    await log.close();
  });
});

function changedAt(bytes: Buffer, place: number): Buffer {
  const changed = Buffer.from(bytes);
  changed[place] = (changed[place] ?? 0) ^ 1;
  return changed;
}
