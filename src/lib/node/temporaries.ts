/**
 * Temporary files that a write creates beside the file it replaces. Their names identify the process, so that files of
 * a killed process can be told from those that a running one is about to rename.
 */
import { createHash, randomBytes } from "node:crypto";
import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { type Disk, nodeDisk } from "./disk.ts";
import { bootId, pidNamespace, startTicks } from "./process-identity.ts";

const NAMED = /^\.troupe-([0-9a-z]+)_([0-9a-z]*)_([0-9a-f]{8})_[0-9a-f]{12}\.tmp$/;
/** The names that older versions used. */
const UNNAMED = /^\.troupe-[0-9a-z]{12}\.tmp$/;
/** A file whose process cannot be looked up counts as abandoned after this time. */
const MAX_AGE_MS = 60_000;

/** Returns a new name for the folder of the file to replace. */
export function temporaryName(): string {
  const started = startTicks(process.pid) ?? "";
  const owner = [process.pid.toString(36), started && Number(started).toString(36), freshPath()].join("_");
  return `.troupe-${owner}_${randomBytes(6).toString("hex")}.tmp`;
}

/** Removes temporary files of killed writes from a folder. */
export async function sweepTemporaries(folder: string, disk: Disk = nodeDisk): Promise<void> {
  const names = await readdir(folder).catch(() => []);
  for (const name of names.filter((candidate) => NAMED.test(candidate) || UNNAMED.test(candidate))) {
    const stat = await lstat(join(folder, name)).catch(() => undefined);
    if (stat?.isFile() && isLeftBehind(name, stat.mtimeMs))
      await disk.unlink(join(folder, name)).catch(() => undefined);
  }
}

/** Removes temporary files of `replaceFile` below a folder that no other process is writing. */
export async function sweepReplacements(folder: string, disk: Disk): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await sweepReplacements(path, disk);
    else if (entry.isFile() && REPLACEMENT.test(entry.name)) await disk.unlink(path).catch(() => undefined);
  }
}

/** The names that `replaceFile` uses. */
export const REPLACEMENT = /\.\d+\.[0-9a-z]{1,8}\.tmp$/;

function isLeftBehind(name: string, changedAt: number): boolean {
  const [, pid = "", started = "", where] = NAMED.exec(name) ?? [];
  if (where === freshPath() && started !== "") {
    return startTicks(Number.parseInt(pid, 36)) !== String(Number.parseInt(started, 36));
  }
  return Date.now() - changedAt > MAX_AGE_MS;
}

/** Returns the same id in all processes that can look up each other's pids. */
function freshPath(): string {
  return createHash("sha256").update(`${bootId()} ${pidNamespace()}`).digest("hex").slice(0, 8);
}
