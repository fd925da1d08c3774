import { sanitise } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";

/**
 * This folder formats results and progress. `Output` writes answers and JSON lines to stdout, whole, and reports when
 * the reader has disconnected.
 */
export interface Output {
  answer(text: string): void;
  /** Writes text that is already safe for a terminal. */
  text(text: string): void;
  line(value: object): void;
  /** The error after which nothing more can be written; `EPIPE` if the reader disconnected. */
  readonly failure: NodeJS.ErrnoException | undefined;
  /** Resolves when all output was written or has failed. */
  flushed(): Promise<void>;
}

export function output(stdout: NodeJS.WriteStream, onFailure: () => void): Output {
  let failure: NodeJS.ErrnoException | undefined;
  stdout.on("error", (error: NodeJS.ErrnoException) => {
    failure ??= error;
    onFailure();
  });
  const write = (text: string): void => {
    if (!failure) stdout.write(text);
  };
  return {
    /** Writes exactly the model's text to a pipe or file; on a terminal without control characters. */
    answer(text) {
      const shown = stdout.isTTY ? sanitise(text) : text;
      write(shown.endsWith("\n") ? shown : `${shown}\n`);
    },
    text: write,
    line: (value) => write(`${jsonLine(value, stdout)}\n`),
    get failure() {
      return failure;
    },
    flushed: () =>
      new Promise((resolve) => {
        if (failure) resolve();
        else stdout.write("", () => setImmediate(resolve)); // the error event follows the callback
      }),
  };
}

/** Rejects with kind "interrupted", which prints nothing, if the reader disconnected; otherwise with "failed". */
export function write(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error) => {
      const gone = error && "code" in error && error.code === "EPIPE";
      if (gone) reject(new TroupeError("interrupted", "The program that read stdout has ended."));
      else if (error) reject(new TroupeError("failed", `Could not write to stdout: ${error.message}`));
      else resolve();
    });
  });
}

/** Returns a list as one JSON array with an element per line; `[]` if it is empty. */
export function jsonList(values: readonly object[], stdout: { readonly isTTY?: boolean } = process.stdout): string {
  if (values.length === 0) return "[]\n";
  return `[\n${values.map((value) => `  ${jsonLine(value, stdout)}`).join(",\n")}\n]\n`;
}

/** Returns one line of JSON; on a terminal without control characters, which JSON leaves unescaped. */
export function jsonLine(value: unknown, stdout: { readonly isTTY?: boolean }): string {
  const text = JSON.stringify(value);
  if (!stdout.isTTY) return text;
  return text.replace(
    /[\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (hidden) => `\\u${hidden.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
