/**
 * Files that a write makes beside the file it replaces. Their names say which process made them, so that what a killed
 * process left can be told from what a living one is about to rename.
 */
import { createHash, randomBytes } from "node:crypto";
import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { type Disk, nodeDisk } from "./disk.ts";
import { bootId, pidNamespace, startTicks } from "./process-identity.ts";

const NAMED = /^\.troupe-([0-9a-z]+)_([0-9a-z]*)_([0-9a-f]{8})_[0-9a-f]{12}\.tmp$/;
/** As older versions called them. */
const UNNAMED = /^\.troupe-[0-9a-z]{12}\.tmp$/;
/** A file whose process cannot be looked up is left behind when it is older than this. */
const MAX_AGE_MS = 60_000;

/** A new name in the folder of the file that is to be replaced. */
export function temporaryName(): string {
  const started = startTicks(process.pid) ?? "";
  const owner = [process.pid.toString(36), started && Number(started).toString(36), place()].join("_");
  return `.troupe-${owner}_${randomBytes(6).toString("hex")}.tmp`;
}

/** Takes away what writes that were killed have left in a folder. */
export async function sweepTemporaries(folder: string, disk: Disk = nodeDisk): Promise<void> {
  const names = await readdir(folder).catch(() => []);
  for (const name of names.filter((candidate) => NAMED.test(candidate) || UNNAMED.test(candidate))) {
    const stat = await lstat(join(folder, name)).catch(() => undefined);
    if (stat?.isFile() && isLeftBehind(name, stat.mtimeMs))
      await disk.unlink(join(folder, name)).catch(() => undefined);
  }
}

/** Takes away what `replaceFile` has left below a folder that nobody else writes now. */
export async function sweepReplacements(folder: string, disk: Disk): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await sweepReplacements(path, disk);
    else if (entry.isFile() && REPLACEMENT.test(entry.name)) await disk.unlink(path).catch(() => undefined);
  }
}

/** `replaceFile` names its files so. */
export const REPLACEMENT = /\.\d+\.[0-9a-z]{1,8}\.tmp$/;

function isLeftBehind(name: string, changedAt: number): boolean {
  const [, pid = "", started = "", where] = NAMED.exec(name) ?? [];
  if (where === place() && started !== "") {
    return startTicks(Number.parseInt(pid, 36)) !== String(Number.parseInt(started, 36));
  }
  return Date.now() - changedAt > MAX_AGE_MS;
}

/** The same for all processes that can look up each other's pids. */
function place(): string {
  return createHash("sha256").update(`${bootId()} ${pidNamespace()}`).digest("hex").slice(0, 8);
}
