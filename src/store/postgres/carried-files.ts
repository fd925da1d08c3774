/**
 * Lets a session's own files travel with it: its database, checkpoints, plan and the files that its agent wrote outside of
 * the working folder. They lie in the session's folder on the machine that has the session, and as rows for the next one.
 * Only changed files are stored, and only by the process that has the session.
 */

import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { lstat, readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Disk, replaceFile } from "../../lib/node/disk.ts";
import type { Database } from "./database.ts";

interface CarriedFilesOptions {
  readonly database: Database;
  readonly disk: Disk;
  readonly sessionId: string;
  readonly directory: string;
  /** Reports files that do not travel, one line each. */
  report?(line: string): void;
}

const FOLDERS = ["files", "checkpoints", "research"];
const FILES = ["plan.md", "session.db"];
/** Says under which epoch this machine had the session last. */
const MARKER = "carried-epoch";
const MAX_FILES = 2_000;
const MAX_FILE_BYTES = 16 * 1024 * 1024;
const MAX_BYTES = 64 * 1024 * 1024;
/** Shortest time between two looks for changes while the session works. */
const PAUSE_MS = 5_000;

export class CarriedFiles {
  readonly #options: CarriedFilesOptions;
  /** Hashes of the stored files. */
  #stored: Map<string, string> | undefined;
  /** Time and size of each file when it was stored. */
  readonly #seen = new Map<string, string>();
  readonly #reported = new Set<string>();
  #running: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #markedEpoch: string | undefined;

  constructor(options: CarriedFilesOptions) {
    this.#options = options;
  }

  /** Restores the files, unless this machine was the last one that had the session: then it has them. */
  async bring(epoch: string): Promise<void> {
    const { directory, disk } = this.#options;
    const stored = await this.#hashes();
    const marker = await readFile(join(directory, MARKER), "utf8").catch(() => "");
    if (stored.size > 0 && marker !== String(BigInt(epoch) - 1n)) {
      for (const path of await filesIn(directory)) {
        if (!stored.has(path)) await disk.remove(join(directory, path));
      }
      for (const [path, hash] of stored) await this.#bringOne(path, hash);
    }
    await this.#mark(epoch);
  }

  /** Stores what has changed a little later. */
  soon(epoch: string): void {
    this.#timer ??= setTimeout(() => void this.carry(epoch).catch(() => undefined), PAUSE_MS).unref();
  }

