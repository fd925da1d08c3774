/**
 * Tracks the mount points that running commands use. A mount needs an existing file or folder, so an empty one is
 * created in the workspace for a missing protected name. It must not be removed while any command, of this process or
 * another, has something mounted on it: that would remove the mount. It is removed when its last command ends. After a
 * kill, the watchdog or the next start removes it.
 */
import { lstatSync, readFileSync } from "node:fs";
import { basename, dirname, join, sep } from "node:path";
import * as z from "zod";
import { type Disk, replaceFile } from "../../../lib/node/disk.ts";
import { namesIn, startOf } from "../process/processes.ts";
import { cleanUpHere, makePoints } from "./left-behind.ts";
import type { KnownTree, LeftBehind, MountPoint, ProtectedLink } from "./leftovers.ts";
import type { MountPlan } from "./sandbox-profile.ts";
import { SparePoints } from "./spare-points.ts";

const Record_ = z.object({
  pid: z.int(),
  started: z.string(),
  points: z.array(z.object({ path: z.string(), kind: z.enum(["file", "folder", "commondir"]) })).max(10_000),
  /** Set for a detached command: only its record allows cleaning up if its keeper is killed. */
  links: z
    .array(z.object({ path: z.string(), target: z.string(), end: z.string(), real: z.string().default("") }))
    .default([]),
  trees: z
    .array(
      z.object({
        root: z.string(),
        gitFolders: z.array(z.string()),
        gitLinks: z.array(z.string()).default([]),
        linkedGit: z.array(z.string()).default([]),
        protectedNames: z.array(z.string()),
        unreadable: z.array(z.string()),
      }),
    )
    .default([]),
});
type MountRecord = z.infer<typeof Record_>;

interface Held {
  /**
   * Entries that count as existing before the command: those that existed before every other running command. The other
   * commands can still change what they created, and move it under a mount of this command.
   */
  readonly known: readonly KnownTree[];
  /** Creates the missing points after their record is on disk. Rejects when a name was taken meanwhile. */
  make(): Promise<void>;
  /** Call when the command has ended. Returns one sentence for each change it undid. */
  release(left: LeftBehind): Promise<string[]>;
  /** Call instead when the command will outlive this process. */
  handOver(pid: number, left: LeftBehind): Promise<void>;
}

interface RunningCommand {
  /** The trees before it started. */
  readonly trees: readonly KnownTree[];
  readonly links: readonly ProtectedLink[];
  readonly mounts: ReadonlySet<string>;
}

/** The record stays this long after the last command, so that successive commands write it once. */
const RECORD_IDLE_MS = 1000;

export class MountPoints {
  readonly #folder: string;
  readonly #disk: Disk;
  readonly #spare: SparePoints;
  readonly #users = new Map<string, { point: MountPoint; count: number }>();
  readonly #running = new Set<RunningCommand>();
  #recorded = new Map<string, MountPoint>();
  #isRecorded = false;
  #holds = 0;
  #writing: Promise<void> = Promise.resolve();
  #removing: Promise<void> = Promise.resolve();
  #idle: NodeJS.Timeout | undefined;

  constructor(folder: string, disk: Disk) {
    this.#folder = folder;
    this.#disk = disk;
    this.#spare = new SparePoints(folder);
  }

  /** The folder of the records. */
  get folder(): string {
    return this.#folder;
  }

  /** Returns whether another command currently runs in a sandbox, in this process or another. */
  isShared(): boolean {
    return this.#holds > 1 || readRecords(this.#folder, this.#isRecorded).living.length > 0;
  }

  /**
   * Resolves when no removal is running. The caller must then read the disk and call `hold` without awaiting in
   * between.
   */
  async settled(): Promise<void> {
    for (let seen: unknown; seen !== this.#removing; ) {
      seen = this.#removing;
      await seen;
    }
  }

