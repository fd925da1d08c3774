import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { Damage } from "../../src/store/damage.ts";
import { readLog } from "../../src/store/log/read-log.ts";
import type { SessionLog } from "../../src/store/store.ts";
import { encodeLog, hastyDisk, idsOf, message, messages, realStore, seeded, temporaryFolder } from "./support.ts";

const count = 8;
const lines = encodeLog(messages(count));
const whole = Buffer.concat(lines);
const allIds = idsOf(messages(count));
const without = (...lost: number[]): string[] => allIds.filter((_, index) => !lost.includes(index + 1));

function place(folder: string, bytes: Buffer): string {
  const directory = join(folder, "session-state", "one");
  mkdirSync(directory, { recursive: true });
  const path = join(directory, "events.jsonl");
  writeFileSync(path, bytes);
  return path;
}

interface Reopened {
  ids: string[];
  damage: Damage[];
  directory: string;
  bytes: Buffer;
}

/** Opens the log, appends one event, and checks that from then on the log is as good as any. */
async function openAndContinue(bytes: Buffer): Promise<Reopened> {
  const folder = temporaryFolder();
  const path = place(folder, bytes);
  const store = realStore(folder, { disk: hastyDisk });
  const log = await store.open("one");
  const { damage, directory } = log;
  const ids = idsOf(log.events);
  await log.append(message(99), { barrier: true });
  await log.close();

  const again = await reopen(store.open("one"));
  const third = await reopen(store.open("one"));
  expect(again.ids).toEqual([...ids, "event-99"]);
  expect(third).toEqual(again);
  const ofMiddle = damage.filter((found) => found.savedTo === undefined);
  expect(again.damage).toEqual(ofMiddle);
  return { ids, damage: [...damage], directory, bytes: readFileSync(path) };
}

async function reopen(opening: Promise<SessionLog>): Promise<{ ids: string[]; damage: readonly Damage[] }> {
  const log = await opening;
  await log.close();
  return { ids: idsOf(log.events), damage: log.damage };
}

const kinds = (damage: readonly Damage[]): string[] => damage.map((found) => found.kind);

describe("a log with a damaged end", () => {
  test("a log cut anywhere in its last three records loses at most the torn record", async () => {
    const folder = temporaryFolder();
    const cutFrom = whole.length - Buffer.concat(lines.slice(-3)).length;
    const ends = lines.map((_, index) => Buffer.concat(lines.slice(0, index + 1)).length);
    for (let length = cutFrom; length <= whole.length; length++) {
      const kept = ends.filter((end) => end - 1 <= length).length;
      const start = ends[kept - 1] ?? 0;
      const torn = Math.max(0, length - start);
      const content = await readLog(place(folder, whole.subarray(0, length)));
      expect(idsOf(content.events)).toEqual(allIds.slice(0, kept));
      expect(content.tail.kind).toBe(torn > 0 ? "torn" : ends.includes(length) ? "clean" : "open");
      if (!process.env.TROUPE_SLOW && length % 7 !== 0 && !ends.includes(length) && !ends.includes(length + 1))
        continue;
      const result = await openAndContinue(whole.subarray(0, length));
      expect(result.ids).toEqual(allIds.slice(0, kept));
      expect(kinds(result.damage)).toEqual(torn > 0 ? ["torn_tail"] : []);
      if (torn === 0) continue;
      expect(result.damage).toMatchObject([{ line: kept + 1, offset: start, bytes: torn }]);
      expect(readFileSync(result.damage[0]?.savedTo ?? "")).toEqual(whole.subarray(start, length));
    }
  });

  test.each<[string, Buffer, string[]]>([
    ["4 KiB of nulls", Buffer.concat([whole, Buffer.alloc(4096)]), ["null_bytes"]],
    ["nulls in place of the last newline", Buffer.concat([whole.subarray(0, -1), Buffer.alloc(64)]), ["null_bytes"]],
    ["garbage", Buffer.concat([whole, Buffer.from([0xff, 0xfe, 7, 200, 1])]), ["torn_tail"]],
    ["garbage right after the last record", Buffer.concat([whole.subarray(0, -1), Buffer.from("xyz")]), ["torn_tail"]],
    ["half of the last line a second time", Buffer.concat([whole, (lines[7] ?? whole).subarray(0, 60)]), ["torn_tail"]],
  ])(
    "a log with a damaged end keeps every record before %s, and saves the damaged bytes",
    async (_name, bytes, expected) => {
      const result = await openAndContinue(bytes);
      expect(result.ids).toEqual(allIds);
      expect(kinds(result.damage)).toEqual(expected);
      const saved = readFileSync(result.damage[0]?.savedTo ?? "");
      expect(bytes.subarray(-saved.length)).toEqual(saved);
      expect(statSync(result.damage[0]?.savedTo ?? "").mode & 0o777).toBe(0o600);
    },
  );

  test("a log with a damaged end saves different torn bytes of the same place separately", async () => {
    const folder = temporaryFolder();
    const store = realStore(folder, { disk: hastyDisk });
    for (const torn of ['{"a":1', '{"b":2', '{"a":1']) {
      place(folder, Buffer.concat([whole, Buffer.from(torn)]));
      await (await store.open("one")).close();
    }
    const damaged = join(folder, "session-state", "one", "damaged");
    expect(readdirSync(damaged)).toEqual([`${whole.length}-2.bin`, `${whole.length}.bin`]);
  });
});

