/**
 * The output of a command in bounded memory: its start and its end. Longer output is also written to a file, up to a
 * limit.
 */
import { type Disk, nodeDisk } from "../../../lib/node/disk.ts";
import type { HeldText } from "../../../lib/redact/redact-stream.ts";
import { sanitise } from "../../../lib/text.ts";

const HEAD_BYTES = 256 * 1024;
const TAIL_BYTES = 256 * 1024;
const MAX_FILE_BYTES = 64 * 1024 * 1024;
/** Maximum bytes that wait for the disk; beyond that the command is paused. */
const MAX_PENDING_BYTES = 2 * 1024 * 1024;

interface OutputOptions {
  /** The file for long output; created only when needed. */
  readonly path: string;
  readonly disk?: Disk;
  /** Removes secrets from the text in the file. */
  readonly clean?: HeldText;
}

export class Output {
  /** Bytes printed so far. */
  size = 0;
  readonly #path: string;
  readonly #disk: Disk;
  readonly #clean: HeldText | undefined;
  #head: Buffer = Buffer.alloc(0);
  /** A ring buffer, allocated when the head is full. */
  #tail: Buffer | undefined;
  #file: SpillFile | undefined;

  constructor({ path, disk = nodeDisk, clean }: OutputOptions) {
    this.#path = path;
    this.#disk = disk;
    this.#clean = clean;
  }

  /** Copies the bytes. Returns false when the disk is behind: wait for `drained` before pushing more. */
  push(bytes: Uint8Array): boolean {
    if (this.#file === undefined && this.size + bytes.length > HEAD_BYTES + TAIL_BYTES) this.#startFile();
    this.#file?.add(bytes);
    const forHead = bytes.subarray(0, Math.max(0, HEAD_BYTES - this.size));
    if (forHead.length > 0) this.#addToHead(forHead);
    if (forHead.length < bytes.length) this.#addToTail(bytes.subarray(forHead.length));
    return (this.#file?.pendingBytes ?? 0) <= MAX_PENDING_BYTES;
  }

  /** Resolves when everything pushed so far was handed to the disk or dropped. */
  async drained(): Promise<void> {
    await this.#file?.drained();
  }

  async close(): Promise<void> {
    await this.#file?.close();
  }

  /** Returns the output from byte `offset` as safe text, and the next offset. */
  textFrom(offset: number, { ended }: { ended: boolean }): { text: string; next: number } {
    const tailStart = Math.max(HEAD_BYTES, this.size - TAIL_BYTES);
    const head = this.#head.subarray(Math.min(offset, this.#head.length), Math.min(this.size, HEAD_BYTES));
    const lost = Math.max(0, tailStart - Math.max(offset, HEAD_BYTES));
    const tail = this.size > HEAD_BYTES ? this.#readTail(Math.max(offset, tailStart)) : Buffer.alloc(0);
    if (lost === 0) {
      const bytes = Buffer.concat([head, tail]);
      const held = ended ? 0 : incompleteEnd(bytes);
      return { text: tidy(bytes.toString("utf8", 0, bytes.length - held)), next: this.size - held };
    }
    const held = ended ? 0 : incompleteEnd(tail);
    const first = tidy(head.toString("utf8", 0, head.length - incompleteEnd(head)));
    const last = tidy(fromWholeLine(tail.toString("utf8", continuationStart(tail), tail.length - held)));
    return { text: `${first}${this.#gap(lost)}${last}`, next: this.size - held };
  }

  #gap(lost: number): string {
    const where =
      this.#file?.failure === undefined
        ? `The output up to ${MAX_FILE_BYTES / 1024 / 1024} MiB is in ${this.#path}`
        : `It could not be saved: ${this.#file.failure}`;
    return `\n[${lost} bytes left out here. ${where}]\n`;
  }

  #addToHead(bytes: Uint8Array): void {
    const needed = this.size + bytes.length;
    if (needed > this.#head.length) {
      const larger = Buffer.alloc(Math.min(HEAD_BYTES, Math.max(needed, this.#head.length * 2, 4096)));
      this.#head.copy(larger);
      this.#head = larger;
    }
    this.#head.set(bytes, this.size);
    this.size = needed;
  }

  #addToTail(bytes: Uint8Array): void {
    this.#tail ??= Buffer.alloc(TAIL_BYTES);
    const kept = bytes.subarray(Math.max(0, bytes.length - TAIL_BYTES));
    const at = (this.size + bytes.length - kept.length - HEAD_BYTES) % TAIL_BYTES;
    const untilWrap = Math.min(kept.length, TAIL_BYTES - at);
    this.#tail.set(kept.subarray(0, untilWrap), at);
    this.#tail.set(kept.subarray(untilWrap), 0);
    this.size += bytes.length;
  }

  #readTail(from: number): Buffer {
    const tail = this.#tail;
    if (tail === undefined || from >= this.size) return Buffer.alloc(0);
    const start = (from - HEAD_BYTES) % TAIL_BYTES;
    const length = this.size - from;
    if (start + length <= TAIL_BYTES) return Buffer.from(tail.subarray(start, start + length));
    return Buffer.concat([tail.subarray(start), tail.subarray(0, start + length - TAIL_BYTES)]);
  }

  /** Nothing was dropped before this call, so the file starts at the first byte. */
  #startFile(): void {
    this.#file = new SpillFile(this.#path, this.#disk, this.#clean);
    this.#file.add(this.#head.subarray(0, Math.min(this.size, HEAD_BYTES)));
    if (this.size > HEAD_BYTES) this.#file.add(this.#readTail(HEAD_BYTES));
  }
}

