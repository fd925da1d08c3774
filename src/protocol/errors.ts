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

/** Each kind has its own exit code: see `cli/exit-codes.ts`. */
export type ErrorKind = "usage" | "configuration" | "provider" | "storage" | "limit" | "interrupted" | "failed";

/** Joins a sentence and its hint. */
export function withHint(message: string, hint: string | undefined): string {
  if (!hint) return message;
  const sentence = message.replace(/[.\s]+$/, "");
  return `${sentence}${/[?!]$/.test(sentence) ? "" : "."} ${hint}`;
}
