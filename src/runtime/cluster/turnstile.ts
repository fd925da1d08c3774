/** Lets some activations of a worker run alone, and the others side by side. */

export class Turnstile {
  /** Ends of activations that run or wait side by side. */
  #shared = new Set<Promise<unknown>>();
  #alone: Promise<unknown> = Promise.resolve();

  /** Waits for activations that came before and run alone. */
  async together<T>(work: () => Promise<T>): Promise<T> {
    const running = this.#alone.then(work);
    const end = running.catch(() => undefined);
    this.#shared.add(end);
    void end.then(() => this.#shared.delete(end));
    return running;
  }

  /** Waits for all activations that came before. Those that come later wait for this one. */
  async alone<T>(work: () => Promise<T>): Promise<T> {
    const running = Promise.all([this.#alone, ...this.#shared]).then(work);
    this.#alone = running.catch(() => undefined);
    return running;
  }
}