/** Appends in order, stops at the size limit, and never fails its command. */
class SpillFile {
  pendingBytes = 0;
  failure: string | undefined;
  #accepted = 0;
  #fd: number | undefined;
  #work: Promise<void>;
  readonly #disk: Disk;
  readonly #clean: HeldText | undefined;
  readonly #decoder = new TextDecoder();

  constructor(path: string, disk: Disk, clean: HeldText | undefined) {
    this.#disk = disk;
    this.#clean = clean;
    this.#work = this.#attempt(async () => {
      this.#fd = await disk.openExclusive(path);
    });
  }

  add(bytes: Uint8Array): void {
    const clean = this.#clean;
    this.#append(clean ? Buffer.from(clean.push(this.#decoder.decode(bytes, { stream: true }))) : bytes);
  }

  #append(bytes: Uint8Array): void {
    const fitting = bytes.subarray(0, MAX_FILE_BYTES - this.#accepted);
    if (fitting.length === 0 || this.failure !== undefined) return;
    this.#accepted += fitting.length;
    this.pendingBytes += fitting.length;
    const copy = Buffer.from(fitting);
    this.#work = this.#work.then(() =>
      this.#attempt(async () => {
        if (this.#fd !== undefined) await this.#disk.write(this.#fd, copy);
      }).finally(() => {
        this.pendingBytes -= copy.length;
      }),
    );
  }

  drained(): Promise<void> {
    return this.#work;
  }

  async close(): Promise<void> {
    if (this.#clean) {
      const rest = this.#clean.push(this.#decoder.decode()) + this.#clean.end();
      this.#append(Buffer.from(rest));
    }
    await this.#work;
    const fd = this.#fd;
    this.#fd = undefined;
    if (fd !== undefined) await this.#disk.close(fd).catch(() => undefined);
  }

  async #attempt(work: () => Promise<void>): Promise<void> {
    if (this.failure !== undefined) return;
    await work().catch((error: unknown) => {
      this.failure = error instanceof Error ? error.message : String(error);
    });
  }
}

const BODY_LINE = /^[\s>+|"',\d.:-]{0,20}(?:[A-Za-z0-9+/=]{16,}|-{5}END [^\n]{0,60})[\s"',;}]{0,10}$/;
/** The number of characters cut from the start of a text without line breaks. */
const LEAST_CUT = 4096;

/**
 * After a cut, the text may start with the rest of a secret that no longer has a recognisable form. Drops the first
 * partial line and following lines of a key.
 */
export function fromWholeLine(text: string): string {
  const first = text.indexOf("\n");
  if (first === -1) return text.slice(LEAST_CUT);
  let start = first + 1;
  for (let end = text.indexOf("\n", start); end !== -1; end = text.indexOf("\n", start)) {
    if (!BODY_LINE.test(text.slice(start, Math.min(end, start + 200)))) break;
    start = end + 1;
  }
  return text.slice(start);
}

/** Keeps only the last version of a line that was rewritten in place, as on a screen; then sanitises the text. */
export function tidy(text: string): string {
  const lines = text.includes("\r") ? text.split("\n").map(lastVersion).join("\n") : text;
  return sanitise(lines);
}

function lastVersion(line: string): string {
  const whole = line.replace(/\r+$/, "");
  return whole.slice(whole.lastIndexOf("\r") + 1);
}

/** Returns how many bytes at the end belong to an incomplete UTF-8 character. */
export function incompleteEnd(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if ((byte & 0xc0) === 0x80) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

function continuationStart(bytes: Uint8Array): number {
  let start = 0;
  while (start < 3 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start++;
  return start;
}
