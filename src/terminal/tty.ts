/** The terminal device: raw mode, size, writing, and giving it back in the state in which it was found. */
import type { ReadStream, WriteStream } from "node:tty";
import { setKittyProtocolActive } from "@earendil-works/pi-tui/dist/keys.js";
import type { FirstFrame } from "./first-frame.ts";
import { MODES_OFF } from "./reset.ts";
import type { Screen, ScreenPorts } from "./screen/screen.ts";

export interface TtyOptions {
  readonly input: ReadStream;
  readonly output: WriteStream;
  readonly first: FirstFrame;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

const KITTY_ON = "\u001b[>1u";
const KITTY_OFF = "\u001b[<u";
/** XTVERSION. The Linux console would print it. */
const ASK_NAME = "\u001b[>q";
/** Terminals without reflow that do not say their name. */
const CUTS_ROWS = /^(?:linux|st)(?:-|$)/;
const MODES_ON = "\u001b[?2004h\u001b[?1004h";

export class Tty {
  readonly #options: TtyOptions;
  #onInput: ((chunk: Uint8Array) => void) | undefined;
  #hasKitty = false;

  constructor(options: TtyOptions) {
    this.#options = options;
  }

  get screenPorts(): Pick<ScreenPorts, "write" | "onDrain" | "size" | "wrapsCaretLine" | "reflows" | "painted"> {
    const { output, first, environment } = this.#options;
    return {
      write: (bytes) => output.write(bytes),
      onDrain: (listener) => output.once("drain", listener),
      size: () => {
        // Node learns of a new size by a signal, which may still be on its way.
        (output as { _refreshSize?: () => void })._refreshSize?.();
        return { columns: Math.max(2, output.columns || 80), rows: Math.max(3, output.rows || 24) };
      },
      // xterm.js, as in VS Code, leaves the caret's line to the program.
      wrapsCaretLine: environment.TERM_PROGRAM !== "vscode",
      reflows: !CUTS_ROWS.test(environment.TERM ?? ""),
      painted: first.painted,
    };
  }

  write(bytes: string): void {
    this.#options.output.write(bytes);
  }

  /** From now on input goes to the listener, first what was typed before. */
  listen(onInput: (chunk: Uint8Array) => void, onResize: () => void): void {
    const { input, output, first, environment } = this.#options;
    if (environment.TERM !== "linux") this.write(ASK_NAME);
    const typed = first.take();
    this.#onInput = (chunk) => onInput(first.asTyped(chunk));
    input.on("data", this.#onInput);
    output.on("resize", onResize);
    for (const chunk of typed) onInput(chunk);
  }

  enableKitty(): void {
    if (this.#hasKitty) return;
    this.#hasKitty = true;
    setKittyProtocolActive(true);
    this.#options.first.undo.push(KITTY_OFF);
    this.write(KITTY_ON);
  }

  /** Runs something that needs the terminal for itself. */
  async lend<T>(screen: Screen, run: () => Promise<T>): Promise<T> {
    this.#release(screen);
    try {
      return await run();
    } finally {
      this.#claim(screen);
    }
  }

  /** Ctrl+Z: suspends the process until SIGCONT. */
  suspend(screen: Screen): void {
    this.#release(screen);
    process.once("SIGCONT", () => this.#claim(screen));
    process.kill(process.pid, "SIGTSTP");
  }

  #release(screen: Screen): void {
    const { input } = this.#options;
    screen.suspend();
    this.write(`${this.#hasKitty ? KITTY_OFF : ""}${MODES_OFF}`);
    if (this.#onInput) input.off("data", this.#onInput);
    input.pause();
    input.setRawMode(false);
  }

  #claim(screen: Screen): void {
    const { input } = this.#options;
    input.setRawMode(true);
    if (this.#onInput) input.on("data", this.#onInput);
    input.resume();
    this.write(`${MODES_ON}${this.#hasKitty ? KITTY_ON : ""}`);
    screen.resume();
  }

  close(): void {
    const { input, first } = this.#options;
    if (this.#onInput) input.off("data", this.#onInput);
    input.pause();
    first.restore();
  }
}
