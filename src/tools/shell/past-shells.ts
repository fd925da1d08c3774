/** Remembers how shells ended, so that a late question gets a correct answer. */
type Past = { readonly how: "exited"; readonly exitCode: number } | { readonly how: "stopped" };

const MAX_REMEMBERED = 1000;

export class PastShells {
  readonly #past = new Map<string, Past>();

  get size(): number {
    return this.#past.size;
  }

  has(shellId: string): boolean {
    return this.#past.has(shellId);
  }

  /** Call this for an id that is in use again. */
  forget(shellId: string): void {
    this.#past.delete(shellId);
  }

  remember(shellId: string, past: Past): void {
    this.#past.delete(shellId);
    this.#past.set(shellId, past);
    const [oldest] = this.#past.keys();
    if (this.#past.size > MAX_REMEMBERED && oldest !== undefined) this.#past.delete(oldest);
  }

  /** Returns a sentence for the model, or undefined when the id is unknown. */
  explain(shellId: string): string | undefined {
    const past = this.#past.get(shellId);
    if (past?.how === "stopped") return `Shell ${shellId} has been stopped.`;
    if (past === undefined) return undefined;
    const end = `finished with exit code ${past.exitCode}`;
    return `The command in shell ${shellId} has already ${end}, and its output has been read.`;
  }
}
