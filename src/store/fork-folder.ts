/**
 * Forks a session. The new folder is built under a hidden name and renamed in one step, so a partial fork is never
 * visible. Files that never change are hard-linked where the file system allows it.
 */
import { readdirSync, statSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import { type Disk, writeNewFile } from "../lib/node/disk.ts";
import { PathError } from "../lib/node/paths.ts";
import { readSharedPieces } from "../lib/node/shared-folder.ts";
import { type LogPaths, logPaths } from "./access.ts";
import {
  chainEvents,
  type ForkEnd,
  ForkedChain,
  type ForkedEvents,
  type ForkFolders,
  linesFromBytes,
  linesFromEvents,
} from "./fork-log.ts";
import { readSince } from "./log/load-log.ts";
import { LogPages } from "./log/log-pages.ts";
import { minLogBytes, type SnapshotRules, writeSnapshot } from "./log/snapshot.ts";
import { IrregularLog } from "./log-scan.ts";
import { errorCode } from "./storage-error.ts";
import type { SessionSummary } from "./store.ts";
import { encodeSummary } from "./summary.ts";

export interface SessionFork {
  readonly sessionId: string;
  readonly events: ForkedEvents;
  readonly summary: SessionSummary;
  readonly copies: readonly ForkCopy[];
}

/** A file of the source folder to copy into the fork. */
export interface ForkCopy {
  /** Relative to the session's folder. */
  readonly path: string;
  /** `shared`: never changes, so it is linked. `database`: copied as one consistent snapshot. `own`: copied. */
  readonly kind: "own" | "shared" | "database";
  /** Replaces the content of the source file. */
  readonly content?: string;
}

const BUILDING = ".forking-";
/** Age after which an unfinished fork is deleted: its process is assumed dead. */
const STALE_MS = 60 * 60 * 1000;

export async function forkFolder(what: {
  readonly disk: Disk;
  /** The parent folder of all sessions. */
  readonly folder: string;
  readonly from: string;
  readonly fork: SessionFork;
  readonly snapshots?: SnapshotRules;
}): Promise<void> {
  const { disk, folder, from, fork } = what;
  const source = join(folder, from);
  const target = join(folder, fork.sessionId);
  const building = join(folder, `${BUILDING}${crypto.randomUUID()}`);
  await sweep(folder, disk);
  await disk.mkdir(building);
  try {
    const folders = new Set([building]);
    for (const copy of fork.copies) {
      const target = join(building, copy.path);
      for (let above = dirname(target); !folders.has(above); above = dirname(above)) folders.add(above);
      await disk.mkdir(dirname(target));
      await copyFile(disk, { ...copy, source, to: target });
    }
    const paths = logPaths(folder, fork.sessionId);
    const inBuilding = (path: string): string => join(building, path.slice(target.length + 1));
    await writeNewFile(disk, inBuilding(paths.summary), [Buffer.from(encodeSummary(fork.summary))]);
    const to = { ...paths, log: inBuilding(paths.log), snapshot: inBuilding(paths.snapshot) };
    await writeLog(disk, to, { ...what, source: logPaths(folder, from), folders: { source, target } });
    for (const made of folders) await disk.syncDirectory(made);
    await disk.rename(building, target);
    await disk.syncDirectory(folder);
  } catch (error) {
    await disk.remove(building).catch(() => undefined);
    throw error;
  }
}

/** Copies the bytes of the source log if possible, and its events one by one otherwise. */
async function writeLog(disk: Disk, to: LogPaths, { source, fork, folders, snapshots }: LogCopy): Promise<void> {
  try {
    let end: ForkEnd | undefined;
    const onEnd = (found: ForkEnd): void => {
      end = found;
    };
    await writeNewFile(disk, to.log, linesFromBytes(source.log, fork.events, { folders, onEnd }));
    if (end && snapshots) await forkSnapshot(disk, to, { source, fork, folders, snapshots, end });
  } catch (error) {
    if (!(error instanceof IrregularLog)) throw error;
    await disk.unlink(to.log);
    await writeNewFile(disk, to.log, linesFromEvents(LogPages.events(source.log), fork.events, folders));
  }
}

interface LogCopy {
  readonly source: LogPaths;
  readonly fork: SessionFork;
  readonly folders: ForkFolders;
  readonly snapshots?: SnapshotRules;
}

/** Writes a snapshot for the fork from its source's snapshot, so that the first open does not read the whole log. */
async function forkSnapshot(
  disk: Disk,
  to: LogPaths,
  { source, fork, folders, snapshots: rules, end }: Required<LogCopy> & { readonly end: ForkEnd },
): Promise<void> {
  const loaded = end.length < minLogBytes(rules) ? undefined : await readSince(source, rules);
  // The source may have grown since the events were counted.
  if (!loaded || loaded.count !== fork.events.count || loaded.damage.length + loaded.removed.length > 0) return;
  const chain = new ForkedChain(fork.events, folders);
  const copied = loaded.events.flatMap((event) => chain.next(event) ?? []);
  const position = { offset: end.length, lines: end.last.seq, last: end.last, afterDamage: false };
  const added = chainEvents(fork.events.added, copied.at(-1)?.id ?? null);
  const snapshot = { events: [...copied, ...added], removed: [], count: end.last.seq, damage: [] };
  const before = { length: end.length, checksum: end.checksum };
  await writeSnapshot(disk, to, { snapshot, rules: rules.version, position, before });
}

interface FileCopy extends ForkCopy {
  /** The folder of the source session. */
  readonly source: string;
  readonly to: string;
}

async function copyFile(disk: Disk, copy: FileCopy): Promise<void> {
  const { kind, content, to } = copy;
  const from = join(copy.source, copy.path);
  if (content !== undefined) return writeNewFile(disk, to, [Buffer.from(content)]);
  try {
    if (kind === "shared") return await disk.link(from, to);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
  }
  if (kind === "database") return copyDatabase(disk, from, to);
  return copyShared(disk, copy);
}

/**
 * Copies a file that commands may still be writing. Skips a file that was deleted since it was listed, or replaced by
 * something that is not a regular file.
 */
async function copyShared(disk: Disk, { source, path, to }: FileCopy): Promise<void> {
  const [top = "", ...below] = path.split(sep);
  const [folder, name] = below.length > 0 ? [join(source, top), join(...below)] : [source, top];
  try {
    await writeNewFile(disk, to, readSharedPieces(folder, name, Number.MAX_SAFE_INTEGER));
  } catch (error) {
    if (!(error instanceof PathError)) throw error;
    await disk.unlink(to).catch(() => undefined);
  }
}

/** Copies through SQLite, because another connection may be writing the database. */
async function copyDatabase(disk: Disk, from: string, to: string): Promise<void> {
  const { DatabaseSync } = await import("@photostructure/sqlite");
  await disk.close(await disk.openAppend(to)); // creates the file first: SQLite would use the umask's mode
  const database = new DatabaseSync(from, { readOnly: true, timeout: 2000 });
  try {
    database.exec(`VACUUM INTO '${to.replaceAll("'", "''")}'`);
  } finally {
    database.close();
  }
}

async function sweep(folder: string, disk: Disk): Promise<void> {
  for (const name of readdirSync(folder).filter((one) => one.startsWith(BUILDING))) {
    const found = statSync(join(folder, name), { throwIfNoEntry: false });
    if (found && Date.now() - found.mtimeMs > STALE_MS) await disk.remove(join(folder, name)).catch(() => undefined);
  }
}
