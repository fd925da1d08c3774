/**
 * Ensures one writer per session, also across crashes. A lock is a file that is published by a hard link, so it appears
 * complete and only one process succeeds. It identifies its process by more than the pid, because pids are reused.
 *
 * The lock of a dead process is succeeded, never deleted. A successor creates `lock.after-<token>`. If the dead lock is
 * then still in place, the successor renames its claim over it. Tokens are never reused, so a slow process that acts on
 * an old observation finds another token and withdraws. A claim whose process died is succeeded the same way.
 *
 * A pid is meaningful only inside its pid namespace, on one boot of one machine. For holders elsewhere (another
 * container or machine) the modification time of the lock file decides. The holder renews it every `BEAT_MS`; after
 * `SILENCE_MS` without renewal the holder counts as dead. Times are compared with those of a file that this process
 * wrote, so only the file system's clock matters. A holder that was suspended for long must call `isOurs` before it
 * writes.
 */
import { readFile, stat } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { isObject, parseJson } from "../lib/json.ts";
import type { Disk } from "../lib/node/disk.ts";
import { bootId, isSameProcess, pidNamespace, startTime } from "../lib/node/process-identity.ts";
import { errorCode } from "./storage-error.ts";

export type LockResult =
  | {
      readonly kind: "taken";
      /**
       * Returns false when another process took the lock over because this one was suspended. Cheap while it was not.
       */
      isOurs(): Promise<boolean>;
      release(): Promise<void>;
    }
  | { readonly kind: "held"; readonly by: LockHolder };

export interface LockHolder {
  readonly pid: number;
  readonly host: string;
  /** How the user can free the lock. */
  readonly advice: string;
}

export interface LockOptions {
  readonly disk: Disk;
  readonly directory: string;
  readonly pid: number;
  /** Unique across all processes and time. A retry after a failure must use the same token. */
  readonly token: string;
  /** The renewal interval. */
  readonly beatMs?: number;
}

/** The renewal interval, and the time without renewal after which a holder counts as dead. */
const BEAT_MS = 5_000;
const SILENCE_MS = 20_000;

export async function takeLock(options: LockOptions): Promise<LockResult> {
  const path = join(options.directory, LOCK_FILE);
  const temporary = `${path}.${options.token}.tmp`;
  const mine = {
    pid: options.pid,
    started: (await startTime(options.pid)) ?? "",
    host: hostname(),
    boot: bootId(),
    pids: pidNamespace(),
    renewed: true,
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
      const { disk, token, beatMs = BEAT_MS } = options;
      const result = await attemptLock({ disk, path, temporary, content, token, beatMs });
      if (result) return result;
    }
  } finally {
    await options.disk.unlink(temporary).catch(() => undefined);
  }
  const advice = "Other processes are trying to lock it too. Try again.";
  const holder = (await readHolders(path)).at(-1);
  return { kind: "held", by: { pid: holder?.pid ?? 0, host: holder?.host ?? mine.host, advice } };
}

/** Deletes temporary files of processes that were killed while they took the lock. The caller must hold the lock. */
export async function sweepLocks(directory: string, names: readonly string[], disk: Disk): Promise<void> {
  for (const name of names.filter((candidate) => /^lock\.[\w-]+\.tmp$/.test(candidate))) {
    const path = join(directory, name);
    const holder = await readHolder(path).catch(() => undefined);
    if (!holder) continue;
    const isHere = holder.unreadableSince === undefined && holderLocation(holder) === "here";
    const since = holder.renewedAt ?? holder.unreadableSince ?? Date.now();
    const isGone = isHere ? !(await isSameProcess(holder.pid, holder.started)) : Date.now() - since > SILENCE_MS;
    if (isGone) await disk.unlink(path).catch(() => undefined);
  }
}

export const LOCK_FILE = "lock";
const MAX_ATTEMPTS = 50;
/** Grace period for an incomplete lock file. Without hard links, a lock is visible briefly before its content is. */
const UNREADABLE_GRACE_MS = 2000;

interface Attempt {
  disk: Disk;
  path: string;
  temporary: string;
  content: Buffer;
  token: string;
  beatMs: number;
}

interface Holder {
  readonly pid: number;
  readonly started: string;
  readonly host: string;
  readonly boot: string;
  /** The pid namespace of `pid`; empty if unknown. */
  readonly pids: string;
  readonly token: string;
  /** Time of the last renewal by the file system's clock. `undefined` for a lock that is never renewed. */
  readonly renewedAt?: number;
  /** Set when the file's content is not a valid lock. */
  readonly unreadableSince?: number;
}

/** Returns `undefined` when the state changed in the meantime and the caller should retry. */
async function attemptLock(attempt: Attempt): Promise<LockResult | undefined> {
  const { path, token } = attempt;
  if (await publish(attempt, path)) return taken(attempt);
  const holders = await readHolders(path);
  if (holders[0]?.token === token) return taken(attempt);
  // Skips a claim of our own that an earlier failed attempt left.
  const dead = holders.filter((holder) => holder.token !== token);
  const last = dead.at(-1);
  if (!last) return undefined;
  const advice = await whyHeld(last, attempt);
  if (advice !== undefined) return { kind: "held", by: { pid: last.pid, host: last.host, advice } };
  return (await succeed(attempt, dead)) ? taken(attempt) : undefined;
}

