import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { deferred } from "../../src/lib/deferred.ts";
import { memoryProvider } from "./memory-provider.ts";
import { clientStoreOf, encodeLog, idsOf, message, messages } from "./support.ts";

const barrier = { barrier: true };
const LOG = "one:/state/events.jsonl";

test("a log at the client has the lines of a log on disk, and sends concurrent appends together", async () => {
  const provider = memoryProvider();
  const log = await clientStoreOf(provider).create("one");
  await Promise.all(messages(50).map((event) => log.append(event, barrier)));
  await log.close();
  expect(provider.files.get(LOG)).toBe(Buffer.concat(encodeLog(messages(50))).toString());
  expect(provider.requests.filter((request) => request.startsWith("append"))).toHaveLength(1);
  expect(provider.files.get("one:/state/checkpoints/index.md")).toContain("# Checkpoints");
});

test("an append at the client is acknowledged after the client has answered, not before", async () => {
  const provider = memoryProvider();
  const log = await clientStoreOf(provider).create("one");
  const { promise: answered, resolve: answer } = deferred<void>();
  provider.before = (request) => (request.startsWith("append") ? answered : undefined);
  let isDone = false;
  const appended = log.append(message(1), { barrier: false }).then(() => {
    isDone = true;
  });
  await expect.poll(() => provider.requests.at(-1)).toBe("append /state/events.jsonl");
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(isDone).toBe(false);
  answer();
  await appended;
  await log.close();
});

test("a failed append at the client refuses others until recover removes what was not acknowledged", async () => {
  const provider = memoryProvider();
  const store = clientStoreOf(provider);
  const log = await store.create("one");
  await log.append(message(1), barrier);
  const acknowledged = provider.files.get(LOG) ?? "";
  provider.before = (request) => {
    if (!request.startsWith("append")) return;
    provider.files.set(LOG, `${acknowledged}{"id":"half`);
    throw new Error("the cable was pulled");
  };
  const failure = { kind: "storage", message: expect.stringContaining("the cable was pulled") };
  await expect(log.append(message(2), barrier)).rejects.toMatchObject(failure);
  await expect(log.append(message(2), barrier)).rejects.toMatchObject(failure);
  provider.before = () => undefined;
  await log.repairAfterFailedWrite();
  expect(provider.files.get(LOG)).toBe(acknowledged);
  await log.append(message(2), barrier);
  await log.close();
  expect(await store.read("one")).toEqual({ events: messages(2), removed: [], damage: [] });
});

test("recovery refuses a log at the client that another program has changed", async () => {
  const provider = memoryProvider();
  const log = await clientStoreOf(provider).create("one");
  await log.append(message(1), barrier);
  provider.before = (request) => {
    if (request.startsWith("append")) throw new Error("no");
  };
  await expect(log.append(message(2), barrier)).rejects.toMatchObject({ kind: "storage" });
  provider.before = () => undefined;
  provider.files.set(LOG, "");
  await expect(log.repairAfterFailedWrite()).rejects.toMatchObject({
    kind: "storage",
    message: expect.stringContaining("was changed"),
  });
  await log.close();
});

test("a torn end of a log at the client is moved aside, and the rest is used and continued", async () => {
  const provider = memoryProvider();
  const store = clientStoreOf(provider);
  const log = await store.create("one");
  for (const event of messages(3)) await log.append(event, barrier);
  await log.close();
  provider.files.set(LOG, `${provider.files.get(LOG)?.slice(0, -30)}`);
  const again = await store.open("one");
  expect(idsOf(again.events)).toEqual(idsOf(messages(2)));
  expect(again.damage).toMatchObject([{ kind: "torn_tail", savedTo: expect.stringContaining("/state/damaged/") }]);
  await again.append(message(4), barrier);
  await again.close();
  expect(idsOf((await store.read("one")).events)).toEqual(["event-1", "event-2", "event-4"]);
});

test("a large output is stored at the client, and as a copy where local tools find it", async () => {
  const provider = memoryProvider();
  const store = clientStoreOf(provider);
  const log = await store.create("one");
  const path = await log.writeFile("out.txt", "much");
  expect(provider.files.get(`one:${path}`)).toBe("much");
  const copy = log.clientFiles?.copyOf(path) ?? "";
  expect(readFileSync(copy, "utf8")).toBe("much");
  await log.append(message(1), barrier);
  await log.close();
  const again = await store.open("one");
  expect(await again.writeFile("out.txt", "more")).toBe("/state/temp/2-out.txt");
  await again.close();
  await store.remove("one");
  expect([...provider.files.keys()]).toEqual([]);
  expect(existsSync(copy)).toBe(false);
});

test("paths at the client are joined by the conventions of its folder", async () => {
  const provider = { ...memoryProvider(), folder: "C:\\state", conventions: "windows" as const };
  const log = await clientStoreOf(provider).create("one");
  expect(log.clientFiles?.nameOf("checkpoints/001.md")).toBe("C:\\state\\checkpoints\\001.md");
});
