/**
 * Stores empty files and folders between commands and moves them into place as mount points. To create and remove them
 * for each command is slow: ext4 searches longer for a free inode the more were removed in the last minutes.
 */
import * as fs from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { namesIn, startOf } from "../process/processes.ts";
import type { MountPoint } from "./leftovers.ts";
import { PinnedFolders } from "./pinned-folders.ts";

const MAX_SPARE = 200;
const LOCK_ATTEMPTS = 2000;
const COMMONDIR_BYTES = 2;
/** An entry that changed this recently can change again without a new time stamp. */
const SETTLED_AFTER_MS = 50;

export class SparePoints {
  readonly #folder: string;
  readonly #lock: string;
  /** Entries of the folder. Other processes may have taken some of them. */
  #names: string[] | undefined;
  /** States of folders that were empty; see `stateOf`. */
  readonly #empty = new Set<string>();
  readonly #mark = crypto.randomUUID();
  #count = 0;

  /** `folder`: of the records. */
  constructor(folder: string) {
    this.#folder = join(folder, "spare");
    this.#lock = join(folder, "points.lock");
  }

  /**
   * Runs `work` while no other process makes or removes mount points: a folder that is moved to a path replaces an
   * empty one there, and removes the mount that another command has on it. `record`: a file with the identity of this
   * process, to which the lock is a hard link. Where that is impossible, nothing is moved.
   */
  async exclusively<T>(record: string, work: (canMove: boolean) => T): Promise<T> {
    for (let tries = 0; tries < LOCK_ATTEMPTS; tries++) {
      const locked = lockWith(record, this.#lock);
      if (locked === "impossible") return work(false);
      if (locked === "held") {
        await delay(1);
        continue;
      }
      try {
        return work(true);
      } finally {
        attempt(() => fs.unlinkSync(this.#lock));
      }
    }
    throw new Error(`Another troupe process holds ${this.#lock}. If there is none, remove that file.`);
  }

  /** Returns the points that must be created. Call it in `exclusively`. */
  take(points: readonly MountPoint[]): MountPoint[] {
    const folders = new PinnedFolders();
    try {
      return points.filter(({ path, kind }) => {
        // The parent may be a point that must still be created.
        const leaf = attempt(() => folders.leaf(path));
        if (leaf === undefined || fs.lstatSync(leaf, { throwIfNoEntry: false }) !== undefined) return true;
        return !this.#takeOne(kind, leaf);
      });
    } finally {
      folders.close();
    }
  }

  /** Returns the points that are still there: folders with content, changed files. Call it in `exclusively`. */
  putBack(points: readonly MountPoint[]): MountPoint[] {
    const names = this.#known();
    const folders = new PinnedFolders();
    try {
      const isLeft = ({ path, kind }: MountPoint): boolean => {
        if (names.length >= MAX_SPARE) return true;
        const name = `${kind}-${this.#mark}-${++this.#count}`;
        const isMoved = attempt(() => this.#move(kind, folders.leaf(path), join(this.#folder, name))) ?? false;
        if (isMoved) names.push(name);
        return !isMoved;
      };
      // Children before their parents.
      return points.toReversed().filter(isLeft).toReversed();
    } finally {
      folders.close();
    }
  }

  #takeOne(kind: MountPoint["kind"], leaf: string): boolean {
    const names = this.#known();
    for (let index = names.length - 1; index >= 0; index--) {
      const name = names[index] ?? "";
      if (!name.startsWith(`${kind}-`)) continue;
      names.splice(index, 1);
      const spare = join(this.#folder, name);
      if (attempt(() => (kind === "folder" ? this.#move(kind, spare, leaf) : linkFile(kind, spare, leaf)))) return true;
    }
    return false;
  }

  /** Returns false when something was put into it. */
  #move(kind: MountPoint["kind"], from: string, to: string): boolean {
    const isUnused = (path: string): boolean => (kind === "folder" ? this.#isEmpty(path) : isUnusedFile(kind, path));
    if (!isUnused(from)) return false;
    fs.renameSync(from, to);
    if (isUnused(to)) return true;
    // Another program was faster.
    fs.renameSync(to, from);
    return false;
  }

  /** Lists a folder only if it may have changed since it was empty. */
  #isEmpty(folder: string): boolean {
    const stat = fs.lstatSync(folder);
    if (!stat.isDirectory()) return false;
    const state = stateOf(stat);
    if (state !== undefined && this.#empty.has(state)) return true;
    if (fs.readdirSync(folder).length > 0) return false;
    if (state !== undefined) this.#empty.add(state);
    return true;
  }

  #known(): string[] {
    if (this.#names === undefined) {
      attempt(() => fs.mkdirSync(this.#folder, { mode: 0o700 }));
      this.#names = namesIn(this.#folder);
    }
    return this.#names;
  }
}

function lockWith(record: string, lock: string): "locked" | "held" | "impossible" {
  try {
    fs.linkSync(record, lock);
    return "locked";
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) return "impossible";
  }
  if (isHeld(lock)) return "held";
  // Its process was killed. Whoever comes next tries again.
  attempt(() => fs.unlinkSync(lock));
  return "held";
}

/** Returns whether the process that holds the lock lives. */
function isHeld(lock: string): boolean {
  const text = attempt(() => fs.readFileSync(lock, "utf8"));
  // Released meanwhile.
  if (text === undefined) return true;
  const owner: unknown = attempt(() => JSON.parse(text));
  if (!(owner instanceof Object && "pid" in owner && "started" in owner)) return false;
  return typeof owner.pid === "number" && startOf(owner.pid) === owner.started;
}

/** Returns a text that changes when something is put into the folder, or undefined when it may not. */
function stateOf({ dev, ino, mtimeMs }: fs.Stats): string | undefined {
  return Date.now() - mtimeMs > SETTLED_AFTER_MS ? `${dev} ${ino} ${mtimeMs}` : undefined;
}

/** Unlike a rename, this never replaces a file. */
function linkFile(kind: "file" | "commondir", spare: string, leaf: string): boolean {
  if (!isUnusedFile(kind, spare)) return false;
  fs.linkSync(spare, leaf);
  fs.unlinkSync(spare);
  return true;
}

function isUnusedFile(kind: "file" | "commondir", path: string): boolean {
  const stat = fs.lstatSync(path);
  if (!stat.isFile() || stat.nlink > 1) return false;
  return kind === "file" ? stat.size === 0 : stat.size === COMMONDIR_BYTES && fs.readFileSync(path, "utf8") === ".\n";
}

function attempt<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
