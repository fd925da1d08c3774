/** Prompts that were sent, newest last, in one file for all folders. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { nodeDisk, replaceFile } from "../../lib/node/disk.ts";

const MAX_ENTRIES = 1_000;
const MAX_ENTRY_CHARACTERS = 20_000;
/** The file is cut to `MAX_ENTRIES` when it has this many. */
const MAX_LINES = 2 * MAX_ENTRIES;

export class PromptHistory {
  readonly #path: string;
  readonly #home: string;
  #entries: string[] = [];
  /** Position while browsing; undefined when not. */
  #at: number | undefined;
  #kept = "";

  constructor(home: string) {
    this.#home = home;
    this.#path = join(home, "prompt-history.jsonl");
  }

  async load(): Promise<void> {
    const text = await readFile(this.#path, "utf8").catch(() => "");
    const lines = text.split("\n").filter((line) => line !== "");
    const read = lines.slice(-MAX_ENTRIES).flatMap(entryOf);
    this.#entries = [...read, ...this.#entries];
    if (lines.length <= MAX_LINES) return;
    await replaceFile(nodeDisk, this.#path, read.map((entry) => `${JSON.stringify(entry)}\n`).join("")).catch(
      () => undefined,
    );
  }

  get newestFirst(): readonly string[] {
    return [...this.#entries].reverse();
  }

  /** Never rejects. */
  async add(text: string): Promise<void> {
    this.#at = undefined;
    if (text.trim() === "" || text.length > MAX_ENTRY_CHARACTERS || this.#entries.at(-1) === text) return;
    this.#entries.push(text);
    try {
      await nodeDisk.mkdir(this.#home);
      const fd = await nodeDisk.openAppend(this.#path);
      await nodeDisk.write(fd, Buffer.from(`${JSON.stringify(text)}\n`)).finally(() => nodeDisk.close(fd));
    } catch {
      // The prompt itself is in the session's log.
    }
  }

  /** The entry before the current one; `draft` comes back when browsing ends. */
  older(draft: string): string | undefined {
    const from = this.#at ?? this.#entries.length;
    if (from === 0) return undefined;
    if (this.#at === undefined) this.#kept = draft;
    this.#at = from - 1;
    return this.#entries[this.#at];
  }

  newer(): string | undefined {
    if (this.#at === undefined) return undefined;
    this.#at++;
    if (this.#at < this.#entries.length) return this.#entries[this.#at];
    this.#at = undefined;
    return this.#kept;
  }

  /** Typing ends browsing. */
  leave(): void {
    this.#at = undefined;
  }

  get isBrowsing(): boolean {
    return this.#at !== undefined;
  }

  search(words: string): readonly string[] {
    const wanted = words.toLowerCase();
    const found = this.newestFirst.filter((entry) => entry.toLowerCase().includes(wanted));
    return [...new Set(found)];
  }
}

function entryOf(line: string): string[] {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "string" ? [value] : [];
  } catch {
    return [];
  }
}