/** Replaces the dead holders. Returns false if another process was faster. */
async function succeed(attempt: Attempt, dead: readonly Holder[]): Promise<boolean> {
  const { disk, path, token } = attempt;
  const claims = dead.map((holder) => claimPath(path, holder));
  const claim = claims.pop() ?? path;
  if (!(await publish(attempt, claim)) && (await readHolder(claim))?.token !== token) return false;
  try {
    const now = (await readHolders(path)).map((holder) => holder.token);
    const isUnchanged = now.join() === [...dead.map((holder) => holder.token), token].join();
    const last = (await readHolders(path)).at(-2); // it may have been renewed in the meantime
    if (!isUnchanged || (last && (await whyHeld(last, attempt)) !== undefined)) {
      await disk.unlink(claim);
      return false;
    }
    await disk.rename(claim, path);
  } catch (error) {
    // A leftover claim would block all other processes while this process lives.
    await disk.unlink(claim).catch(() => undefined);
    throw error;
  }
  for (const older of claims) await disk.unlink(older).catch(() => undefined);
  return true;
}

function taken({ disk, path, token, beatMs }: Attempt): LockResult {
  const isInPlace = async (): Promise<boolean> => (await readHolder(path))?.token === token;
  let seenAt = Date.now();
  let isLost = false;
  const beat = async (): Promise<void> => {
    if (!(await isInPlace())) return;
    await disk.touch(path);
    seenAt = Date.now();
  };
  const timer = setInterval(() => void beat().catch(() => undefined), beatMs); // a failing disk shows at the next write
  timer.unref();
  return {
    kind: "taken",
    async isOurs() {
      if (isLost) return false;
      // Uses the wall clock, which continues while the machine sleeps.
      if (Math.abs(Date.now() - seenAt) < SILENCE_MS / 2) return true;
      isLost = !(await isInPlace());
      if (!isLost) await beat();
      return !isLost;
    },
    async release() {
      clearInterval(timer);
      if (await isInPlace()) await disk.unlink(path);
    },
  };
}

const claimPath = (path: string, dead: Holder): string => `${path}.after-${dead.token}`;

/** Publishes the complete lock as `target`. Returns false if the file exists. */
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

/** Returns the lock's holder, then the claim to succeed it, then the claim to succeed that one, and so on. */
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
      return { pid: 0, started: "", host: hostname(), boot: "", pids: "", token: unnamed, unreadableSince: mtimeMs };
    }
    const text = (member: unknown, otherwise: string): string => (typeof member === "string" ? member : otherwise);
    const token = text(value.token, "");
    return {
      pid: value.pid,
      started: text(value.started, ""),
      host: text(value.host, hostname()),
      boot: text(value.boot, ""),
      pids: text(value.pids, ""),
      ...(value.renewed === true && { renewedAt: mtimeMs }),
      token: /^[\w-]{1,64}$/.test(token) ? token : unnamed,
    };
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** Returns advice for a held lock, or `undefined` when its process is gone. */
async function whyHeld(holder: Holder, { path, temporary }: Attempt): Promise<string | undefined> {
  if (holder.unreadableSince !== undefined) {
    return Date.now() - holder.unreadableSince < UNREADABLE_GRACE_MS ? "Try again in a moment." : undefined;
  }
  const location = holderLocation(holder);
  if (location === "here") {
    const isRunning = await isSameProcess(holder.pid, holder.started);
    return isRunning ? "End that process first, or start a new session." : undefined;
  }
  if (location === "earlier boot") return undefined;
  if (holder.renewedAt === undefined) {
    return `End that process first. If it no longer exists, for example because its container is gone, delete ${path}.`;
  }
  const now = (await stat(temporary)).mtimeMs;
  const leftMs = SILENCE_MS - Math.abs(now - holder.renewedAt);
  if (leftMs <= 0) return undefined;
  const again = `in ${Math.ceil(leftMs / 1000)} s`;
  return `It runs in another container or on another machine: end it there. If it was killed, try again ${again}, when its lock expires.`;
}

/** Returns "elsewhere" if the pid cannot be looked up from here. */
function holderLocation(holder: Holder): "here" | "earlier boot" | "elsewhere" {
  const boot = bootId();
  const isThisHost = holder.host === hostname();
  if (holder.boot !== "" && boot !== "" && holder.boot !== boot) {
    // Host names repeat across machines, so for a renewed lock the renewal time decides.
    return isThisHost && holder.renewedAt === undefined ? "earlier boot" : "elsewhere";
  }
  const pids = pidNamespace();
  if (holder.pids !== "" && pids !== "" && holder.boot !== "") return holder.pids === pids ? "here" : "elsewhere";
  return isThisHost ? "here" : "elsewhere";
}

/** The process that has a session open, according to its lock. "died": its process ended without closing it. */
export type SessionHolder =
  | { readonly kind: "nobody" }
  | { readonly kind: "died" }
  /** `isHere` is false for a process of another machine or container. */
  | { readonly kind: "process"; readonly pid: number; readonly isHere: boolean };

/** Reads the lock only, so that many sessions can be asked about. */
export async function holderOf(directory: string): Promise<SessionHolder> {
  const holder = await readHolder(join(directory, LOCK_FILE)).catch(() => undefined);
  if (!holder) return { kind: "nobody" };
  const { pid, renewedAt } = holder;
  if (holderLocation(holder) === "here") {
    return (await isSameProcess(pid, holder.started)) ? { kind: "process", pid, isHere: true } : { kind: "died" };
  }
  const isSilent = renewedAt === undefined || Date.now() - renewedAt > SILENCE_MS;
  return isSilent ? { kind: "died" } : { kind: "process", pid, isHere: false };
}