  /** Stores what has changed. */
  carry(epoch: string): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const next = this.#running.catch(() => undefined).then(() => this.#carry(epoch));
    this.#running = next;
    return next;
  }

  async #carry(epoch: string): Promise<void> {
    const { directory, database, sessionId } = this.#options;
    const all = await filesIn(directory);
    const paths = all.slice(0, MAX_FILES);
    if (all.length > MAX_FILES) this.#reportOnce(`only ${MAX_FILES} of its files travel with the session`);
    if (paths.length === 0 && this.#stored === undefined) return;
    const stored = await this.#hashes();
    await this.#mark(epoch);
    let left = MAX_BYTES;
    for (const path of paths) {
      // An unfinished transaction: the file is whole when it has ended.
      if (path === "session.db" && existsSync(join(directory, "session.db-journal"))) continue;
      const { mtimeMs, size } = await lstat(join(directory, path)).catch(() => ({ mtimeMs: 0, size: -1 }));
      if (size < 0) continue;
      left -= size;
      if (size > MAX_FILE_BYTES || left < 0) this.#reportOnce(`${path} is too large to travel with the session`);
      else if (this.#seen.get(path) !== `${mtimeMs} ${size}`) {
        await this.#store(path, epoch);
        this.#seen.set(path, `${mtimeMs} ${size}`);
      }
    }
    const gone = [...stored.keys()].filter((path) => !existsSync(join(directory, path)));
    if (gone.length === 0) return;
    await database.query(
      `delete from troupe.carried_file f using troupe.session s
       where s.id = f.session_id and s.id = $1 and s.epoch = $2 and f.path = any($3)`,
      [sessionId, epoch, gone],
    );
    for (const path of gone) stored.delete(path);
  }

  async #store(path: string, epoch: string): Promise<void> {
    const { directory, database, sessionId } = this.#options;
    const data = await readFile(join(directory, path)).catch(() => undefined);
    const stored = await this.#hashes();
    if (!data || stored.get(path) === hashOf(data)) return;
    await database.query(
      `insert into troupe.carried_file(session_id, path, hash, data)
       select id, $3, $4, $5 from troupe.session where id = $1 and epoch = $2
       on conflict (session_id, path) do update set hash = excluded.hash, data = excluded.data`,
      [sessionId, epoch, path, hashOf(data), data],
    );
    stored.set(path, hashOf(data));
  }

  #reportOnce(what: string): void {
    if (this.#reported.has(what)) return;
    this.#reported.add(what);
    this.#options.report?.(`${this.#options.sessionId}: ${what}`);
  }

  async #bringOne(path: string, hash: string): Promise<void> {
    const { directory, database, disk, sessionId } = this.#options;
    if (!isOwn(path)) return;
    const target = join(directory, path);
    const present = await readFile(target).catch(() => undefined);
    if (present && hashOf(present) === hash) return;
    const { rows } = await database.query<{ data: Buffer }>(
      "select data from troupe.carried_file where session_id = $1 and path = $2",
      [sessionId, path],
    );
    if (!rows[0]) return;
    await disk.mkdir(dirname(target));
    await replaceFile(disk, target, rows[0].data);
  }

  async #hashes(): Promise<Map<string, string>> {
    if (this.#stored) return this.#stored;
    const { rows } = await this.#options.database.query<{ path: string; hash: string }>(
      "select path, hash from troupe.carried_file where session_id = $1",
      [this.#options.sessionId],
    );
    this.#stored = new Map(rows.map(({ path, hash }) => [path, hash]));
    return this.#stored;
  }

  async #mark(epoch: string): Promise<void> {
    if (this.#markedEpoch === epoch) return;
    const { directory, disk } = this.#options;
    await disk.mkdir(directory);
    await replaceFile(disk, join(directory, MARKER), Buffer.from(epoch));
    this.#markedEpoch = epoch;
  }
}

/** Copies the stored checkpoints of a session into a folder, without taking the session. */
export async function copyCheckpoints(
  database: Database,
  { sessionId, directory, disk }: Pick<CarriedFilesOptions, "sessionId" | "directory" | "disk">,
): Promise<void> {
  const { rows } = await database.query<{ path: string }>(
    "select path from troupe.carried_file where session_id = $1 and starts_with(path, 'checkpoints/') order by path",
    [sessionId],
  );
  for (const { path } of rows.filter(({ path }) => isOwn(path))) {
    const found = await database.query<{ data: Buffer }>(
      "select data from troupe.carried_file where session_id = $1 and path = $2",
      [sessionId, path],
    );
    const target = join(directory, path);
    await disk.mkdir(dirname(target));
    if (found.rows[0]) await replaceFile(disk, target, found.rows[0].data);
  }
}

const hashOf = (data: Uint8Array): string => createHash("sha256").update(data).digest("base64url");

const isOwn = (path: string): boolean =>
  !path.split("/").includes("..") && (FILES.includes(path) || FOLDERS.includes(path.split("/")[0] ?? ""));

/**
 * Returns the files that may travel, by paths with slashes relative to the session's folder. Links do not. Stops when there
 * are too many.
 */
async function filesIn(directory: string): Promise<readonly string[]> {
  const found = FILES.filter((name) => existsSync(join(directory, name)));
  const folders = [...FOLDERS];
  for (let folder = folders.shift(); folder !== undefined && found.length <= MAX_FILES; folder = folders.shift()) {
    const entries = await readdir(join(directory, folder), { withFileTypes: true }).catch(() => []);
    for (const entry of entries) {
      if (entry.isDirectory()) folders.push(`${folder}/${entry.name}`);
      else if (entry.isFile()) found.push(`${folder}/${entry.name}`);
    }
  }
  return found;
}
