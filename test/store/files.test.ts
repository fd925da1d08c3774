import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { message, messages, realStore, temporaryFolder } from "./support.ts";

const barrier = { barrier: true };

test("a line is the event itself with one more member at its end", async () => {
  const store = realStore(temporaryFolder());
  const log = await store.create("one");
  for (const event of messages(2)) await log.append(event, barrier);
  await log.close();
  const lines = readFileSync(join(log.directory, "events.jsonl"), "utf8").trimEnd().split("\n");
  const [first, second] = lines.map((line) => JSON.parse(line));
  expect(first).toEqual({
    ...message(1),
    troupe: { seq: 1, prev: "00000000", crc: expect.stringMatching(/^[0-9a-f]{8}$/) },
  });
  expect(second).toEqual({ ...message(2), troupe: { seq: 2, prev: first.troupe.crc, crc: expect.any(String) } });
  expect(lines[0]?.startsWith(JSON.stringify(message(1)).slice(0, -1))).toBe(true);
});

test("grep can count the model calls of a log", async () => {
  const store = realStore(temporaryFolder());
  const log = await store.create("one");
  for (let turn = 0; turn < 5; turn++) {
    await log.append({ ...message(turn), type: "assistant.turn_start", data: { turnId: `${turn}` } }, barrier);
    await log.append({ ...message(turn), type: "assistant.turn_end", data: { turnId: `${turn}` } }, barrier);
  }
  await log.close();
  const count = execFileSync("grep", ["-c", "assistant.turn_start", join(log.directory, "events.jsonl")]);
  expect(count.toString().trim()).toBe("5");
});

test.each([0o000, 0o022, 0o277])("folders are 0700 and files 0600 under umask %o", async (mask) => {
  const root = join(temporaryFolder(), "deep", "root");
  const before = process.umask(mask);
  onTestFinished(() => void process.umask(before));
  const log = await realStore(root).create("one");
  await log.append(message(1), barrier);
  await log.writeFile("a", "b");
  await log.writeAsset(Uint8Array.of(1), "png");
  await log.writeSummary({ sessionId: "one", cwd: "/", createdAt: "a", updatedAt: "b", turns: 0 });
  const paths = [root, ...readdirSync(root, { recursive: true }).map((name) => join(root, String(name)))];
  const modes = paths.map((path) => ({
    path,
    mode: statSync(path).mode & 0o777,
    isFolder: statSync(path).isDirectory(),
  }));
  expect(modes.length).toBe(9);
  expect(modes.filter(({ mode, isFolder }) => mode !== (isFolder ? 0o700 : 0o600))).toEqual([]);
  await log.close();
});

test("a session has no file before the first append, and no lock after its end", async () => {
  const root = join(temporaryFolder(), "root");
  const log = await realStore(root).create("one");
  expect(existsSync(root)).toBe(false);
  await log.append(message(1), barrier);
  expect(readdirSync(log.directory).sort()).toEqual(["events.jsonl", "lock"]);
  await log.close();
  expect(readdirSync(log.directory)).toEqual(["events.jsonl"]);
});

test("an asset whose bytes were changed is refused", async () => {
  const log = await realStore(temporaryFolder()).create("one");
  const { assetId, path } = await log.writeAsset(Buffer.from("picture"), "png");
  writeFileSync(path, "another");
  expect(await log.readAsset(assetId)).toBeUndefined();
  await log.close();
});

test("a log that another program made longer is not overwritten", async () => {
  const store = realStore(temporaryFolder());
  const created = await store.create("one");
  await created.append(message(1), barrier);
  await created.close();
  const log = await store.open("one");
  const path = join(log.directory, "events.jsonl");
  writeFileSync(path, `${JSON.stringify(message(2))}\n`, { flag: "a" });
  const failure = { kind: "storage", message: `${path} was changed by another program.` };
  await expect(log.append(message(3), barrier)).rejects.toMatchObject(failure);
  await expect(log.repairAfterFailedWrite()).rejects.toMatchObject(failure);
  await log.close();
  expect((await store.read("one")).events).toEqual(messages(2));
});

test("a summary edited by hand is read, and a broken one is replaced by one made from the log", async () => {
  const store = realStore(temporaryFolder());
  for (const sessionId of ["edited", "broken"]) {
    const log = await store.create(sessionId);
    await log.append(message(1, "the task"), barrier);
    await log.close();
    utimesSync(join(log.directory, "events.jsonl"), 1000, 1000);
    const edited =
      "cwd: /plain path\nname: by hand # comment\ncreated_at: '2026-01-01'\nupdated_at: \"2026-01-02\"\nturns: 2\n";
    writeFileSync(join(log.directory, "workspace.yaml"), sessionId === "edited" ? edited : "}{ not: [yaml");
  }
  expect(await store.list()).toEqual([
    {
      sessionId: "broken",
      cwd: "",
      title: "the task",
      createdAt: "2026-01-01T00:00:00.000Z",
      updatedAt: "1970-01-01T00:16:40.000Z",
      turns: 0,
    },
    {
      sessionId: "edited",
      cwd: "/plain path",
      name: "by hand",
      createdAt: "2026-01-01",
      updatedAt: "2026-01-02",
      turns: 2,
    },
  ]);
});
