import { sanitise } from "../lib/text.ts";

/** stdout as a contract: answers and JSON lines, whole, and a clear sign when nobody reads any more. */
export interface Output {
  answer(text: string): void;
  line(value: object): void;
  /** True when the reader went away. */
  readonly broken: boolean;
  flushed(): Promise<void>;
}

export function output(stdout: NodeJS.WriteStream, onBroken: () => void): Output {
  let broken = false;
  stdout.on("error", () => {
    if (broken) return;
    broken = true;
    onBroken();
  });
  const write = (text: string): void => {
    if (!broken) stdout.write(text);
  };
  return {
    /** Into a pipe or file exactly as the model said it; on a terminal without what could drive it. */
    answer(text) {
      const shown = stdout.isTTY ? sanitise(text) : text;
      write(shown.endsWith("\n") ? shown : `${shown}\n`);
    },
    line: (value) => write(`${JSON.stringify(value)}\n`),
    get broken() {
      return broken;
    },
    flushed: () => new Promise((resolve) => (broken ? resolve() : stdout.write("", () => resolve()))),
  };
}
