import type { Outcome } from "./answer-runner.ts";

/** Waiters for the outcome of a message. Each is called once. */
export class OutcomeWaiters {
  readonly #waiters = new Map<string, (outcome: Outcome) => void>();

  wait(messageId: string, onOutcome: ((outcome: Outcome) => void) | undefined): void {
    if (onOutcome) this.#waiters.set(messageId, onOutcome);
  }

  resolve(messageIds: Iterable<string>, outcome: Outcome = { kind: "aborted" }): void {
    for (const messageId of messageIds) {
      this.#waiters.get(messageId)?.(outcome);
      this.#waiters.delete(messageId);
    }
  }

  resolveAll(outcome: Outcome | undefined): void {
    this.resolve([...this.#waiters.keys()], outcome);
  }
}
