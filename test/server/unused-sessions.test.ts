import { expect, it, onTestFinished, vi } from "vitest";
import type { HostedSession } from "../../src/server/sessions/hosted-session.ts";
import { UnusedSessions } from "../../src/server/sessions/unused-sessions.ts";

/** One open session, and what is done with it. */
function stage({ canWatch = true, clients = 1 } = {}) {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const done: string[] = [];
  const state = {
    attached: new Array(clients).fill({}),
    isBusy: false,
    isAsked: false,
    changed: (): void => undefined,
  };
  const live = {
    id: "s",
    touchedAt: performance.now(),
    isParked: false,
    clients: state,
    session: { record: { log: { directory: "/nowhere" } } },
    get isBusy() {
      return state.isBusy;
    },
    async handOver() {
      done.push("handed over");
    },
  } as unknown as HostedSession;
  const unused = new UnusedSessions({
    hosted: new Map([["s", live]]),
    idleMs: undefined,
    handOver: {
      isAskedFor: () => state.isAsked,
      refuse: async () => void done.push("refused"),
      answered: async () => void done.push("answered"),
      watch: (_, onChange) => {
        state.changed = onChange;
        return canWatch ? { close: () => undefined } : undefined;
      },
    },
    close: async () => void done.push("closed"),
  });
  unused.look();
  return { done, state, unused };
}

it("the server has no timer for a session that has clients and whose folder can be watched", () => {
  expect(stage() && vi.getTimerCount()).toBe(0);
});

it("the server checks a session's folder by a timer where it cannot be watched", async () => {
  const { done, state } = stage({ canWatch: false });
  state.isAsked = true;
  await vi.advanceTimersToNextTimerAsync();
  expect(done).toEqual(["handed over", "answered"]);
});

it("the server closes a session half an hour after its last client left", async () => {
  const { done, state, unused } = stage();
  state.attached = [];
  unused.look();
  await vi.advanceTimersByTimeAsync(29 * 60_000);
  expect(done).toEqual([]);
  await vi.advanceTimersByTimeAsync(2 * 60_000);
  expect(done).toContain("closed");
});

it("the server hands an idle session over when another process requests it, and refuses while it works", async () => {
  const { done, state } = stage();
  state.isAsked = true;
  state.isBusy = true;
  state.changed();
  state.isBusy = false;
  state.changed();
  await vi.advanceTimersByTimeAsync(0);
  expect(done).toEqual(["refused", "handed over", "answered"]);
});