describe("a log with a damaged middle", () => {
  const line = (index: number): Buffer => lines[index - 1] ?? Buffer.alloc(0);
  const rest = (from: number, to = count): Buffer => Buffer.concat(lines.slice(from - 1, to));
  const newline = Buffer.from("\n");

  test.each<[string, Buffer, string[], string[]]>([
    ["two records joined", Buffer.concat([rest(1, 3), line(4).subarray(0, -1), rest(5)]), allIds, ["joined"]],
    [
      "a byte between two records",
      Buffer.concat([rest(1, 3), line(4).subarray(0, -1), Buffer.from("J"), rest(5)]),
      allIds,
      ["joined"],
    ],
    [
      "half of a line before the whole line",
      Buffer.concat([rest(1, 3), line(4).subarray(0, 70), rest(4)]),
      allIds,
      ["joined"],
    ],
    [
      "half of a line instead of the line",
      Buffer.concat([rest(1, 3), line(4).subarray(0, 70), rest(5)]),
      without(4),
      ["joined"],
    ],
    ["nulls before a line", Buffer.concat([rest(1, 3), Buffer.alloc(4096), rest(4)]), allIds, ["null_bytes"]],
    [
      "nulls instead of a line",
      Buffer.concat([rest(1, 3), Buffer.alloc(100), newline, rest(5)]),
      without(4),
      ["null_bytes"],
    ],
    ["garbage between lines", Buffer.concat([rest(1, 3), Buffer.from("garbage\n"), rest(4)]), allIds, ["not_json"]],
    ["a missing line", Buffer.concat([rest(1, 3), rest(5)]), without(4), ["sequence"]],
    ["the first line missing", rest(2), without(1), ["sequence"]],
    ["a repeated line", Buffer.concat([rest(1, 4), rest(4)]), allIds, ["sequence"]],
    ["a repeated block", Buffer.concat([rest(1, 4), rest(2)]), allIds, ["sequence", "sequence", "sequence"]],
    ["empty lines", Buffer.concat([rest(1, 3), newline, newline, rest(4)]), allIds, []],
    [
      "a line of another program",
      Buffer.concat([rest(1, 3), Buffer.from('{"id":"x","type":"y","data":{}}\n'), rest(4)]),
      [...allIds.slice(0, 3), "x", ...allIds.slice(3)],
      ["checksum"],
    ],
    ["a changed word", Buffer.from(whole.toString().replace('"message 5"', '"massage 5"')), without(5), ["checksum"]],
    [
      "a line re-written with spaces",
      Buffer.from(whole.toString().replace('"crc":', '"crc": ')),
      without(1),
      ["checksum"],
    ],
  ])(
    "a log with a damaged middle loses only the damaged part with %s, reports it and is not changed",
    async (_name, bytes, ids, expected) => {
      const result = await openAndContinue(bytes);
      expect(result.ids).toEqual(ids);
      expect(kinds(result.damage)).toEqual(expected);
      expect(result.bytes.subarray(0, bytes.length)).toEqual(bytes);
      expect(existsSync(join(result.directory, "damaged"))).toBe(false);
    },
  );

  test("a log written by another program only is read without a problem", async () => {
    const plain = Buffer.from(
      messages(3)
        .map((event) => `${JSON.stringify(event)}\n`)
        .join(""),
    );
    const result = await openAndContinue(plain);
    expect({ ids: result.ids, damage: result.damage }).toEqual({ ids: ["event-1", "event-2", "event-3"], damage: [] });
  });

  test("a damaged log never yields an event from inside another one, even when it would verify", async () => {
    const [inner] = encodeLog([message(1, "forged")]);
    const outer = { ...message(2), data: { content: "x", nested: JSON.parse(inner?.toString() ?? "") } };
    const bytes = Buffer.concat(encodeLog([message(1), outer as never, message(3)]));
    const at = bytes.indexOf('"content":"x"') + 11;
    bytes[at] = 0x79;
    const result = await openAndContinue(bytes);
    expect(result.ids).toEqual(["event-1", "event-3"]);
  });

  test("a line that is too long is skipped in the middle and at the end of a log, whatever the chunk size", async () => {
    const long = Buffer.alloc(5000, "x");
    const bytes = Buffer.concat([rest(1, 3), long, newline, rest(4), long]);
    const path = place(temporaryFolder(), bytes);
    for (const chunkBytes of [16, 333, 4096, 1024 * 1024]) {
      const content = await readLog(path, { chunkBytes, maxLineBytes: 2000 });
      expect(idsOf(content.events)).toEqual(allIds);
      expect(content.damage).toMatchObject([{ kind: "too_long", line: 4, offset: rest(1, 3).length, bytes: 5000 }]);
      expect(content.tail).toMatchObject({ kind: "torn", damage: { kind: "too_long", bytes: 5000 } });
      expect(content.length).toBe(bytes.length - 5000);
    }
  });

  test("a damaged log gives the same result for any chunk size", async () => {
    const bytes = Buffer.concat([rest(1, 3), line(4).subarray(0, 70), rest(4), Buffer.alloc(9)]);
    const path = place(temporaryFolder(), bytes);
    const expected = await readLog(path);
    for (let chunkBytes = 1; chunkBytes < 700; chunkBytes += 13) {
      expect(await readLog(path, { chunkBytes })).toEqual(expected);
    }
  });
});

