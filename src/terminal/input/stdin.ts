/**
 * Bytes of the terminal as keys, pastes and reports. A paste is taken out before keys are decoded, whatever its size and
 * however it is split, so that nothing in it can be read as a key.
 */
import { StringDecoder } from "node:string_decoder";
import { isKeyRelease, parseKey } from "@earendil-works/pi-tui/dist/keys.js";
import { StdinBuffer } from "@earendil-works/pi-tui/dist/stdin-buffer.js";

export type Input =
  /** `id` names the key (`ctrl+c`, `shift+tab`, `a`); undefined for text that is not a single key. */
  | { readonly kind: "key"; readonly data: string; readonly id: string | undefined }
  | { readonly kind: "paste"; readonly text: string }
  | { readonly kind: "focus"; readonly isFocused: boolean }
  /** The terminal speaks the kitty keyboard protocol. */
  | { readonly kind: "kitty" }
  /** The terminal's answer to XTVERSION, such as "XTerm(379)". */
  | { readonly kind: "terminal"; readonly name: string }
  /** The column of the cursor, counted from 1. */
  | { readonly kind: "cursor"; readonly column: number };

const PASTE_START = "\u001b[200~";
const PASTE_END = "\u001b[201~";
/** How long an escape may wait for the rest of its sequence. */
const ESCAPE_MS = 25;

export class InputReader {
  readonly #decoder = new StringDecoder("utf8");
  readonly #keys: StdinBuffer;
  readonly #on: (input: Input) => void;
  #paste: string[] | undefined;
  /** The last characters of the paste so far, in which its end may have begun. */
  #tail = "";

  constructor(on: (input: Input) => void) {
    this.#on = on;
    this.#keys = new StdinBuffer({ timeout: ESCAPE_MS });
    this.#keys.on("data", (data) => this.#key(data));
  }

  read(chunk: Uint8Array | string): void {
    this.#take(typeof chunk === "string" ? chunk : this.#decoder.write(Buffer.from(chunk)));
  }

  close(): void {
    this.#keys.destroy();
  }

  #take(text: string): void {
    if (text === "") return;
    if (this.#paste) {
      this.#takePaste(text);
      return;
    }
    // The start may be split between two chunks; the buffer holds an unfinished sequence back.
    const pending = this.#keys.getBuffer();
    const whole = pending + text;
    const start = whole.indexOf(PASTE_START);
    if (start < 0) {
      this.#keys.process(text);
      return;
    }
    this.#keys.clear();
    if (start > 0) this.#keys.process(whole.slice(0, start));
    this.#paste = [];
    this.#tail = "";
    this.#takePaste(whole.slice(start + PASTE_START.length));
  }

  /** Looks for the end only where it can be new, so that the cost stays linear. */
  #takePaste(text: string): void {
    const paste = this.#paste ?? [];
    const window = this.#tail + text;
    const end = window.indexOf(PASTE_END);
    if (end < 0) {
      paste.push(text);
      this.#tail = window.slice(-(PASTE_END.length - 1));
      return;
    }
    this.#paste = undefined;
    const whole = paste.join("") + text;
    const at = whole.length - window.length + end;
    this.#tail = "";
    this.#on({ kind: "paste", text: whole.slice(0, at) });
    this.#take(whole.slice(at + PASTE_END.length));
  }

  #key(data: string): void {
    const name = VERSION_REPORT.exec(data)?.[1];
    const column = CURSOR_REPORT.exec(data)?.[1];
    if (data === "\u001b[I" || data === "\u001b[O") this.#on({ kind: "focus", isFocused: data.endsWith("I") });
    else if (KITTY_REPORT.test(data)) this.#on({ kind: "kitty" });
    else if (name !== undefined) this.#on({ kind: "terminal", name });
    else if (column !== undefined) this.#on({ kind: "cursor", column: Number(column) });
    else if (data !== "" && !OTHER_REPORT.test(data) && !isKeyRelease(data)) {
      this.#on({ kind: "key", data, id: nameOf(data) });
    }
  }
}

/** In raw mode Enter is a carriage return: a line feed is Ctrl+J, or what a terminal was told to send for Shift+Enter. */
const nameOf = (data: string): string | undefined => (data === "\n" ? "ctrl+j" : parseKey(data));

const VERSION_REPORT = /^\u001bP>\|([^\u001b]*)/;
const KITTY_REPORT = /^\u001b\[\?\d+u$/;
/** Except those that F3 with modifiers looks like: row 1, and at most column 16. */
const CURSOR_REPORT = /^\u001b\[(?!1;(?:\d|1[0-6])R)\d+;(\d+)R$/;
/** Answers of the terminal that nobody asked for. */
const OTHER_REPORT = /^\u001b(\]|P|\[\?)/;
