import type { Outcome } from "./turn-runner.ts";

/** Waiters for the outcome of a message. Each is called once. */
export class OutcomeWaiters {
  readonly #waiters = new Map<string, (outcome: Outcome) => void>();

  wait(messageId: string, settle: ((outcome: Outcome) => void) | undefined): void {
    if (settle) this.#waiters.set(messageId, settle);
  }

  settle(messageIds: Iterable<string>, outcome: Outcome = { kind: "aborted" }): void {
    for (const messageId of messageIds) {
      this.#waiters.get(messageId)?.(outcome);
      this.#waiters.delete(messageId);
    }
  }

  settleAll(outcome: Outcome | undefined): void {
    this.settle([...this.#waiters.keys()], outcome);
  }
}
