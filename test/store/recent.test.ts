import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { readRecent } from "../../src/store/recent.ts";
import { encodeLog, messages, temporaryFolder } from "./support.ts";

const isFifth = ({ id }: SessionEvent): boolean => Number(id.split("-")[1]) % 5 === 0;
const rewound = (n: number): SessionEvent => ({
  ...{ id: `event-${n}`, timestamp: "2026-01-01T00:00:00.000Z", parentId: null },
  ...{ type: "troupe.rewound", data: { upToEventId: "event-3" } as never },
});

it("the reader of recent events reads those since the last request, and skips logs that need a full read", async () => {
  const path = join(temporaryFolder(), "events.jsonl");
  const read = (bytes: Buffer, minLogBytes = 1) => {
    writeFileSync(path, bytes);
    return readRecent(path, isFifth, minLogBytes);
  };
  const events = messages(12);
  const lines = encodeLog(events);
  const whole = Buffer.concat(lines);
  expect(await read(whole)).toEqual({ events: events.slice(9), before: 9 });
  expect(await read(whole, whole.length + 1)).toBeUndefined();
  expect(await read(Buffer.concat(lines.slice(0, 4)))).toBeUndefined();
  expect(await read(whole.subarray(0, -9))).toBeUndefined();
  const torn = Buffer.from(whole);
  torn.writeUInt8(0x21, torn.length - 60);
  expect(await read(torn)).toBeUndefined();
  expect(await read(Buffer.concat(encodeLog([...events, rewound(13)])))).toBeUndefined();
  expect(await read(Buffer.concat([...lines.slice(0, 6), ...lines.slice(7)]))).toBeUndefined();

  // Longer than the first piece that is read.
  const long = messages(9).map((event) => ({ ...event, data: { content: "y".repeat(600_000) } }) as SessionEvent);
  expect(await read(Buffer.concat(encodeLog(long)))).toEqual({ events: long.slice(4), before: 4 });
});
