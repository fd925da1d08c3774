import { resolve } from "node:path";
import { spawn } from "@lydell/node-pty";

export interface TerminalOptions {
  readonly cwd: string;
  readonly home: string;
  readonly columns?: number;
  readonly environment?: Readonly<Record<string, string>>;
  /** Typed one after the other, each when the text after the last answer shows its question. */
  readonly answers?: readonly (readonly [question: string, typed: string])[];
}

/** Runs the built command line on a real terminal, as a user at the keyboard does. `screen`: everything written there. */
export function onTerminal(
  args: readonly string[],
  options: TerminalOptions,
): Promise<{ readonly code: number; readonly screen: string }> {
  const terminal = spawn(process.execPath, [resolve("bin/troupe.js"), ...args], {
    cwd: options.cwd,
    cols: options.columns ?? 80,
    rows: 40,
    env: {
      PATH: process.env.PATH ?? "",
      HOME: options.home,
      TROUPE_HOME: options.home,
      TROUPE_NO_DISCOVERY: "1",
      TERM: "xterm-256color",
      ...options.environment,
    },
  });
  const answers = [...(options.answers ?? [])];
  let [screen, seen] = ["", 0];
  terminal.onData((data) => {
    screen += data;
    const [question, typed] = answers[0] ?? [];
    if (question === undefined || !screen.slice(seen).includes(question)) return;
    answers.shift();
    seen = screen.length;
    terminal.write(`${typed}\r`);
  });
  return new Promise((done) => {
    terminal.onExit(({ exitCode }) =>
      setImmediate(() => done({ code: exitCode, screen: screen.replace(/\r\n/g, "\n") })),
    );
  });
}
