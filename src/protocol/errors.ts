/**
 * An error that the user can fix. `message` is one line that says what happened, `hint` says what to do about it. Any
 * other thrown error is a bug and is reported with its stack.
 */
export class TroupeError extends Error {
  override readonly name = "TroupeError";
  readonly kind: ErrorKind;
  readonly hint: string | undefined;

  constructor(kind: ErrorKind, message: string, options: { hint?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.kind = kind;
    this.hint = options.hint;
  }
}

/** `cli/exit-codes.ts` gives each kind an exit code; some kinds share one. */
export type ErrorKind = "usage" | "configuration" | "provider" | "storage" | "limit" | "interrupted" | "failed";

/** Joins a sentence and its hint. */
export function withHint(message: string, hint: string | undefined): string {
  if (!hint) return message;
  const sentence = message.replace(/[.\s]+$/, "");
  return `${sentence}${/[?!]$/.test(sentence) ? "" : "."} ${hint}`;
}

/** The process that has a session open for writing. */
export interface SessionHolder {
  readonly pid: number;
  readonly host?: string;
  /** Tells the user how to proceed. */
  readonly advice?: string;
}

const DEFAULT_ADVICE = "End that process first, or start a new session.";

export function inUse(sessionId: string, { pid, host, advice = DEFAULT_ADVICE }: SessionHolder): TroupeError {
  const where = host === undefined ? "" : ` on ${host}`;
  return new TroupeError("storage", `Session ${sessionId} is in use by process ${pid}${where}.`, { hint: advice });
}

/** Throws if another process has the session open. `advice` replaces the usual one. */
export function requireFree(
  { sessionId, heldBy }: { readonly sessionId: string; readonly heldBy: SessionHolder | undefined },
  advice?: string,
): void {
  if (heldBy) throw inUse(sessionId, advice === undefined ? heldBy : { ...heldBy, advice });
}
