/** The checker of clusters finds each defect that is seeded into a good record. */

import { describe, expect, it } from "vitest";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { encodeLog } from "../store/support.ts";
import { type ClusterRecord, check, type LineRow } from "./checker.ts";

type Draft = Pick<SessionEvent, "type"> & { readonly data: object };

const user = (content: string): Draft => ({ type: "user.message", data: { content, source: "work-w1" } });
const asks = (): Draft => ({ type: "assistant.message", data: { content: "", toolRequests: [{ toolCallId: "c" }] } });
const answer: Draft = { type: "assistant.message", data: { content: "all done", toolRequests: [] } };
const start = (toolCallId: string, token: string): Draft => ({
  type: "tool.execution_start",
  data: { toolCallId, toolName: "bash", arguments: { command: `act ${token}` } },
});
const end = (toolCallId: string, error?: object): Draft => ({
  type: "tool.execution_complete",
  data: { toolCallId, success: error === undefined, ...(error && { error }) },
});
const interrupted = { code: "interrupted", message: "interrupted" };

const task = (toolCallId: string, token: string): Draft => ({
  type: "tool.execution_start",
  data: { toolCallId, toolName: "task", arguments: { prompt: `act ${token}` } },
});
/** A worker is lost after the call of an agent, before its task has ended. Another one starts the task again. */
const agentStory = (endOfTask: Draft): readonly Draft[] => [
  ...[user("Act."), asks(), task("k1", "t1"), start("c1", "t1"), end("c1"), endOfTask, user("Continue."), asks()],
  ...[task("k2", "t1"), start("c2", "t1"), end("c2"), end("k2"), asks(), start("c3", "t2"), end("c3"), answer],
];

/** A worker is lost during call c1 and another one repeats it. */
const story: readonly Draft[] = [
  ...[user("Act."), asks(), start("c1", "t1"), end("c1", interrupted), user("Continue."), asks()],
  ...[start("c2", "t1"), end("c2"), asks(), start("c3", "t2"), end("c3"), answer],
];
const TAKEN_OVER_AT = 4;

function linesOf(drafts: readonly Draft[], session = "s1"): readonly LineRow[] {
  const events = drafts.map((draft, index) => ({
    ...{ id: `e${index + 1}`, timestamp: "2026-01-01T00:00:00.000Z" },
    parentId: index === 0 ? null : `e${index}`,
    ...draft,
  })) as SessionEvent[];
  return encodeLog(events).map((bytes, index) => ({
    ...{ session, seq: index + 1, epoch: index < TAKEN_OVER_AT - 1 ? 1 : 2 },
    line: bytes.toString("utf8").trimEnd(),
  }));
}

function good(drafts = story): ClusterRecord & { readonly effects: NonNullable<ClusterRecord["effects"]> } {
  const lines = linesOf(drafts);
  return {
    lines,
    sessions: [{ id: "s1", epoch: 2, lastSeq: lines.length }],
    work: [{ id: "w1", session: "s1", outcome: { kind: "done", answer: "all done" }, engine: ["done"] }],
    effects: [
      { session: "s1", worker: "a", token: "t1", atMs: 1_000 },
      { session: "s1", worker: "b", token: "t1", atMs: 5_000 },
      { session: "s1", worker: "b", token: "t2", atMs: 5_100 },
    ],
    takes: [
      { session: "s1", epoch: 1, holder: "a", atMs: 500 },
      { session: "s1", epoch: 2, holder: "b", atMs: 4_000 },
    ],
    renewals: [
      { worker: "a", atMs: 400, untilMs: 2_400 },
      { worker: "b", atMs: 3_900, untilMs: 5_900 },
    ],
    followed: lines,
    budgets: [{ id: "p", limit: 10, oneCall: 2, costs: [5, 5, 1] }],
    providers: [{ id: "api", limit: 2, windowMs: 1_000, requestsAtMs: [0, 10, 1_000, 1_500] }],
  };
}

const without = (index: number): readonly Draft[] => story.filter((_, other) => other !== index);
const changed = (record: ClusterRecord, more: Partial<ClusterRecord>): ClusterRecord => ({ ...record, ...more });
const lineAt = (change: (row: LineRow) => LineRow | undefined, seq: number): readonly LineRow[] =>
  good().lines.flatMap((row) => (row.seq === seq ? (change(row) ?? []) : row));

