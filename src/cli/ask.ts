import { createInterface } from "node:readline";
import { sanitise } from "../lib/text.ts";

/** Asks a yes-or-no question on the terminal. The end of the input and an interruption mean no. */
function askOnTerminal(question: string): Promise<boolean> {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  return new Promise((resolve) => {
    lines.once("close", () => resolve(false));
    lines.question(sanitise(question).replace(/\n/g, " "), (answer) => {
      resolve(/^(y|yes)$/i.test(answer.trim()));
      lines.close();
    });
  });
}

/** Returns `ask` if there is a terminal, otherwise an empty object. */
export const terminalAsk = (): { readonly ask?: (question: string) => Promise<boolean> } =>
  process.stdin.isTTY && process.stderr.isTTY ? { ask: askOnTerminal } : {};
