import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { checkLog } from "./checker.ts";
import { encodeLog, realStore, temporaryFolder } from "./support.ts";

function session(): SessionEvent[] {
  const steps: Pick<SessionEvent, "type" | "data">[] = [
    { type: "user.message", data: { content: "do it" } },
    { type: "assistant.turn_start", data: { turnId: "0" } },
    {
      type: "assistant.message",
      data: {
        messageId: "m",
        content: "",
        toolRequests: [
          { toolCallId: "c1", name: "view" },
          { toolCallId: "c2", name: "view" },
        ],
      },
    },
    { type: "tool.execution_start", data: { toolCallId: "c1", toolName: "view" } },
    { type: "tool.execution_start", data: { toolCallId: "c2", toolName: "view" } },
    { type: "tool.execution_complete", data: { toolCallId: "c2", success: true } },
    { type: "tool.execution_complete", data: { toolCallId: "c1", success: false } },
    { type: "assistant.turn_end", data: { turnId: "0" } },
    { type: "session.task_complete", data: { success: true } },
  ];
  return chain(steps as SessionEvent[]);
}

function chain(events: readonly SessionEvent[]): SessionEvent[] {
  return events.map((event, index) => ({
    ...event,
    id: `e${index}`,
    timestamp: "2026-01-01T00:00:00.000Z",
    parentId: index === 0 ? null : `e${index - 1}`,
  }));
}

const bytesOf = (events: readonly SessionEvent[]): Buffer => Buffer.concat(encodeLog(events));
const cut = (from: number, count = 1): SessionEvent[] => chain(session().toSpliced(from, count));
const repeat = (index: number): SessionEvent[] => {
  const events = session();
  return chain(events.toSpliced(index, 0, events[index] as SessionEvent));
};

test("a log that the store wrote has no problem for the checker", async () => {
  const log = await realStore(temporaryFolder()).create("one");
  await Promise.all(session().map((event) => log.append(event, { barrier: true })));
  await log.close();
  expect(checkLog(readFileSync(join(log.directory, "events.jsonl")))).toEqual([]);
});

test.each<[string, Buffer, string[]]>([
  [
    "a lost record",
    Buffer.concat(encodeLog(session()).toSpliced(1, 1)),
    ["record 3 follows 1", "event e2 has the wrong parent", "turn 0 ends without a beginning"],
  ],
  ["a torn end", bytesOf(session()).subarray(0, -1), ["the last line is torn"]],
  ["a changed byte", Buffer.from(bytesOf(session()).toString().replace("do it", "do if")), ["line 1: wrong checksum"]],
  [
    "a record written twice",
    Buffer.concat(encodeLog(session()).toSpliced(1, 0, encodeLog(session())[0] ?? Buffer.alloc(0))),
    ["record 1 follows 1", "event e0 is there twice", "event e0 has the wrong parent"],
  ],
  ["garbage", Buffer.concat([bytesOf(session()), Buffer.from("xx\n")]), ["line 10: not JSON"]],
  ["a result lost", bytesOf(cut(5)), ["call c2 has no result"]],
  ["a start lost", bytesOf(cut(3)), ["call c1 ended without a start"]],
  ["a call run twice", bytesOf(repeat(3)), ["call c1 started twice"]],
  ["two results", bytesOf(repeat(6)), ["call c1 ended twice"]],
  ["a call nobody asked for", bytesOf(cut(2)), ["call c1 was never asked for", "call c2 was never asked for"]],
  ["a turn without an end", bytesOf(cut(7)), ["turn 0 never ends"]],
  ["two outcomes", bytesOf(repeat(8)), ["a second outcome: session.task_complete"]],
  [
    "a stored event that should not be",
    bytesOf(session().map((event, index) => (index === 4 ? { ...event, ephemeral: true } : event))),
    ["event e4 should not be stored"],
  ],
  [
    "a wrong parent",
    bytesOf(session().map((event, index) => (index === 4 ? { ...event, parentId: "e0" } : event))),
    ["event e4 has the wrong parent"],
  ],
])("the checker of logs notices %s", (_name, bytes, expected) => {
  expect(checkLog(bytes)).toEqual(expected);
});
