/**
 * Bubblewrap mounts only on what exists, so for a protected name that is missing it makes an empty file or folder in
 * the workspace. Here is kept who uses which, across processes, so that they go away afterwards: not earlier, because
 * removing a mount point takes away the mount of everyone who uses it, and also after a crash, at the next start.
 */
import { lstatSync, readFileSync } from "node:fs";
import { rmdir } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod";
import { type Disk, replaceFile } from "../../lib/node/disk.ts";
import { namesIn, startOf } from "./processes.ts";
import type { MountPoint } from "./sandbox-profile.ts";

const Record_ = z.object({
  pid: z.int(),
  started: z.string(),
  points: z.array(z.object({ path: z.string(), kind: z.enum(["file", "folder"]) })).max(10_000),
});
type MountRecord = z.infer<typeof Record_>;

interface Held {
  /** Resolves when a crash can no longer make us forget. */
  readonly recorded: Promise<void>;
  /** To be called when the command has ended. */
  release(): Promise<void>;
  /** To be called instead when the command is to outlive us. */
  handOver(pid: number): Promise<void>;
}

export class MountPoints {
  readonly #folder: string;
  readonly #disk: Disk;
  readonly #users = new Map<string, { point: MountPoint; count: number }>();
  #recorded = new Map<string, MountPoint>();
  #writing: Promise<void> = Promise.resolve();
  #removing: Promise<void> = Promise.resolve();

  constructor(folder: string, disk: Disk) {
    this.#folder = folder;
    this.#disk = disk;
  }

  /** Resolves when nothing is being removed: only then look at the disk, and hold what is needed in the same breath. */
  async settled(): Promise<void> {
    for (let seen: unknown; seen !== this.#removing; ) {
      seen = this.#removing;
      await seen;
    }
  }

  /** Paths that exist only as mount points of commands that run now, here or in another process. */
  placeholders(): Set<string> {
    return new Set([...this.#users.keys(), ...this.#usedByOthers()]);
  }

  /** Counts a user, at once. */
  hold(points: readonly MountPoint[]): Held {
    for (const point of points) {
      const user = this.#users.get(point.path) ?? { point, count: 0 };
      user.count++;
      this.#users.set(point.path, user);
    }
    let released = false;
    const release = async (): Promise<void> => {
      if (released) return;
      released = true;
      await this.#drop(points);
    };
    const handOver = async (pid: number): Promise<void> => {
      await this.#disk.mkdir(this.#folder);
      await replaceFile(this.#disk, this.#recordPath(pid), recordText(pid, points));
      await release();
    };
    return { recorded: this.#record(points), release, handOver };
  }

  /** Removes what processes that no longer live have left. */
  sweep(): Promise<void> {
    return this.#remove(async () => {
      for (const { path, record } of readRecords(this.#folder).dead) {
        await this.#removeUnused(record.points);
        await this.#disk.unlink(path).catch(() => undefined);
      }
    });
  }

  /** The record is no longer needed when nothing of ours runs. */
  async close(): Promise<void> {
    await this.#writing.catch(() => undefined);
    if (this.#users.size > 0) return;
    const points = [...this.#recorded.values()];
    this.#recorded = new Map();
    await this.#remove(async () => {
      await this.#disk.unlink(this.#recordPath()).catch(() => undefined);
      await this.#removeUnused(points);
    });
  }

  async #drop(points: readonly MountPoint[]): Promise<void> {
    for (const { path } of points) {
      const user = this.#users.get(path);
      if (user !== undefined && --user.count === 0) this.#users.delete(path);
    }
    await this.#remove(() => this.#removeUnused(points));
    await this.sweep();
  }

  #remove(work: () => Promise<void>): Promise<void> {
    this.#removing = this.#removing.then(work);
    return this.#removing;
  }

  /** Only what is still empty: someone may have put something there meanwhile. */
  async #removeUnused(points: readonly MountPoint[]): Promise<void> {
    const used = this.placeholders();
    for (const { path, kind } of points.filter((point) => !used.has(point.path)).reverse()) {
      if (kind === "folder") await rmdir(path).catch(() => undefined);
      else if (isEmptyFile(path)) await this.#disk.unlink(path).catch(() => undefined);
    }
  }

  async #record(points: readonly MountPoint[]): Promise<void> {
    const fresh = points.filter(({ path }) => !this.#recorded.has(path));
    for (const point of fresh) this.#recorded.set(point.path, point);
    if (fresh.length > 0) {
      const text = recordText(process.pid, [...this.#recorded.values()]);
      this.#writing = this.#writing
        .catch(() => undefined)
        .then(() => this.#disk.mkdir(this.#folder))
        .then(() => replaceFile(this.#disk, this.#recordPath(), text));
    }
    await this.#writing;
  }

  #usedByOthers(): Set<string> {
    const { living } = readRecords(this.#folder);
    return new Set(living.flatMap(({ points }) => points.map(({ path }) => path)));
  }

  #recordPath(pid = process.pid): string {
    return join(this.#folder, `mounts-${pid}.json`);
  }
}

function recordText(pid: number, points: readonly MountPoint[]): string {
  const record: MountRecord = { pid, started: startOf(pid), points: [...points] };
  return JSON.stringify(record);
}

function readRecords(folder: string): { living: MountRecord[]; dead: { path: string; record: MountRecord }[] } {
  const living: MountRecord[] = [];
  const dead: { path: string; record: MountRecord }[] = [];
  for (const name of namesIn(folder).filter((entry) => /^mounts-\d+\.json$/.test(entry))) {
    const path = join(folder, name);
    const record = readRecord(path);
    if (record === undefined) continue;
    const isOurs = record.pid === process.pid && record.started === startOf(process.pid);
    if (isOurs) continue;
    if (startOf(record.pid) === record.started) living.push(record);
    else dead.push({ path, record });
  }
  return { living, dead };
}

function readRecord(path: string): MountRecord | undefined {
  try {
    return Record_.parse(JSON.parse(readFileSync(path, "utf8")));
  } catch {
    return undefined;
  }
}

function isEmptyFile(path: string): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  return stat?.isFile() === true && stat.size === 0;
}
