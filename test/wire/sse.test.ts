import { expect, test } from "vitest";
import { type SseEvent, sseReader } from "../../src/model/wire/transport/sse.ts";

function read(...pieces: Uint8Array[]): SseEvent[] {
  const reader = sseReader("test");
  const events = pieces.flatMap((piece) => [...reader.feed(piece)].flat());
  return [...events, ...reader.end()].map(({ event, data }) => ({ event, data }));
}

test.each(["\n", "\r", "\r\n"])(
  "an event of several lines that end with %j is one event, wherever it is split",
  (end) => {
    const lines = [
      ": hi",
      "event: ä",
      "data: one",
      "data:two",
      "id: 1",
      "",
      "data",
      "data: 三",
      "",
      "retry: x",
      "data: last",
      "",
    ];
    const bytes = new TextEncoder().encode(lines.join(end));
    const expected = [
      { event: "ä", data: "one\ntwo" },
      { event: undefined, data: "\n三" },
      { event: undefined, data: "last" },
    ];
    expect(read(bytes)).toEqual(expected);
    for (let at = 1; at < bytes.length; at++)
      expect(read(bytes.subarray(0, at), bytes.subarray(at)), `${at}`).toEqual(expected);
  },
);

test("a line of a stream that was cut off is not an event", () => {
  expect(read(new TextEncoder().encode('data: {"a":1}\n\ndata: {"b":'))).toEqual([
    { event: undefined, data: '{"a":1}' },
  ]);
});
