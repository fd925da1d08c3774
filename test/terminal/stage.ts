import { EventEmitter } from "node:events";
import type { ReadStream, WriteStream } from "node:tty";
import { createClient } from "../../src/sdk/sdk.ts";
import { type InProcessOptions, inProcess } from "../../src/server/in-process.ts";
import { firstFrame } from "../../src/terminal/first-frame.ts";
import type { SessionChoice } from "../../src/terminal/session-choice.ts";
import { runTerminal, type TerminalOptions } from "../../src/terminal/terminal.ts";
import type { HttpStep } from "../../src/testing/http-reply.ts";
import { modelServer } from "../../src/testing/model-server.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { type VirtualTerminal, virtualTerminal } from "./virtual-terminal.ts";

export interface TerminalStage extends AsyncDisposable {
  readonly terminal: VirtualTerminal;
  readonly home: string;
  readonly cwd: string;
  /** Every write, in order. */
  readonly writes: string[];
  /** Input from a keyboard or a terminal. */
  send(bytes: string): void;
  /** `isAhead`: the emulator takes the new size before bytes that were written earlier. */
  resize(columns: number, rows: number, how?: { readonly isAhead: boolean }): void;
  /**
   * Resolves with the screen once it shows this; fails with the screen when it never does. Where a line wraps depends on
   * the length of the temporary folder's name, so a line break counts as one blank too.
   */
  shows(text: string | RegExp): Promise<string>;
  /** Resolves once the screen shows it no longer. */
  hides(text: string): Promise<void>;
  screenText(): Promise<string>;
  /** All lines that were ever written, the scrollback included. */
  lines(): Promise<string[]>;
  /** Resolves when the terminal has given the screen back. */
  readonly ended: Promise<void>;
  readonly rawMode: boolean[];
}

export interface StageOptions {
  readonly steps?: readonly HttpStep[];
  readonly columns?: number;
  readonly rows?: number;
  readonly sessionChoice?: SessionChoice;
  readonly home?: string;
  readonly cwd?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly trust?: TerminalOptions["trust"];
  readonly isModelChosen?: boolean;
  /** The models that the model server lists. */
  readonly models?: readonly string[];
  readonly program?: InProcessOptions["program"];
}

const PATIENCE_MS = 30_000;

/** The whole terminal in this process: a model over HTTP, a server, its client, and an emulator in place of the screen. */
export async function terminalStage(options: StageOptions = {}): Promise<TerminalStage> {
  const folder = await tempFolder({ "work/readme.md": "hello\n" });
  const model = await modelServer({ steps: options.steps ?? [], ...(options.models && { models: options.models }) });
  const home = options.home ?? folder.at("home");
  const cwd = options.cwd ?? folder.at("work");
  const terminal = virtualTerminal({ columns: options.columns ?? 80, rows: options.rows ?? 24 });
  const writes: string[] = [];
  const rawMode: boolean[] = [];
  let written: Promise<void> = Promise.resolve();
  const input = Object.assign(new EventEmitter(), {
    isTTY: true,
    setRawMode: (mode: boolean) => rawMode.push(mode),
    pause: () => undefined,
    resume: () => undefined,
  });
  const output = Object.assign(new EventEmitter(), {
    isTTY: true,
    columns: options.columns ?? 80,
    rows: options.rows ?? 24,
    write(bytes: string): boolean {
      writes.push(bytes);
      written = written.then(() => terminal.write(bytes));
      return true;
    },
  });
  const environment = {
    PATH: process.env.PATH ?? "",
    HOME: home,
    TROUPE_HOME: home,
    TROUPE_BASE_URL: model.baseUrl,
    TROUPE_MODEL: "scripted",
    TROUPE_NO_DISCOVERY: "1",
    TROUPE_SANDBOX: "off",
    ...options.environment,
  };
  terminal.onAnswer((bytes) => void input.emit("data", Buffer.from(bytes)));
  const first = firstFrame(input as unknown as ReadStream, output as unknown as WriteStream);
  const ended = runTerminal({
    input: input as unknown as ReadStream,
    output: output as unknown as WriteStream,
    first,
    environment,
    cwd,
    home,
    version: "0.0.0",
    sessionChoice: options.sessionChoice ?? { kind: "new" },
    isModelChosen: options.isModelChosen ?? true,
    connect: () =>
      createClient({
        connection: inProcess({ environment, cwd, program: options.program }),
      }),
    trust: options.trust ?? (async () => undefined),
  });
  const settled = async (): Promise<void> => {
    await written;
  };
  const screenText = async (): Promise<string> => {
    await settled();
    return terminal.screen().join("\n");
  };
  const until = async (is: (screen: string) => boolean, what: string): Promise<string> => {
    const end = performance.now() + PATIENCE_MS;
    for (;;) {
      const screen = await screenText();
      if (is(screen)) return screen;
      if (performance.now() > end) throw new Error(`${what}:\n${screen}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  return {
    terminal,
    home,
    cwd,
    writes,
    rawMode,
    ended,
    send: (bytes) => void input.emit("data", Buffer.from(bytes)),
    resize(columns, rows, { isAhead } = { isAhead: false }) {
      if (isAhead) terminal.resize(columns, rows);
      else written = written.then(() => terminal.resize(columns, rows));
      Object.assign(output, { columns, rows });
      output.emit("resize");
    },
    shows: (text) =>
      until(
        (screen) =>
          [screen, screen.replace(/\s*\n\s*/g, " ")].some((one) =>
            typeof text === "string" ? one.includes(text) : text.test(one),
          ),
        `the screen never shows ${text}`,
      ),
    hides: async (text) => void (await until((screen) => !screen.includes(text), `the screen goes on to show ${text}`)),
    screenText,
    lines: async () => {
      await settled();
      return terminal.lines();
    },
    async [Symbol.asyncDispose]() {
      input.emit("data", Buffer.from("\u0003"));
      for (let press = 0; press < 4; press++) input.emit("data", Buffer.from("\u0003"));
      await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 10_000).unref())]);
      await model.close();
      await folder.remove();
    },
  };
}

/** The status line of a session that waits for a prompt. */
export const READY = /interactive · scripted.*Esc/;