const defects: readonly (readonly [defect: string, invariant: string, record: ClusterRecord])[] = [
  ["a line is missing", "I1", changed(good(), { lines: lineAt(() => undefined, 6) })],
  ["a line is changed", "I1", changed(good(), { lines: lineAt((row) => ({ ...row, line: `${row.line} ` }), 6) })],
  [
    "a worker without a fence overwrites a line",
    "I1",
    changed(good(), { lines: lineAt((row) => ({ ...row, line: linesOf(without(2))[5]?.line ?? "" }), 6) }),
  ],
  [
    "the session counts a line that is not there",
    "I1",
    changed(good(), { sessions: [{ id: "s1", epoch: 2, lastSeq: 13 }] }),
  ],
  ["a worker that was replaced writes", "I2", changed(good(), { lines: lineAt((row) => ({ ...row, epoch: 1 }), 9) })],
  ["a message is answered twice", "I3", good([...story, answer, answer])],
  [
    "a message has no outcome",
    "I3",
    changed(good(), { work: [{ id: "w1", session: "s1", outcome: null, engine: ["done"] }] }),
  ],
  [
    "an answer is reported that the log does not have",
    "I3",
    changed(good(), { work: [{ id: "w1", session: "s1", outcome: { kind: "done", answer: "x" }, engine: ["done"] }] }),
  ],
  [
    "a session is set aside without a reason",
    "I3",
    changed(good(), { work: [{ id: "w1", session: "s1", outcome: { kind: "failed" }, engine: ["set_aside"] }] }),
  ],
  ["a call has no end", "I4", good(without(7))],
  ["a call ends twice", "I4", good([...story.slice(0, 8), end("c2"), ...story.slice(8)])],
  [
    "an effect is repeated although its call ended",
    "I5",
    good(story.map((draft, index) => (index === 3 ? end("c1") : draft))),
  ],
  ["an agent's effect is repeated although its task ended", "I5", good(agentStory(end("k1")))],
  [
    "an effect is repeated without a call",
    "I5",
    changed(good(), { effects: [...good().effects, { session: "s1", worker: "b", token: "t2", atMs: 5_200 }] }),
  ],
  [
    "a worker acts after its lease",
    "I6",
    changed(good(), { effects: good().effects.map((one, index) => (index === 0 ? { ...one, atMs: 2_500 } : one)) }),
  ],
  [
    "a worker acts in a session that it lost, with a new lease",
    "I6",
    changed(good(), {
      effects: good().effects.map((one, index) => (index === 2 ? { ...one, worker: "a" } : one)),
      renewals: [...(good().renewals ?? []), { worker: "a", atMs: 5_000, untilMs: 7_000 }],
    }),
  ],
  ["a budget is overdrawn", "I7", changed(good(), { budgets: [{ id: "p", limit: 10, oneCall: 2, costs: [6, 5, 2] }] })],
  [
    "a provider gets too many requests",
    "I8",
    changed(good(), { providers: [{ id: "api", limit: 2, windowMs: 1_000, requestsAtMs: [0, 500, 999] }] }),
  ],
  [
    "the engine still runs finished work",
    "I9",
    changed(good(), {
      work: [{ id: "w1", session: "s1", outcome: { kind: "done", answer: "all done" }, engine: ["PENDING"] }],
    }),
  ],
  ["a follower misses a line", "I10", changed(good(), { followed: good().lines.filter(({ seq }) => seq !== 5) })],
  [
    "a follower saw a line that was replaced",
    "I10",
    changed(good(), { followed: lineAt((row) => ({ ...row, line: "{}" }), 5) }),
  ],
];

describe("the checker of clusters", () => {
  it("the cluster checker accepts a session that was taken over", () => {
    expect(check(good())).toEqual([]);
  });

  it("the cluster checker accepts an agent's effect that is repeated after its task was interrupted", () => {
    expect(check(good(agentStory(end("k1", interrupted))))).toEqual([]);
  });

  it.each(defects)("the cluster checker finds that %s (%s)", (_, invariant, record) => {
    const found = check(record);
    expect(found).not.toEqual([]);
    expect(found.map((text) => text.split(" ")[0])).toContain(invariant);
  });
});
