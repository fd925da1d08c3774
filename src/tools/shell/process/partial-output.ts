/** Passes on the output of a running command: at most every 100 ms, and only the newest part of a flood. */
import { fromWholeLine, incompleteEnd, tidy } from "./output.ts";

const INTERVAL_MS = 100;
const MAX_BYTES = 16 * 1024;
/** An escape sequence that is still incomplete after this many bytes is passed on. */
const MAX_SEQUENCE_BYTES = 64;
const ESCAPE = 0x1b;

export class PartialOutput {
  readonly #say: (text: string) => void;
  #pending: Buffer[] = [];
  #pendingBytes = 0;
  #dropped = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(say: (text: string) => void) {
    this.#say = say;
  }

  push(bytes: Uint8Array): void {
    const kept = bytes.subarray(Math.max(0, bytes.length - MAX_BYTES));
    if (this.#pendingBytes + kept.length > MAX_BYTES) {
      this.#dropped += this.#pendingBytes;
      this.#pending = [];
      this.#pendingBytes = 0;
    }
    this.#dropped += bytes.length - kept.length;
    this.#pending.push(Buffer.from(kept));
    this.#pendingBytes += kept.length;
    this.#timer ??= setTimeout(() => this.#flush(false), INTERVAL_MS);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#flush(true);
  }

  #flush(ended: boolean): void {
    this.#timer = undefined;
    if (this.#pendingBytes === 0) return;
    const bytes = Buffer.concat(this.#pending);
    const held = ended ? 0 : unfinished(bytes);
    const shown = bytes.toString("utf8", 0, bytes.length - held);
    const text = this.#dropped > 0 ? `[${this.#dropped} bytes not shown]\n${tidy(fromWholeLine(shown))}` : tidy(shown);
    this.#dropped = 0;
    this.#pending = held > 0 ? [bytes.subarray(bytes.length - held)] : [];
    this.#pendingBytes = held;
    if (text !== "") this.#say(text);
  }
}

/** Returns the length of an incomplete character or escape sequence at the end; it is sent with the next part. */
function unfinished(bytes: Buffer): number {
  const begin = bytes.lastIndexOf(ESCAPE);
  const open = begin >= 0 && bytes.length - begin <= MAX_SEQUENCE_BYTES;
  if (open && !/[@-Z\\^-~]/.test(bytes.toString("latin1", begin + 2))) return bytes.length - begin;
  return incompleteEnd(bytes);
}
