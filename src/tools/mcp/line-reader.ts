/** Splits the output of a server into lines. Fails on a server that violates the format. */

export interface LineReaderOptions {
  readonly maxLineBytes: number;
  /** Some servers print other output to stdout; this much of it is ignored. */
  readonly maxNoiseBytes: number;
  /** Returns false when the line was not a message. */
  onLine(line: string): boolean;
  /** Called once; nothing is read afterwards. */
  onFailure(reason: string): void;
}

/** A line costs more than its bytes, however short it is. */
const NOISE_LINE_BYTES = 256;

export function lineReader(options: LineReaderOptions): (bytes: Buffer) => void {
  let parts: Buffer[] = [];
  let size = 0;
  let noise = 0;
  let failed = false;

  function fail(reason: string): void {
    failed = true;
    parts = [];
    options.onFailure(reason);
  }

  function take(piece: Buffer): boolean {
    size += piece.length;
    if (size <= options.maxLineBytes) {
      parts.push(piece);
      return true;
    }
    fail(`it wrote a line longer than ${megabytes(options.maxLineBytes)}`);
    return false;
  }

  function finish(): void {
    const line = Buffer.concat(parts, size).toString("utf8").trim();
    const length = size;
    parts = [];
    size = 0;
    if (line === "" || options.onLine(line)) return;
    noise += Math.max(length, NOISE_LINE_BYTES);
    if (noise > options.maxNoiseBytes)
      fail(`it wrote more than ${megabytes(options.maxNoiseBytes)} that is no JSON-RPC message`);
  }

  return (bytes) => {
    let start = 0;
    while (!failed) {
      const end = bytes.indexOf(10, start);
      if (!take(bytes.subarray(start, end < 0 ? bytes.length : end)) || end < 0) return;
      finish();
      start = end + 1;
    }
  };
}

const megabytes = (bytes: number): string => `${bytes / 1024 / 1024} MiB`;
