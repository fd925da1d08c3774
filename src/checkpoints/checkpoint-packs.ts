/**
 * Packs store the contents of many files in one file that is synced once. Syncing each file would delay a command by
 * seconds.
 *
 *   <checkpoints>/packs/<n>.pack   contents, one after the other, each sealed if there is a seal
 *                       <n>.json   offset and length of each content; written last, a pack without it is ignored
 */
import { open, readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { parseJson } from "../lib/json.ts";
import { type Disk, replaceFile, writeNewFile } from "../lib/node/disk.ts";
import type { Seal } from "../lib/node/seal.ts";
import { TroupeError } from "../protocol/errors.ts";
import { indexSchema } from "./checkpoint-schema.ts";
import { sha256 } from "./checkpoint-tree.ts";

interface PackEntry {
  readonly pack: string;
  readonly offset: number;
  readonly length: number;
}

/** Limit for all packs of a session together. */
const MAX_BYTES = 1024 * 1024 * 1024;

export class CheckpointPacks {
  readonly #folder: string;
  readonly #disk: Disk;
  readonly #seal: () => Promise<Seal | undefined>;
  #loaded: Promise<Map<string, PackEntry>> | undefined;
  #count = 0;
  #bytes = 0;

  constructor(folder: string, disk: Disk, seal: () => Promise<Seal | undefined>) {
    this.#folder = folder;
    this.#disk = disk;
    this.#seal = seal;
  }

  async has(hash: string): Promise<boolean> {
    return (await this.#entries()).has(hash);
  }

  /** Stores the contents and resolves when they are on disk. Stores nothing if it throws. */
  async keep(contents: AsyncIterable<Buffer>): Promise<void> {
    const entries = await this.#entries();
    if (this.#bytes > MAX_BYTES) {
      throw new TroupeError("limit", `The checkpoints of this session exceed ${MAX_BYTES / 2 ** 30} GiB.`, {
        hint: "Continue in a new session to be able to undo commands.",
      });
    }
    await this.#disk.mkdir(this.#folder);
    const pack = join(this.#folder, String(++this.#count));
    const fresh = new Map<string, PackEntry>();
    const seal = await this.#seal();
    let offset = 0;
    async function* unknown(): AsyncGenerator<Buffer> {
      for await (const content of contents) {
        const hash = sha256(content);
        if (entries.has(hash) || fresh.has(hash)) continue;
        const bytes = seal?.close(content) ?? content;
        fresh.set(hash, { pack, offset, length: bytes.length });
        offset += bytes.length;
        yield bytes;
      }
    }
    try {
      await writeNewFile(this.#disk, `${pack}.pack`, unknown());
      const index = [...fresh].map(([hash, entry]) => [hash, entry.offset, entry.length]);
      if (fresh.size > 0) await replaceFile(this.#disk, `${pack}.json`, JSON.stringify(index));
    } catch (error) {
      await this.#disk.unlink(`${pack}.pack`).catch(() => undefined);
      throw error;
    }
    if (fresh.size === 0) return this.#disk.unlink(`${pack}.pack`);
    await this.#disk.syncDirectory(this.#folder);
    this.#bytes += offset;
    for (const [hash, entry] of fresh) entries.set(hash, entry);
  }

  /** Returns undefined if the content is not in a pack. The caller must verify the hash of the bytes. */
  async read(hash: string): Promise<Buffer | undefined> {
    const entry = (await this.#entries()).get(hash);
    const handle = entry && (await open(`${entry.pack}.pack`, "r").catch(() => undefined));
    if (entry === undefined || handle === undefined) return undefined;
    try {
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(entry.length), 0, entry.length, entry.offset);
      if (bytesRead !== entry.length) return undefined;
      const seal = await this.#seal();
      return seal ? seal.open(buffer) : buffer;
    } finally {
      await handle.close();
    }
  }

  #entries(): Promise<Map<string, PackEntry>> {
    this.#loaded ??= this.#load();
    return this.#loaded;
  }

  async #load(): Promise<Map<string, PackEntry>> {
    const entries = new Map<string, PackEntry>();
    for (const name of await readdir(this.#folder).catch(() => [])) {
      const [, number = "", kind] = /^(\d+)\.(pack|json)$/.exec(name) ?? [];
      this.#count = Math.max(this.#count, Number(number));
      const pack = join(this.#folder, number);
      if (kind === "pack") this.#bytes += (await stat(`${pack}.pack`).catch(() => undefined))?.size ?? 0;
      if (kind !== "json") continue;
      const json = parseJson(await readFile(`${pack}.json`, "utf8").catch(() => ""));
      const index = json.ok ? indexSchema.safeParse(json.value) : undefined;
      for (const [hash, offset, length] of index?.data ?? []) entries.set(hash, { pack, offset, length });
    }
    return entries;
  }
}
