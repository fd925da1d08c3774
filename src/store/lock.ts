/**
 * One writer per session, also across crashes. A lock is a file that appears whole (by a hard link, which exactly one
 * of many processes can make) and names its process so that nobody can mistake another one with the same pid for it.
 *
 * A lock of a dead process is succeeded, never deleted: who makes `lock.after-<token>` first, and then still finds the
 * dead lock in place, has the right to rename its claim over it. Tokens never come back, so a slow process that acts on
 * what it saw long ago finds another token in place and withdraws. A claim whose process died is succeeded the same way.
 */
import { readFile, stat } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { isObject, parseJson } from "../lib/json.ts";
import type { Disk } from "../lib/node/disk.ts";
import { bootId, isSameProcess, startTime } from "../lib/node/process-identity.ts";
import { errorCode } from "./storage-error.ts";

export type LockResult =
  | { readonly kind: "taken"; release(): Promise<void> }
  | { readonly kind: "held"; readonly by: { readonly pid: number; readonly host: string } };

export interface LockOptions {
  readonly disk: Disk;
  readonly directory: string;
  readonly pid: number;
  /** Unique for all time and all processes; the same when one who failed tries again. */
  readonly token: string;
}

export async function takeLock(options: LockOptions): Promise<LockResult> {
  const path = join(options.directory, LOCK_FILE);
  const temporary = `${path}.${options.token}.tmp`;
  const mine = {
    pid: options.pid,
    started: (await startTime(options.pid)) ?? "",
    host: hostname(),
    boot: bootId(),
    token: options.token,
  };
  const content = Buffer.from(`${JSON.stringify(mine)}\n`);
  try {
    await writePlain(options.disk, temporary, content).catch(async (error: unknown) => {
      if (errorCode(error) !== "EEXIST") throw error;
      await options.disk.unlink(temporary);
      await writePlain(options.disk, temporary, content);
    });
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const result = await attemptLock({ disk: options.disk, path, temporary, content, token: options.token });
      if (result) return result;
    }
  } finally {
    await options.disk.unlink(temporary).catch(() => undefined);
  }
  const holder = (await readHolders(path)).at(-1);
  return { kind: "held", by: { pid: holder?.pid ?? 0, host: holder?.host ?? mine.host } };
}

export const LOCK_FILE = "lock";
const MAX_ATTEMPTS = 50;
/** Where hard links are missing a lock is for a moment visible before its content is. */
const UNREADABLE_GRACE_MS = 2000;

interface Attempt {
  disk: Disk;
  path: string;
  temporary: string;
  content: Buffer;
  token: string;
}

interface Holder {
  readonly pid: number;
  readonly started: string;
  readonly host: string;
  readonly boot: string;
  readonly token: string;
  /** Undefined when the file could be read. */
  readonly unreadableSince?: number;
}

/** Undefined when the situation changed meanwhile and it is worth another look. */
async function attemptLock(attempt: Attempt): Promise<LockResult | undefined> {
  const { disk, path, token } = attempt;
  if (await publish(attempt, path)) return taken(disk, path, token);
  const holders = await readHolders(path);
  if (holders[0]?.token === token) return taken(disk, path, token);
  // An earlier attempt that failed may have left a claim of our own.
  const dead = holders.filter((holder) => holder.token !== token);
  const last = dead.at(-1);
  if (!last) return undefined;
  if (await isAlive(last)) return { kind: "held", by: { pid: last.pid, host: last.host } };
  return (await succeed(attempt, dead)) ? taken(disk, path, token) : undefined;
}

/** Takes the place of the dead holders, unless someone else was faster. */
async function succeed(attempt: Attempt, dead: readonly Holder[]): Promise<boolean> {
  const { disk, path, token } = attempt;
  const claims = dead.map((holder) => claimPath(path, holder));
  const claim = claims.pop() ?? path;
  if (!(await publish(attempt, claim)) && (await readHolder(claim))?.token !== token) return false;
  try {
    const now = (await readHolders(path)).map((holder) => holder.token);
    const isUnchanged = now.join() === [...dead.map((holder) => holder.token), token].join();
    if (!isUnchanged) {
      await disk.unlink(claim);
      return false;
    }
    await disk.rename(claim, path);
  } catch (error) {
    // A claim that stays behind would keep everyone out for as long as this process lives.
    await disk.unlink(claim).catch(() => undefined);
    throw error;
  }
  for (const older of claims) await disk.unlink(older).catch(() => undefined);
  return true;
}

function taken(disk: Disk, path: string, token: string): LockResult {
  return {
    kind: "taken",
    async release() {
      if ((await readHolder(path))?.token === token) await disk.unlink(path);
    },
  };
}

const claimPath = (path: string, dead: Holder): string => `${path}.after-${dead.token}`;

/** Makes the lock appear under `target` whole; false when there is one already. */
async function publish({ disk, temporary, content }: Attempt, target: string): Promise<boolean> {
  try {
    await disk.link(temporary, target).catch((error: unknown) => {
      if (!["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"].includes(errorCode(error) ?? "")) throw error;
      return writePlain(disk, target, content);
    });
    return true;
  } catch (error) {
    if (errorCode(error) === "EEXIST") return false;
    throw error;
  }
}

async function writePlain(disk: Disk, path: string, content: Buffer): Promise<void> {
  const fd = await disk.openExclusive(path);
  try {
    await disk.write(fd, content);
  } finally {
    await disk.close(fd);
  }
}

/** The lock, then the claim to succeed it, then the claim to succeed that one. */
async function readHolders(path: string): Promise<Holder[]> {
  const holders: Holder[] = [];
  let next = await readHolder(path);
  while (next && holders.length < MAX_ATTEMPTS) {
    holders.push(next);
    next = await readHolder(claimPath(path, next));
  }
  return holders;
}

async function readHolder(path: string): Promise<Holder | undefined> {
  try {
    const parsed = parseJson(await readFile(path, "utf8"));
    const value: unknown = parsed.ok ? parsed.value : undefined;
    const { ino, mtimeMs } = await stat(path);
    const unnamed = `${ino}-${Math.trunc(mtimeMs)}`;
    if (!isObject(value) || typeof value.pid !== "number") {
      return { pid: 0, started: "", host: hostname(), boot: "", token: unnamed, unreadableSince: mtimeMs };
    }
    const text = (member: unknown, otherwise: string): string => (typeof member === "string" ? member : otherwise);
    const token = text(value.token, "");
    return {
      pid: value.pid,
      started: text(value.started, ""),
      host: text(value.host, hostname()),
      boot: text(value.boot, ""),
      token: /^[\w-]{1,64}$/.test(token) ? token : unnamed,
    };
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** When it cannot be told, as for a process on another machine, the lock counts as held. */
async function isAlive(holder: Holder): Promise<boolean> {
  if (holder.unreadableSince !== undefined) return Date.now() - holder.unreadableSince < UNREADABLE_GRACE_MS;
  if (holder.host !== hostname()) return true;
  if (holder.boot !== "" && holder.boot !== bootId()) return false;
  return isSameProcess(holder.pid, holder.started);
}