const flips = process.env.TROUPE_SLOW ? 2000 : 300;

test(`every one of ${flips} flipped bits is noticed and costs at most its record`, async () => {
  const path = place(temporaryFolder(), whole);
  const random = seeded(7);
  for (let round = 0; round < flips; round++) {
    const at = Math.floor(random() * whole.length);
    const bytes = Buffer.from(whole);
    bytes[at] = (bytes[at] ?? 0) ^ (1 << Math.floor(random() * 8));
    writeFileSync(path, bytes);
    const content = await readLog(path);
    const hit = whole.subarray(0, at).filter((byte) => byte === 0x0a).length + 1;
    const isNewline = whole[at] === 0x0a;
    const context = `bit at ${at}, record ${hit}`;
    expect(idsOf(content.events), context).toEqual(isNewline ? allIds : without(hit));
    expect(content.damage.length + (content.tail.kind === "torn" ? 1 : 0), context).toBeGreaterThan(0);
    const lines = [...content.damage, ...(content.tail.kind === "torn" ? [content.tail.damage] : [])];
    expect(
      lines.every((found) => found.line === hit || found.line === hit + 1),
      context,
    ).toBe(true);
  }
});

test("line separators of other programs stay inside their line of the log", async () => {
  const folder = temporaryFolder();
  const store = realStore(folder, { disk: hastyDisk });
  const log = await store.create("one");
  const event = message(1, "a\u2028b\u2029c\u0085d\r\ne\0f");
  await log.append(event, { barrier: true });
  await log.close();
  const text = readFileSync(join(log.directory, "events.jsonl"), "utf8");
  expect(text.split("\n")).toHaveLength(2);
  expect(await store.read("one")).toEqual({ events: [event], removed: [], damage: [] });
});

describe("a log that is deleted while it is open", () => {
  test("a log that was deleted while open refuses the next event with that reason", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    onTestFinished(() => void vi.useRealTimers());
    const log = await realStore(temporaryFolder(), { disk: hastyDisk }).create("one");
    await log.append(message(1), { barrier: true });
    rmSync(log.directory, { recursive: true });
    // A lock is checked again only some seconds after the last check.
    vi.setSystemTime(Date.now() + 60_000);
    await expect(log.append(message(2), { barrier: true })).rejects.toThrow(/The log of session one was deleted: /);
    await log.close().catch(() => undefined);
  });
});
