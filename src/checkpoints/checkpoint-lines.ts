/** The change log `checkpoints/changes.jsonl`: one line per change, in order, append-only. */
import { open, readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseJson } from "../lib/json.ts";
import type { Disk } from "../lib/node/disk.ts";
import { type CheckpointLine, lineSchema } from "./checkpoint-schema.ts";
import { undefinedIfMissing } from "./checkpoint-tree.ts";

/** Reads and appends lines. Callers must serialize calls to `append`. */
export class CheckpointLines {
  readonly #folder: string;
  readonly #index: string;
  readonly #disk: Disk;
  #seq: number | undefined;

  constructor(folder: string, disk: Disk) {
    this.#folder = folder;
    this.#index = join(folder, "changes.jsonl");
    this.#disk = disk;
  }

  /** Returns the next free number. Reads the log once, because only one process writes a session. */
  async nextSeq(): Promise<number> {
    this.#seq ??= (await this.read()).reduce((most, line) => Math.max(most, "seq" in line ? line.seq : 0), 0);
    return this.#seq + 1;
  }

  /** Returns the valid lines. Skips lines torn by a crash: their append never completed. */
  async read(): Promise<CheckpointLine[]> {
    const text = await readFile(this.#index, "utf8").catch(undefinedIfMissing);
    return (text ?? "").split("\n").flatMap((line) => {
      const json = parseJson(line);
      const parsed = json.ok ? lineSchema.safeParse(json.value) : undefined;
      return parsed?.success ? [parsed.data] : [];
    });
  }

  async append(lines: readonly CheckpointLine[]): Promise<void> {
    const disk = this.#disk;
    await disk.mkdir(this.#folder);
    const start = (await endsTorn(this.#index)) ? "\n" : "";
    const fd = await disk.openAppend(this.#index);
    try {
      await disk.write(fd, Buffer.from(start + lines.map((line) => `${JSON.stringify(line)}\n`).join("")));
      await disk.sync(fd);
    } finally {
      await disk.close(fd);
    }
    await disk.syncDirectory(this.#folder);
    for (const line of lines) if ("seq" in line) this.#seq = Math.max(this.#seq ?? 0, line.seq);
  }
}

async function endsTorn(path: string): Promise<boolean> {
  const handle = await open(path, "r").catch(undefinedIfMissing);
  if (!handle) return false;
  try {
    const { size } = await handle.stat();
    const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, Math.max(0, size - 1));
    return size > 0 && buffer[0] !== 0x0a;
  } finally {
    await handle.close();
  }
}
