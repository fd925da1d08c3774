/**
 * Drafts on disk, one file per open terminal. A draft is written shortly after each key, so that it survives a kill.
 * A terminal that opens in a folder takes over the newest draft of that folder whose process is gone.
 */
import { randomBytes } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { nodeDisk, replaceSmallFileNow } from "../../lib/node/disk.ts";

/** A draft up to this size is written right after the first key is painted, and then at most once in `PAUSE_MS`. */
const SMALL_BYTES = 64 * 1024;
const PAUSE_MS = 40;
/** The delay of a larger one. */
const LARGE_WAIT_MS = 100;
const MAX_BYTES = 64 * 1024 * 1024;

/** The draft of the prompt, and those of messages to agents by their ids. */
export interface DraftTexts {
  readonly text: string;
  readonly agents: Readonly<Record<string, string>>;
}

interface Stored extends DraftTexts {
  readonly cwd: string;
  readonly pid: number;
  readonly at: number;
}

export class Drafts {
  readonly #folder: string;
  readonly #cwd: string;
  readonly #path: string;
  #pending: DraftTexts | undefined;
  #writtenAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #isStored = false;

  constructor(home: string, cwd: string) {
    this.#folder = join(home, "drafts");
    this.#cwd = cwd;
    this.#path = join(this.#folder, `${process.pid}.json`);
  }

  /** Returns the draft that a terminal in this folder left behind, and removes its file. */
  async recover(): Promise<DraftTexts | undefined> {
    const names = await readdir(this.#folder).catch(() => []);
    let found: (Stored & { readonly path: string }) | undefined;
    for (const name of names.filter((one) => one.endsWith(".json"))) {
      const path = join(this.#folder, name);
      const stored = await readStored(path);
      if (!stored || stored.cwd !== this.#cwd || isAlive(stored.pid)) continue;
      if (!found || stored.at > found.at) found = { ...stored, path };
    }
    if (found) await nodeDisk.remove(found.path).catch(() => undefined);
    return found;
  }

  /** Writes the draft soon; an empty one removes the file. */
  changed(texts: DraftTexts): void {
    this.#pending = texts;
    if (this.#timer) return;
    const isSmall = texts.text.length <= SMALL_BYTES;
    const wait = isSmall ? Math.max(0, this.#writtenAt + PAUSE_MS - performance.now()) : LARGE_WAIT_MS;
    this.#timer = setTimeout(() => void this.flush(), wait);
  }

  /** Never rejects: a full disk must not take the prompt away. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const texts = this.#pending;
    if (texts === undefined) return this.#writing;
    this.#pending = undefined;
    this.#writtenAt = performance.now();
    this.#writing = this.#writing.then(() => this.#store(texts)).catch(() => undefined);
    return this.#writing;
  }

  async #store({ text, agents }: DraftTexts): Promise<void> {
    if (text === "" && Object.values(agents).every((one) => one === "")) {
      if (this.#isStored) await nodeDisk.remove(this.#path);
      this.#isStored = false;
      return;
    }
    if (text.length > MAX_BYTES) return;
    const stored: Stored = { cwd: this.#cwd, pid: process.pid, at: Date.now(), text, agents };
    await this.#write(Buffer.from(JSON.stringify(stored)));
    this.#isStored = true;
  }

  /**
   * Not synced to disk: a draft must survive the process, and at once; a busy disk would delay it. A small one is written
   * without the thread pool: on a busy machine each of its four steps would wait for a turn of the processor.
   */
  async #write(bytes: Buffer): Promise<void> {
    const temporary = `${this.#path}.${randomBytes(4).toString("hex")}.tmp`;
    if (bytes.length <= SMALL_BYTES) return replaceSmallFileNow(this.#path, bytes, temporary);
    await nodeDisk.mkdir(this.#folder);
    const fd = await nodeDisk.openExclusive(temporary);
    await nodeDisk.write(fd, bytes).finally(() => nodeDisk.close(fd));
    await nodeDisk.rename(temporary, this.#path);
  }
}

async function readStored(path: string): Promise<Stored | undefined> {
  try {
    const value = JSON.parse(await readFile(path, "utf8")) as Partial<Stored>;
    const { cwd, pid, at, text, agents = {} } = value;
    if (typeof cwd !== "string" || typeof pid !== "number" || typeof at !== "number") return undefined;
    const texts = Object.entries(agents).filter((entry): entry is [string, string] => typeof entry[1] === "string");
    return typeof text === "string" ? { cwd, pid, at, text, agents: Object.fromEntries(texts) } : undefined;
  } catch {
    return undefined;
  }
}

function isAlive(pid: number): boolean {
  if (pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
