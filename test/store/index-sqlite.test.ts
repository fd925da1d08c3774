import { readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { describe, expect, test } from "vitest";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { type SearchQuery, type SessionIndex, sessionIndex } from "../../src/store/index/index-sqlite.ts";
import type { Store } from "../../src/store/store.ts";
import { memoryStore } from "../support/memory-store.ts";
import { message, temporaryFolder } from "./support.ts";

async function filledStore(): Promise<Store> {
  const store = memoryStore();
  for (const [sessionId, words] of [
    ["first", "green apple"],
    ["second", 'a "red" pear'],
    ["third", "blue plum"],
  ] as const) {
    const log = await store.create(sessionId);
    await log.append(message(1, `find the ${words}`), { barrier: true });
    const reply = { messageId: "m", content: `found ${words} here`, toolRequests: [] };
    await log.append({ ...message(2), type: "assistant.message", data: reply }, { barrier: true });
    await log.append(message(3, "thanks"), { barrier: true });
    await log.close();
  }
  return store;
}

const search = (index: SessionIndex, words: string, more: Partial<SearchQuery> = {}) =>
  index.search({ words, ...more });

async function contentOf(index: SessionIndex) {
  return { pears: await search(index, "pea red"), thanks: await search(index, "thanks") };
}

const found = (words: { changed?: number; left?: number } = {}) => ({ changed: 0, left: 0, failed: [], ...words });

test("the index finds turns by the beginnings of their words", async () => {
  const store = await filledStore();
  const index = sessionIndex({ path: join(temporaryFolder(), "index.db"), store, disk: nodeDisk });
  expect(await index.refresh()).toEqual(found({ changed: 3 }));
  expect(await search(index, "pea RED")).toEqual([
    {
      sessionId: "second",
      source: "turn",
      number: 1,
      snippet: 'find the a "»red«" »pear«\nfound a "»red«" »pear« here',
      timestamp: message(1).timestamp,
      cwd: "",
      title: 'find the a "red" pear',
    },
  ]);
  expect(await search(index, '"red" OR NOT (')).toEqual([]);
  expect(await search(index, " ( ")).toEqual([]);
  expect(await search(index, "found", { limit: 2 })).toHaveLength(2);
  await index.close();
});

test("the index reads only what changed, and removes deleted sessions", async () => {
  const store = await filledStore();
  const index = sessionIndex({ path: join(temporaryFolder(), "index.db"), store, disk: nodeDisk });
  await index.refresh();
  expect(await index.refresh()).toEqual(found());
  const log = await store.open("first");
  await log.append(message(4, "a mango too"), { barrier: true });
  await log.close();
  await store.remove("third");
  expect(await index.refresh()).toEqual(found({ changed: 2 }));
  expect(await search(index, "mango")).toMatchObject([{ sessionId: "first", source: "turn", number: 3 }]);
  expect(await search(index, "apple")).toHaveLength(1);
  expect(await search(index, "plum")).toEqual([]);
  await index.close();
});

test("the index waits while another process writes it", async () => {
  const path = join(temporaryFolder(), "index.db");
  const store = await filledStore();
  const index = sessionIndex({ path, store, disk: nodeDisk });
  await index.refresh();
  const other = new DatabaseSync(path);
  other.exec("BEGIN EXCLUSIVE");
  setTimeout(() => {
    other.exec("COMMIT");
    other.close();
  }, 150);
  expect(await search(index, "pear")).toHaveLength(1);
  await index.close();
});

describe("an index", () => {
  const spoils: Record<string, (path: string) => void> = {
    deleted: (path) => rmSync(path),
    truncated: (path) => truncateSync(path, Math.floor(statSync(path).size / 2)),
    "cut to nothing": (path) => truncateSync(path, 0),
    garbage: (path) => writeFileSync(path, "this is not a database ".repeat(1000)),
    "scribbled over": (path) => {
      const bytes = readFileSync(path);
      writeFileSync(path, bytes.fill(0xa5, 5000, bytes.length - 100));
    },
    "of another version": (path) => {
      const database = new DatabaseSync(path);
      database.exec("DROP TABLE sessions; PRAGMA user_version = 99");
      database.close();
    },
  };

  test.each(Object.entries(spoils))(
    "the index is rebuilt with the same content when it is %s",
    async (_name, spoil) => {
      const store = await filledStore();
      const path = join(temporaryFolder(), "index.db");
      const before = sessionIndex({ path, store, disk: nodeDisk });
      await before.refresh();
      const expected = await contentOf(before);
      await before.close();
      spoil(path);
      const after = sessionIndex({ path, store, disk: nodeDisk });
      expect(await after.refresh()).toMatchObject({ left: 0, failed: [] });
      expect(await contentOf(after)).toEqual(expected);
      await after.close();
      const third = sessionIndex({ path, store, disk: nodeDisk });
      expect(await third.refresh()).toEqual(found());
      await third.close();
    },
  );

  test("the index works when its file cannot be written", async () => {
    const store = await filledStore();
    const file = join(temporaryFolder(), "file");
    writeFileSync(file, "not a folder");
    const index = sessionIndex({ path: join(file, "index.db"), store, disk: nodeDisk });
    await index.refresh();
    expect(await search(index, "pear")).toHaveLength(1);
    await index.close();
  });
});
