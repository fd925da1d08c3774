/**
 * The first frame: the prompt, painted before anything else is loaded. Keys that are typed meanwhile are kept and handed
 * over. This file imports types and a constant only, so that it costs nothing.
 */
import type { ReadStream, WriteStream } from "node:tty";
import { MODES_OFF } from "./reset.ts";
import type { Painted } from "./screen/frame.ts";

export interface FirstFrame {
  readonly painted: Painted;
  /** Stops collecting and returns what was typed so far. */
  take(): readonly Uint8Array[];
  /** Returns the input with Enter as raw mode sends it, also if it was typed before raw mode. */
  asTyped(chunk: Uint8Array): Uint8Array;
  /** Puts the terminal back as it was. Safe to call at any time, more than once. */
  restore(): void;
  /** Modes that are restored beside the usual ones, such as the kitty keyboard protocol. */
  readonly undo: string[];
}

/** Bracketed paste and focus reports; the question for the kitty keyboard protocol. */
const MODES_ON = "\u001b[?2004h\u001b[?1004h\u001b[?u";
const INTERRUPT = 3;
const LINE_FEED = 10;
const RETURN = 13;

export function firstFrame(input: ReadStream, output: WriteStream): FirstFrame {
  const columns = output.columns > 0 ? output.columns : 80;
  const rows = ["starting", "› "];
  const undo: string[] = [];
  let typed: Uint8Array[] = [];
  let isRestored = false;
  // Enter before raw mode is a line feed in the terminal's buffer, which the first look at the input returns.
  let isFirstLook = true;
  setImmediate(() => setImmediate(() => (isFirstLook = false)));
  const asTyped = (chunk: Uint8Array): Uint8Array =>
    isFirstLook ? chunk.map((byte) => (byte === LINE_FEED ? RETURN : byte)) : chunk;
  const restore = (): void => {
    if (isRestored) return;
    isRestored = true;
    process.off("exit", restore);
    input.setRawMode(false);
    output.write(`${undo.join("")}${MODES_OFF}`);
  };
  const collect = (chunk: Uint8Array): void => {
    typed.push(asTyped(chunk));
    if (!chunk.includes(INTERRUPT)) return;
    output.write("\r\n");
    restore();
    process.exit(130);
  };
  input.setRawMode(true);
  input.on("data", collect);
  process.once("exit", restore);
  output.write(`${rows.join("\r\n")}${MODES_ON}`);
  return {
    painted: { rows, caret: { row: 1, column: 2 }, widths: [8, 2], columns },
    undo,
    restore,
    asTyped,
    take() {
      input.off("data", collect);
      const all = typed;
      typed = [];
      return all;
    },
  };
}
