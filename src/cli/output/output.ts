import { sanitise } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";

/** stdout as a contract: answers and JSON lines, whole, and a clear sign when nobody reads any more. */
export interface Output {
  answer(text: string): void;
  /** Text that is safe to write as it is. */
  text(text: string): void;
  line(value: object): void;
  /** Why nothing more can be written, once that is so; `EPIPE` when the reader went away. */
  readonly failure: NodeJS.ErrnoException | undefined;
  /** Everything said so far has been taken, or could not be. */
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
    /** Into a pipe or file exactly as the model said it; on a terminal without what could drive it. */
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

/** A reader that has seen enough ends the command quietly; any other failure is told. */
export function write(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error) => {
      const gone = error && "code" in error && error.code === "EPIPE";
      if (gone) reject(new TroupeError("interrupted", "The reader of stdout went away."));
      else if (error) reject(new TroupeError("failed", `Could not write to stdout: ${error.message}`));
      else resolve();
    });
  });
}

/** A list as one JSON array with an element per line; `[]` when it is empty. */
export function jsonList(values: readonly object[], stdout: { readonly isTTY?: boolean } = process.stdout): string {
  if (values.length === 0) return "[]\n";
  return `[\n${values.map((value) => `  ${jsonLine(value, stdout)}`).join(",\n")}\n]\n`;
}

/** One line of JSON; on a terminal without the characters that drive it, which JSON leaves as they are. */
export function jsonLine(value: unknown, stdout: { readonly isTTY?: boolean }): string {
  const text = JSON.stringify(value);
  if (!stdout.isTTY) return text;
  return text.replace(
    /[\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (hidden) => `\\u${hidden.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
