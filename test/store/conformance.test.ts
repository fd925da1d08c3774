import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { SessionEvent } from "../../src/protocol/event.ts";
import type { SessionSummary, Store } from "../../src/store/store.ts";
import { memoryStore } from "../support/memory-store.ts";
import { type PostgresServer, postgresPrograms, startPostgres } from "../support/postgres.ts";
import { memoryProvider } from "./memory-provider.ts";
import { newDatabaseStore } from "./postgres-support.ts";
import { clientStoreOf, message, messages, realStore, temporaryFolder } from "./support.ts";

const stores: Record<string, () => Store> = {
  "files on disk": () => realStore(temporaryFolder()),
  memory: memoryStore,
  "files of a client": () => clientStoreOf(memoryProvider()),
};
const barrier = { barrier: true };

const programs = postgresPrograms();
let postgres: PostgresServer | undefined;
if (programs === undefined) test.skip("a store in Postgres keeps the same contract (skipped: no Postgres here)");
else {
  stores.Postgres = () => newDatabaseStore(postgres?.url ?? "");
  beforeAll(async () => {
    postgres = await startPostgres(programs);
  });
  afterAll(() => postgres?.remove());
}

describe.each(Object.entries(stores))("a store in %s", (_name, makeStore) => {
  async function filled(store: Store, sessionId: string, count: number): Promise<void> {
    const log = await store.create(sessionId);
    await Promise.all(messages(count).map((event, index) => log.append(event, { barrier: index % 3 === 0 })));
    await log.close();
  }

  test("a store returns what was appended, in the order of the calls", async () => {
    const store = makeStore();
    await filled(store, "one", 20);
    const log = await store.open("one");
    expect({ events: log.events, damage: log.damage, heldBy: log.heldBy, sessionId: log.sessionId }).toEqual({
      events: messages(20),
      damage: [],
      heldBy: undefined,
      sessionId: "one",
    });
    await log.close();
  });

  test("a store continues after it was opened again", async () => {
    const store = makeStore();
    await filled(store, "one", 3);
    const log = await store.open("one");
    await log.append(message(4), barrier);
    await log.flush();
    await log.close();
    expect(await store.read("one")).toEqual({ events: messages(4), removed: [], damage: [] });
  });

  test("a store stores nothing of a session before its first append", async () => {
    const store = makeStore();
    const log = await store.create("idle");
    await log.flush();
    await log.close();
    expect(await store.ids()).toEqual([]);
    expect(await store.revision("idle")).toBeUndefined();
    await expect(store.open("idle")).rejects.toMatchObject({ kind: "usage", message: "There is no session idle." });
  });

  test("a store refuses to create an existing session and to open a missing one", async () => {
    const store = makeStore();
    await filled(store, "one", 1);
    await expect(store.create("one")).rejects.toMatchObject({ kind: "usage" });
    await expect(store.open("two")).rejects.toMatchObject({ kind: "usage" });
    await expect(store.read("two")).rejects.toMatchObject({ kind: "usage" });
    await expect(store.remove("two")).rejects.toMatchObject({ kind: "usage" });
  });

  test.each(["", ".", "..", "a/b", "../x", "-a", ".a", "a..b", "a\0b", "a b", "x".repeat(129)])(
    "a store refuses %j as the id of a session",
    async (sessionId) => {
      const store = makeStore();
      for (const method of [store.create, store.open, store.read, store.revision, store.remove]) {
        await expect(method(sessionId)).rejects.toMatchObject({ kind: "usage" });
      }
    },
  );

  test("a store allows one writer; a second one reads and learns the holder", async () => {
    const store = makeStore();
    await filled(store, "one", 2);
    const first = await store.open("one");
    const second = await store.open("one");
    expect(second.events).toEqual(messages(2));
    expect(second.heldBy).toMatchObject({ pid: process.pid });
    await expect(second.append(message(3), barrier)).rejects.toMatchObject({ kind: "storage" });
    await expect(second.repairAfterFailedWrite()).rejects.toMatchObject({ kind: "storage" });
    await expect(second.writeFile("a", "b")).rejects.toMatchObject({ kind: "storage" });
    await expect(store.remove("one")).rejects.toMatchObject({ kind: "storage" });
    await second.close();
    await first.append(message(3), barrier);
    await first.close();
    expect((await store.read("one")).events).toEqual(messages(3));
  });

  test("a store accepts no append after it is closed", async () => {
    const store = makeStore();
    const log = await store.create("one");
    await log.append(message(1), barrier);
    await log.close();
    await log.close();
    await expect(log.append(message(2), barrier)).rejects.toMatchObject({ kind: "storage" });
  });

  test("a store keeps an event of an unknown type unchanged", async () => {
    const store = makeStore();
    const log = await store.create("one");
    const unknown = {
      ...message(1),
      type: "future.thing",
      data: { deep: [{ a: null }], "\u2028": "\u2029\ud83d\ude00" },
    };
    await log.append(unknown as unknown as SessionEvent, barrier);
    await log.close();
    expect((await store.read("one")).events).toEqual([unknown]);
  });

  test("a store lists sessions newest first, with the summary that was written or one made from the log", async () => {
    const store = makeStore();
    const summary: SessionSummary = {
      sessionId: "told",
      cwd: "/a: b #c",
      gitRoot: "/a",
      repository: "o/r",
      branch: "main",
      name: 'a "name"\n- with: all',
      title: "\u2028 'x' {}",
      model: "m",
      createdAt: "2026-01-01T00:00:00.000Z",
      updatedAt: "2026-01-02T00:00:00.000Z",
      turns: 3,
      costUsd: null,
    };
    const told = await store.create("told");
    await told.append(message(1), barrier);
    await told.writeSummary(summary);
    await told.close();
    await new Promise((resolve) => setTimeout(resolve, 15));
    const log = await store.create("untold");
    const start = {
      sessionId: "untold",
      version: 1,
      producer: "p",
      copilotVersion: "1",
      startTime: "2026-01-03T00:00:00.000Z",
    };
    const context = { cwd: "/work", branch: "b" };
    await log.append(
      { ...message(1), type: "session.start", data: { ...start, selectedModel: "m2", context } },
      barrier,
    );
    await log.append(message(2, "do  this\nnow"), barrier);
    await log.append({ ...message(3), type: "assistant.turn_start", data: { turnId: "0" } }, barrier);
    await log.close();
    const listed = await store.list();
    expect(listed).toEqual([
      {
        sessionId: "untold",
        cwd: "/work",
        branch: "b",
        title: "do this now",
        model: "m2",
        createdAt: "2026-01-03T00:00:00.000Z",
        updatedAt: expect.any(String),
        turns: 1,
      },
      summary,
    ]);
    expect(await store.ids()).toEqual(["untold", "told"]);
  });

  test("a store has a new revision after every change", async () => {
    const store = makeStore();
    const log = await store.create("one");
    const revisions = new Set<string | undefined>();
    for (const event of messages(4)) {
      await log.append(event, barrier);
      revisions.add(await store.revision("one"));
      expect(await store.revisions()).toMatchObject([{ sessionId: "one", revision: await store.revision("one") }]);
    }
    expect(revisions.size).toBe(4);
    await log.close();
  });

  test("a store stores the same bytes once and returns them", async () => {
    const store = makeStore();
    const log = await store.create("one");
    const data = Uint8Array.from([1, 2, 3, 0, 255]);
    const first = await log.writeAsset(data, "png");
    const second = await log.writeAsset(Uint8Array.from(data), ".jpg");
    expect(second).toEqual(first);
    expect(first.assetId).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(first.path).toMatch(/(records|assets)\/[0-9a-f]{64}\.png$/);
    expect(Array.from((await log.readAsset(first.assetId)) ?? [])).toEqual(Array.from(data));
    expect(await log.readAsset("sha256:../../etc/passwd")).toBeUndefined();
    await log.append(message(1), barrier);
    await log.close();
  });

  test("a store numbers the files kept for large outputs and cleans their names", async () => {
    const store = makeStore();
    const log = await store.create("one");
    const paths = [await log.writeFile("out put.txt", "a"), await log.writeFile("../../x", "b")];
    const folder = log.clientFiles ? `${log.clientFiles.directory}/temp` : `${log.directory}/records`;
    expect(paths).toEqual([`${folder}/1-out_put.txt`, `${folder}/2-_.._x`]);
    expect(await Promise.all(paths.map((path) => log.readFile(path)))).toEqual(["a", "b"]);
    await log.close();
  });

  test("a store removes a session with all its files", async () => {
    const store = makeStore();
    await filled(store, "one", 2);
    await filled(store, "two", 2);
    await store.remove("one");
    expect(await store.ids()).toEqual(["two"]);
    await filled(store, "one", 1);
    expect((await store.read("one")).events).toEqual(messages(1));
  });
});
