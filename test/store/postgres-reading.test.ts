/** Reading and following sessions in Postgres: only the needed rows are read, and a follower gets every event once. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemStamp } from "../../src/lib/stamp.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { jsonlStore } from "../../src/store/jsonl.ts";
import { type Database, openDatabase } from "../../src/store/postgres/database.ts";
import { followRows } from "../../src/store/postgres/follow.ts";
import { postgresStore } from "../../src/store/postgres/postgres.ts";
import { migrate } from "../../src/store/postgres/schema.ts";
import type { SessionLog, Store } from "../../src/store/store.ts";
import { type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";
import { type PostgresServer, postgresPrograms, startPostgres } from "../support/postgres.ts";
import { hastyDisk, message, messages, temporaryFolder } from "./support.ts";

const programs = postgresPrograms();
const barrier = { barrier: true };
const HANG = { timeout: 60_000, interval: 20 };

if (programs === undefined) it.skip("reads and follows sessions in Postgres (skipped: no Postgres here)");

describe.runIf(programs !== undefined)("a store in Postgres", () => {
  let server: PostgresServer;
  let database: Database;
  /** Number of rows that were sent since it was set. */
  let sent = 0;
  let store: Store;
  let folder: TempFolder;

  beforeAll(async () => {
    server = await startPostgres(programs ?? "");
    folder = await tempFolder();
    const own = await openDatabase({ url: server.url });
    database = {
      ...own,
      async query(text, values) {
        const found = await own.query(text, values);
        sent += found.rows.length;
        return found as never;
      },
    };
    await migrate(database);
    await database.query(
      "insert into troupe.worker(id, host, pid, expires_at) values('w', 'w', 1, now() + interval '1 day')",
    );
    const worker = { id: "w", host: "w", pid: 1 };
    store = postgresStore({ database, folder: folder.path, disk: hastyDisk, worker });
  });
  afterAll(async () => {
    await database?.close();
    server?.remove();
    await folder?.remove();
  });

  const newId = (): string => `s-${crypto.randomUUID()}`;

  async function longLog(count: number): Promise<SessionLog> {
    const log = await store.create(newId());
    await Promise.all(messages(count).map((event) => log.append(event, { barrier: false })));
    await log.flush();
    return log;
  }

  it("the Postgres store sends only the rows of a page, of the first events and of the wanted types", async () => {
    const log = await longLog(3000);
    sent = 0;
    expect(await log.page(1500, 1510)).toEqual(messages(10, 1501));
    expect(sent).toBeLessThan(20);
    sent = 0;
    for await (const event of store.events(log.sessionId)) {
      expect(event).toEqual(message(1));
      break;
    }
    expect(sent).toBeLessThan(1100);
    sent = 0;
    const found: SessionEvent[] = [];
    const wanted = { types: new Set(["session.start"]), begin: () => (event: SessionEvent) => void found.push(event) };
    expect(await store.scan(log.sessionId, wanted)).toEqual({ count: 3000, isFound: true });
    expect(await store.scan(log.sessionId, { ...wanted, toEventId: message(2001).id })).toEqual({
      count: 2000,
      isFound: true,
    });
    expect(await store.scan(log.sessionId, { ...wanted, toEventId: "none" })).toEqual({ count: 3000, isFound: false });
    expect(found).toEqual([]);
    expect(sent).toBeLessThan(20);
    sent = 0;
    expect((await store.list()).find(({ sessionId }) => sessionId === log.sessionId)?.title).toBeDefined();
    expect(sent).toBeLessThan(100);
    await log.close();
  });

  it("the Postgres store reads a long log from its end, but not a short one", async () => {
    const log = await store.create(newId());
    const large = (n: number) => ({ ...message(n), data: { content: "x".repeat(40_000) } }) as SessionEvent;
    const all = Array.from({ length: 450 }, (_, index) => large(index + 1));
    await Promise.all(all.map((event) => log.append(event, { barrier: false })));
    await log.flush();
    const isStart = ({ id }: SessionEvent): boolean => id === all[440]?.id;
    const recent = await store.recent(log.sessionId, isStart);
    expect(recent?.before).toBe(440);
    expect(recent?.events.map(({ id }) => id)).toEqual(all.slice(440).map(({ id }) => id));
    const short = await longLog(20);
    expect(await store.recent(short.sessionId, () => true)).toBeUndefined();
    await Promise.all([log.close(), short.close()]);
  });

  async function follower(sessionId: string, afterSeq = 0, pollMs?: number) {
    const stop = new AbortController();
    const seen: number[] = [];
    const done = (async () => {
      const how = { afterSeq, signal: stop.signal, ...(pollMs !== undefined && { pollMs }) };
      for await (const { seq, event } of followRows(database, sessionId, how)) {
        expect(event.id).toBe(message(seq).id);
        seen.push(seq);
      }
    })();
    return {
      seen,
      async stop() {
        stop.abort();
        await done;
      },
    };
  }
  const upTo = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

  it("the Postgres store gives a follower every event once, from before and after it began", async () => {
    const id = newId();
    // Polling alone would take longer than the test may.
    const early = await follower(id, 0, 600_000);
    await expect
      .poll(async () => (await database.query("select 1 from troupe.watch where session_id = $1", [id])).count, HANG)
      .toBe(1);
    const log = await store.create(id);
    for (const event of messages(50)) await log.append(event, barrier);
    const late = await follower(id, 20, 600_000);
    for (const event of messages(300, 51)) await log.append(event, { barrier: false });
    await log.flush();
    await expect.poll(() => early.seen.length, HANG).toBe(350);
    await expect.poll(() => late.seen.length, HANG).toBe(330);
    expect(early.seen).toEqual(upTo(1, 350));
    expect(late.seen).toEqual(upTo(21, 350));
    await Promise.all([early.stop(), late.stop(), log.close()]);
  });

  it("the Postgres store gives a follower events whose notification was lost, and survives a server crash", async () => {
    const log = await store.create(newId());
    await log.append(message(1), barrier);
    const one = await follower(log.sessionId, 0, 100);
    await expect.poll(() => one.seen.length, HANG).toBe(1);
    await database.query("delete from troupe.watch");
    await log.append(message(2), barrier);
    await expect.poll(() => one.seen.length, HANG).toBe(2);
    server.crash();
    for (const event of messages(10, 3)) await log.append(event, barrier);
    await expect.poll(() => one.seen.length, HANG).toBe(12);
    expect(one.seen).toEqual(upTo(1, 12));
    await Promise.all([one.stop(), log.close()]);
  });

  it("the Postgres store copies logs to files and back as exact lines, and refuses changed ones", async () => {
    const log = await longLog(600);
    await log.append({ ...message(601), data: { content: "a\u2028b" } } as SessionEvent, barrier);
    await log.close();
    const root = temporaryFolder();
    const files = jsonlStore({ root, disk: hastyDisk, stamp: systemStamp });
    const lines = async (from: Store, id: string) => {
      const all: string[] = [];
      for await (const line of from.exact?.read(id) ?? []) all.push(line);
      return all;
    };
    const exact = await lines(store, log.sessionId);
    expect(exact).toHaveLength(601);
    await files.exact?.add(log.sessionId, store.exact?.read(log.sessionId) ?? none());
    expect(await lines(files, log.sessionId)).toEqual(exact);
    expect((await files.read(log.sessionId)).damage).toEqual([]);
    const back = newId();
    await store.exact?.add(back, files.exact?.read(log.sessionId) ?? none());
    expect(await lines(store, back)).toEqual(exact);
    const opened = await store.open(back);
    await opened.append(message(602), barrier);
    await opened.close();
    expect((await store.read(back)).damage).toEqual([]);
    for (const target of [files, store]) {
      const id = newId();
      const changed = exact.with(300, (exact[300] ?? "").replace("301", "x"));
      await expect(target.exact?.add(id, generate(changed))).rejects.toMatchObject({ kind: "usage" });
      await expect(target.exact?.add(id, generate(exact.toSpliced(5, 1)))).rejects.toThrow("line 6");
      await expect(target.exact?.add(log.sessionId, generate(exact))).rejects.toMatchObject({ kind: "usage" });
      expect(await target.revision(id)).toBeUndefined();
    }
  });
});

async function* generate(lines: readonly string[]): AsyncGenerator<string> {
  yield* lines;
}
async function* none(): AsyncGenerator<string> {}
