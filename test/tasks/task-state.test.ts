import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isFinal, isIdleOrEnded, next, queued, type TaskSignal, type TaskState } from "../../src/tasks/task-state.ts";

const outcome = fc.constantFrom("answered", "empty", "limit", "failed", "invalid_output", "aborted");
const signal: fc.Arbitrary<TaskSignal> = fc.oneof(
  fc.constantFrom(
    { kind: "slot_taken" } as const,
    { kind: "resumed" } as const,
    { kind: "parent_ended" } as const,
    { kind: "stopped" } as const,
    { kind: "process_gone" } as const,
    { kind: "runner_failed" } as const,
  ),
  fc.record({ kind: fc.constant("answer_ended" as const), outcome, continues: fc.boolean() }),
);

/** Every state on the way, the first included. */
function walk(signals: readonly TaskSignal[]): TaskState[] {
  const path = [queued];
  for (const given of signals) {
    const following = next(path.at(-1) ?? queued, given);
    if (following) path.push(following);
  }
  return path;
}

/** The table of the seed. It has no `queued`: an agent that waits for a slot counts as running, also on the wire. */
const listed = [
  ...["running completed", "running failed", "running cancelled", "running idle"],
  ...["idle running", "idle cancelled", "idle completed"],
];
const shown = ({ status }: TaskState): string => (status === "queued" ? "running" : status);

describe("transitions of a task", () => {
  it("ORC-32 a task follows the listed transitions only, ends at most once, and stays ended", () => {
    fc.assert(
      fc.property(fc.array(signal, { maxLength: 40 }), (signals) => {
        const path = walk(signals);
        for (const [index, state] of path.slice(1).entries()) {
          const step = `${shown(path[index] ?? queued)} ${shown(state)}`;
          if (step !== "running running") expect(listed).toContain(step);
        }
        expect(path.slice(0, -1).some(({ status }) => isFinal(status))).toBe(false);
      }),
      { numRuns: 500 },
    );
  });

  it("a task's state has a reason exactly when it is at rest, and is completed only after an answer", () => {
    fc.assert(
      fc.property(fc.array(signal, { maxLength: 40 }), (signals) => {
        for (const { status, reason } of walk(signals)) {
          expect(reason !== undefined).toBe(isIdleOrEnded(status));
          if (status === "completed") expect(reason).toBe("finished");
        }
      }),
      { numRuns: 300 },
    );
    const running: TaskState = { status: "running" };
    for (const bad of ["empty", "limit", "failed", "invalid_output", "aborted"] as const) {
      const end = next(running, { kind: "answer_ended", outcome: bad, continues: false });
      expect(end?.status).not.toBe("completed");
      const rest = next(running, { kind: "answer_ended", outcome: bad, continues: true });
      expect([rest?.status, rest?.reason === "finished"]).toEqual(["idle", false]);
      expect(next(rest ?? running, { kind: "parent_ended" })?.status).not.toBe("completed");
    }
  });

  it("a task can always be stopped, or has ended", () => {
    fc.assert(
      fc.property(fc.array(signal, { maxLength: 20 }), (signals) => {
        const last = walk(signals).at(-1) ?? queued;
        expect(next(last, { kind: "stopped" })?.status).toBe(isFinal(last.status) ? undefined : "cancelled");
      }),
    );
  });
});