  /** Returns paths that exist only as mount points of running commands, here or in another process. */
  placeholders(): Set<string> {
    return new Set([...this.#users.keys(), ...this.#usedByOthers()]);
  }

  /**
   * Returns a test for paths that no running command can rename, because they are mount points in each sandbox that can
   * write there. Attached commands of other processes are not known here.
   */
  fixedPaths(): (path: string) => boolean {
    const detached = readRecords(this.#folder, this.#isRecorded).living.map(({ trees }) => ({
      trees,
      mounts: new Set(trees.flatMap(({ gitFolders, protectedNames }) => [...gitFolders, ...protectedNames])),
    }));
    const others = [...this.#running, ...detached];
    return (path) =>
      others.every(({ trees, mounts }) => mounts.has(path) || !trees.some(({ root }) => path.startsWith(root + sep)));
  }

  /**
   * Returns the protected links that running commands found when they started. Such a command can turn a link while
   * the next one starts and turn it back later. Attached commands of other processes are not known here.
   */
  heldLinks(): ProtectedLink[] {
    const detached = readRecords(this.#folder, this.#isRecorded).living;
    return [...this.#running, ...detached].flatMap(({ links }) => links);
  }

  /** Registers a user synchronously. */
  hold({ points, trees, links, mounts }: Pick<MountPlan, "points" | "trees" | "links" | "mounts">): Held {
    const placeholders = this.placeholders();
    const known = this.#knownToAll(trees);
    const command = { trees: known, links, mounts: new Set(mounts.map(({ path }) => path)) };
    this.#running.add(command);
    clearTimeout(this.#idle);
    this.#holds++;
    for (const point of points) {
      const user = this.#users.get(point.path) ?? { point, count: 0 };
      user.count++;
      this.#users.set(point.path, user);
    }
    let released = false;
    const release = async (left: LeftBehind): Promise<string[]> => {
      if (released) return [];
      released = true;
      return this.#drop(points, left).finally(() => this.#running.delete(command));
    };
    const handOver = async (pid: number, left: LeftBehind): Promise<void> => {
      await this.#disk.mkdir(this.#folder);
      await replaceFile(this.#disk, this.#recordPath(pid), recordText(pid, left));
      await release(NOTHING);
    };
    const make = async (): Promise<void> => {
      await this.#record(points);
      await this.#spare.exclusively(this.#recordPath(), (canMove) => {
        // A point that another command uses already exists. Any other entry of that name was created by another program.
        const missing = points.filter(({ path }) => !(this.#isShared(path, placeholders) && exists(path)));
        makePoints(canMove ? this.#spare.take(missing) : missing);
      });
    };
    return { known, make, release, handOver };
  }

  /** Cleans up after processes that have ended. Returns one sentence for each change it undid. */
  async sweep(): Promise<string[]> {
    const notes: string[] = [];
    await this.#remove(async () => {
      for (const { path, record } of readRecords(this.#folder, this.#isRecorded).dead) {
        notes.push(...(await this.#cleanUp(record.points, record)));
        await this.#disk.unlink(path).catch(() => undefined);
      }
    });
    return notes;
  }

  /** Deletes the record when no command runs. */
  async close(): Promise<void> {
    clearTimeout(this.#idle);
    await this.#writing.catch(() => undefined);
    if (this.#holds > 0 || !this.#isRecorded) return;
    const points = [...this.#recorded.values()];
    this.#recorded = new Map();
    this.#isRecorded = false;
    await this.#remove(async () => {
      await this.#disk.unlink(this.#recordPath()).catch(() => undefined);
      await this.#cleanUp(points, NOTHING);
    });
  }

  async #drop(points: readonly MountPoint[], left: LeftBehind): Promise<string[]> {
    this.#holds--;
    for (const { path } of points) {
      const user = this.#users.get(path);
      if (user !== undefined && --user.count === 0) this.#users.delete(path);
    }
    const notes: string[] = [];
    await this.#remove(async () => {
      notes.push(...(await this.#cleanUp(points, left)));
    });
    if (this.#holds === 0) {
      clearTimeout(this.#idle);
      this.#idle = setTimeout(() => void this.sweep().then(() => this.close()), RECORD_IDLE_MS);
      this.#idle.unref();
    }
    return notes;
  }

  #isShared(path: string, known: ReadonlySet<string>): boolean {
    return known.has(path) || (this.#users.get(path)?.count ?? 0) > 1;
  }

  #cleanUp(points: readonly MountPoint[], left: LeftBehind): Promise<string[]> {
    return this.#spare.exclusively(this.#recordPath(), (canMove) => {
      const used = this.placeholders();
      const unused = points.filter(({ path }) => !used.has(path));
      return cleanUpHere({ ...left, points: canMove ? this.#spare.putBack(unused) : unused });
    });
  }

  #remove(work: () => Promise<void>): Promise<void> {
    this.#removing = this.#removing.then(work, work);
    return this.#removing;
  }

  async #record(points: readonly MountPoint[]): Promise<void> {
    const fresh = points.filter(({ path }) => !this.#recorded.has(path));
    for (const point of fresh) this.#recorded.set(point.path, point);
    // Written even without points: a record shows other processes that commands run.
    if (fresh.length > 0 || !this.#isRecorded) {
      this.#isRecorded = true;
      const text = recordText(process.pid, { ...NOTHING, points: [...this.#recorded.values()] });
      this.#writing = this.#writing
        .catch(() => undefined)
        .then(() => this.#disk.mkdir(this.#folder))
        .then(() => replaceFile(this.#disk, this.#recordPath(), text));
    }
    await this.#writing;
  }

  #knownToAll(trees: readonly KnownTree[]): KnownTree[] {
    const others = [
      ...[...this.#running].map(({ trees: before }) => before),
      ...readRecords(this.#folder, this.#isRecorded).living.map((record) => record.trees),
    ].flat();
    const isOld = (path: string, root: string, list: "gitFolders" | "protectedNames"): boolean =>
      others.every((other) => {
        if (!path.startsWith(other.root + sep) || other[list].includes(path)) return true;
        // Names at the top of a workspace are protected differently and not listed.
        return other.root !== root && dirname(path) === other.root && basename(path).startsWith(".");
      });
    return trees.map((tree) => ({
      ...tree,
      gitFolders: tree.gitFolders.filter((path) => isOld(path, tree.root, "gitFolders")),
      protectedNames: tree.protectedNames.filter((path) => isOld(path, tree.root, "protectedNames")),
    }));
  }

  #usedByOthers(): Set<string> {
    const { living } = readRecords(this.#folder, this.#isRecorded);
    return new Set(living.flatMap(({ points }) => points.map(({ path }) => path)));
  }

  #recordPath(pid = process.pid): string {
    return join(this.#folder, recordName(pid));
  }
}

const NOTHING: LeftBehind = { points: [], links: [], trees: [] };

const exists = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

export const recordName = (pid: number): string => `mounts-${pid}.json`;

function recordText(pid: number, { points, links, trees }: LeftBehind): string {
  return JSON.stringify({ pid, started: startOf(pid), points, links, trees });
}

interface Records {
  readonly living: readonly MountRecord[];
  readonly dead: readonly { readonly path: string; readonly record: MountRecord }[];
}

/**
 * Reads the records of other processes. Until this process has its own, it may find a record of an older process with
 * its pid.
 */
function readRecords(folder: string, hasOwn: boolean): Records {
  const living: MountRecord[] = [];
  const dead: { path: string; record: MountRecord }[] = [];
  for (const name of namesIn(folder).filter((entry) => /^mounts-\d+\.json$/.test(entry))) {
    if (hasOwn && name === recordName(process.pid)) continue;
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
