import { expect, it } from "vitest";
import { deferred } from "../../lib/deferred.ts";
import { fauxStamp } from "../../testing/faux-stamp.ts";
import type { AnswerRunner, Outcome } from "./answer-runner.ts";
import { MessageQueue } from "./message-queue.ts";
import { PendingMessages } from "./pending-messages.ts";

it("a message has one outcome when the session closes while the message is stored", async () => {
  const [answering, storing] = [deferred<Outcome>(), deferred<void>()];
  const runner: Partial<AnswerRunner> = {
    answer: (_message, _signal, callbacks) => {
      callbacks?.accepted();
      return answering.promise;
    },
    storeQueued: () => storing.promise,
    emitCost: async () => undefined,
  };
  const queue = new MessageQueue({
    sessionId: "s",
    options: { stamp: fauxStamp(), log: undefined as never },
    pending: new PendingMessages(),
    runner: runner as AnswerRunner,
    emit: async () => undefined as never,
    modes: { current: "interactive", resting: {} },
    closed: new AbortController().signal,
    areAgentsBusy: () => false,
  });
  await queue.accept({ prompt: "one" });
  const outcomes: Outcome[] = [];
  const second = queue.accept({ prompt: "two" }, (outcome) => outcomes.push(outcome));
  queue.refuse();
  storing.resolve();
  await second;
  answering.resolve({ kind: "aborted" });
  await queue.whenIdle();
  expect(outcomes).toEqual([{ kind: "aborted" }]);
});
