import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { snapshotRules } from "../../src/session/compaction/condense.ts";
import { forkedEvents, forkFacts } from "../../src/session/rewind/fork.ts";
import type { SessionLog } from "../../src/store/store.ts";
import { encodeLog, hastyDisk, realStore, seeded, temporaryFolder } from "../store/support.ts";
import { foldAll, randomLog } from "./random-log.ts";

const snapshots = { ...snapshotRules, minLogBytes: 1, chunkEvents: 10 };
const summary = { sessionId: "two", cwd: "/", createdAt: "", updatedAt: "", turns: 0 };
const stateOf = ({ events, removed }: SessionLog) => foldAll(events, removed);
const named = (id: string): SessionEvent => ({
  ...{ id, timestamp: "2026-01-01T00:00:00.000Z", parentId: null, type: "troupe.session_named", data: { name: id } },
});

/** Random events in which some name the folder of the session and some are left out of a fork. */
function eventsOf(seed: number, folder: string): SessionEvent[] {
  const random = seeded(seed);
  const events = randomLog(random, 60 + Math.floor(random() * 150), { rewinds: seed % 4 === 0 });
  const all = events.flatMap((event, index): SessionEvent[] => {
    const isFinal = index >= events.length - 30;
    if (seed % 3 === 0 && random() < 0.03) return [named(`name-${index}`), event];
    if (event.type !== "user.message" || isFinal || random() > 0.2) return [event];
    return [{ ...event, data: { ...event.data, content: `see ${folder}/files/plan.md` } }];
  });
  return all.map((event, index) => ({ ...event, parentId: all[index - 1]?.id ?? null }));
}

it("a fork of any log has the right state, events and chain (48 logs, with damage, rewinds and tails)", async () => {
  let withSnapshot = 0;
  for (let seed = 1; seed <= 48; seed++) {
    const about = `seed ${seed}`;
    const root = temporaryFolder();
    const folder = join(root, "session-state", "one");
    mkdirSync(folder, { recursive: true });
    const path = join(folder, "events.jsonl");
    const lines = encodeLog(eventsOf(seed, folder));
    const tail = seed % 2 === 0 ? 15 : 0;
    writeFileSync(path, Buffer.concat(lines.slice(0, lines.length - tail)));
    const store = realStore(root, { disk: hastyDisk, snapshots });
    await (await store.open("one")).close();
    appendFileSync(path, Buffer.concat(lines.slice(lines.length - tail)));
    if (seed % 5 === 0) {
      const bytes = readFileSync(path);
      const middle = bytes.length >> 1;
      bytes.writeUInt8(bytes.readUInt8(middle) ^ 1, middle);
      writeFileSync(path, bytes);
    }
    const { events: view } = await store.read("one");
    const toEventId = seed % 7 === 0 ? view[view.length >> 1]?.id : undefined;
    const facts = await forkFacts((what) => store.scan("one", what), toEventId);
    expect(facts.count, about).toBe(toEventId === undefined ? view.length : view.length >> 1);
    let id = 0;
    const wish = { sessionId: "two", name: "fork", now: "2026-02-01T00:00:00.000Z", message: "forked" };
    const fork = forkedEvents({ ...wish, newId: () => `own-${++id}` }, facts);
    await store.fork("one", { sessionId: "two", events: fork, summary, copies: [] });

    const kept = view.slice(0, facts.count).flatMap((event) => {
      return fork.changedTypes.has(event.type) ? (fork.change(event) ?? []) : event;
    });
    const target = join(root, "session-state", "two");
    const expected = [...kept, ...fork.added].map((event, index, all) => {
      const text = JSON.stringify({ ...event, parentId: all[index - 1]?.id ?? null });
      return JSON.parse(text.replaceAll(folder, target)) as SessionEvent;
    });
    const { events, damage } = await store.read("two");
    expect({ damage, events }, about).toEqual({ damage: [], events: expected });

    if (existsSync(join(target, "snapshot.json"))) withSnapshot++;
    const [quick, whole] = [await store.open("two"), await realStore(root, { disk: hastyDisk }).open("two")];
    expect({ count: quick.count, state: await stateOf(quick) }, about).toEqual({
      count: expected.length,
      state: await stateOf(whole),
    });
    await whole.close();
    await quick.close();
  }
  expect(withSnapshot).toBeGreaterThan(15);
});
