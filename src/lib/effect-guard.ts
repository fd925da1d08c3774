/**
 * Says whether this process may act for a session. Needed where another process can take the session over, so that no
 * two of them act at the same time.
 */
export interface EffectGuard {
  /**
   * Runs an action that has effects. Throws without running it if another process may have the session. Aborts the
   * signal of the action when that becomes possible.
   */
  run<T>(what: Guarded, signal: AbortSignal, action: (signal: AbortSignal) => Promise<T>): Promise<T>;
  /** Throws if another process may have the session. Called immediately before a program starts. */
  assertValid(): void;
  /** Called before a command that may delete or overwrite files. */
  beforeDestructiveCommand?(): Promise<void>;
}

export interface Guarded {
  /** For messages. */
  readonly name: string;
  /** True when it only waits for something that runs elsewhere. It is then not stopped. */
  readonly waits?: boolean;
  /** True for an action of the worker itself, which goes on while the session is held. */
  readonly isOfWorker?: boolean;
}
