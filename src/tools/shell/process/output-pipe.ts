/**
 * A real pipe for a child's output. Node gives children sockets, on which `echo x > /dev/stderr` fails. Its streams
 * also allocate for every read, while one buffer is enough.
 */
import * as fs from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";
import { nodeDisk } from "../../../lib/node/disk.ts";

const READ_BYTES = 64 * 1024;
const BATCH = 32;

export interface OutputPipe {
  /** For the child; the caller must close it once the child has started. */
  readonly writeFd: number;
  /** Starts reading. The bytes are only valid during the call; `false` pauses reading until `resume`. */
  read(onBytes: (bytes: Buffer) => boolean): void;
  resume(): void;
  /** Resolves when every writer has closed the pipe. */
  readonly ended: Promise<void>;
  /** Stops reading, even if writers remain. */
  destroy(): void;
}

/** Creates pipes in a folder, in batches, because each batch needs a child process. */
export class OutputPipes {
  readonly #folder: string;
  readonly #unused: string[] = [];

  constructor(folder: string) {
    this.#folder = folder;
  }

  async open(): Promise<OutputPipe> {
    const path = await this.#next();
    let readFd: number | undefined;
    try {
      readFd = fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK);
      return outputPipe(readFd, fs.openSync(path, fs.constants.O_WRONLY));
    } catch (error) {
      if (readFd !== undefined) fs.closeSync(readFd);
      throw error;
    } finally {
      await nodeDisk.unlink(path).catch(() => undefined);
    }
  }

  /** Removes unused pipes. */
  async close(): Promise<void> {
    for (const path of this.#unused.splice(0)) await nodeDisk.unlink(path).catch(() => undefined);
  }

  async #next(): Promise<string> {
    // The folder may have been cleaned meanwhile.
    for (let ready = this.#unused.pop(); ready !== undefined; ready = this.#unused.pop()) {
      if (fs.existsSync(ready)) return ready;
    }
    await nodeDisk.mkdir(this.#folder);
    const names = Array.from({ length: BATCH }, () => join(this.#folder, `${crypto.randomUUID()}.pipe`));
    const [first = "", ...more] = names;
    await makeFifos(names);
    this.#unused.push(...more);
    return first;
  }
}

function outputPipe(readFd: number, writeFd: number): OutputPipe {
  let socket: Socket | undefined;
  let settle: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => {
    settle = resolve;
  });
  return {
    writeFd,
    ended,
    read(onBytes) {
      const onread = {
        buffer: Buffer.allocUnsafeSlow(READ_BYTES),
        callback: (length: number, bytes: Uint8Array) => onBytes(Buffer.from(bytes.buffer, bytes.byteOffset, length)),
      };
      // The constructor accepts `onread` like connect(), but its type does not list it.
      const options: ConstructorParameters<typeof Socket>[0] & { onread: typeof onread } = {
        fd: readFd,
        readable: true,
        writable: false,
        onread,
      };
      socket = new Socket(options);
      socket.on("error", () => undefined);
      socket.on("close", settle);
      socket.resume();
    },
    resume: () => void socket?.resume(),
    destroy() {
      if (socket === undefined) fs.closeSync(readFd);
      else socket.destroy();
      settle();
    },
  };
}

export async function makeFifos(paths: readonly string[]): Promise<void> {
  const { execFile } = await import("node:child_process");
  await new Promise<void>((resolve, reject) => {
    execFile("mkfifo", ["-m", "600", ...paths], { timeout: 5000, env: { PATH: "/usr/bin:/bin" } }, (error) =>
      error ? reject(error) : resolve(),
    );
  });
}
