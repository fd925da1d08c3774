/**
 * Ensures one writer per session, also across crashes. A lock is a file that is published by a hard link, so it appears
 * complete and only one process succeeds. It identifies its process by more than the pid, because pids are reused.
 *
 * The lock of a dead process is taken over, never deleted. A successor creates the takeover file, `lock.after-<token>`.
 * If the dead lock is then still in place, the successor renames its takeover file over it. Tokens are never reused, so
 * a slow process that acts on an old observation finds another token and withdraws. A takeover file whose process died
 * is taken over the same way.
 *
 * A pid is meaningful only inside its pid namespace, on one boot of one machine. For holders in another container or on another
 * machine, the modification time of the lock file decides. A holder that can watch its folder renews the
 * lock when another process tries to take it, and needs no timer (`renewed: "on request"`). It counts as dead if it
 * does not answer within `ANSWER_MS`. Other holders renew it every `BEAT_MS` (`renewed: true`) and count as dead after
 * `SILENCE_MS`. Times are compared with those of a file that this process wrote, so only the file system's clock matters.
 *
 * A holder may be too slow to answer. It must call `isOurs` before it writes, which checks when the last check is too
 * old. The check renews the lock, then deletes a takeover file for it. A successor publishes its takeover file, then
 * looks for a renewal, then renames the file. So either the successor sees the renewal, or its rename fails, or the holder finds
 * another token in the lock. Decision 29 in docs/decisions has the reasons.
 */
import { stat } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import type { Disk } from "../lib/node/disk.ts";
import { bootId, isSameProcess, pidNamespace, startTime } from "../lib/node/process-identity.ts";
import { type FolderWatch, watchFolder } from "../lib/node/watch-folder.ts";
import { holderLocation, LOCK_FILE, type LockOwner, ON_REQUEST, readHolder, SILENCE_MS } from "./lock-holder.ts";
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
  /** The renewal interval of a lock that is renewed by a timer. */
  readonly beatMs?: number;
  /** How long a holder on another machine may take to answer. */
  readonly answerMs?: number;
  /** Watches the folder. Returns undefined where this is not possible. */
  readonly watch?: typeof watchFolder;
}

/** The renewal interval of a lock that is renewed by a timer. */
const BEAT_MS = 5_000;
/** The time after which a holder that renews on request counts as dead. It must check its lock more often than that. */
const ANSWER_MS = 6_000;
const POLL_MS = 50;

export async function takeLock(options: LockOptions): Promise<LockResult> {
  const path = join(options.directory, LOCK_FILE);
  const temporary = `${path}.${options.token}.tmp`;
  const keeper = new LockKeeper(options, path);
  const mine = {
    pid: options.pid,
    started: (await startTime(options.pid)) ?? "",
    host: hostname(),
    boot: bootId(),
    pids: pidNamespace(),
    renewed: keeper.isWatching ? ON_REQUEST : true,
    token: options.token,
  };
  const content = Buffer.from(`${JSON.stringify(mine)}\n`);
  try {
    await writePlain(options.disk, temporary, content).catch(async (error: unknown) => {
      if (errorCode(error) !== "EEXIST") throw error;
      await options.disk.unlink(temporary);
      await writePlain(options.disk, temporary, content);
    });
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const { disk, token, answerMs = ANSWER_MS } = options;
      const result = await tryLock({ disk, path, temporary, content, token, answerMs, keeper });
      if (result) return result;
    }
  } finally {
    keeper.stopUnlessTaken();
    await options.disk.unlink(temporary).catch(() => undefined);
  }
  const advice = "Other processes are trying to lock it too. Try again.";
  const holder = (await readHolders(path)).at(-1);
  return { kind: "held", by: { pid: holder?.pid ?? 0, host: holder?.host ?? mine.host, advice } };
}

/** Deletes temporary files of processes that were killed while they took the lock. The caller must hold the lock. */
export async function sweepLocks(directory: string, names: readonly string[], disk: Disk): Promise<void> {
  for (const name of names.filter((candidate) => TEMPORARY.test(candidate))) {
    const path = join(directory, name);
    const holder = await readHolder(path).catch(() => undefined);
    if (!holder) continue;
    const isHere = holder.unreadableSince === undefined && holderLocation(holder) === "here";
    const since = holder.renewedAt ?? holder.unreadableSince ?? Date.now();
    const isGone = isHere ? !(await isSameProcess(holder.pid, holder.started)) : Date.now() - since > SILENCE_MS;
    if (isGone) await disk.unlink(path).catch(() => undefined);
  }
}

/** The file that a process writes first to take the lock. A holder that watches its folder renews the lock then. */
const TEMPORARY = /^lock\.[\w-]+\.tmp$/;
const MAX_TRIES = 50;
/** Grace period for an incomplete lock file. Without hard links, a lock is visible briefly before its content is. */
const UNREADABLE_GRACE_MS = 2000;

interface Takeover {
  disk: Disk;
  path: string;
  temporary: string;
  content: Buffer;
  token: string;
  answerMs: number;
  keeper: LockKeeper;
}

/** Returns `undefined` when the state changed in the meantime and the caller should retry. */
async function tryLock(options: Takeover): Promise<LockResult | undefined> {
  const { path, token } = options;
  if (await publish(options, path)) return options.keeper.taken();
  const holders = await readHolders(path);
  if (holders[0]?.token === token) return options.keeper.taken();
  // Skips a takeover file of our own that an earlier failed try left.
  const dead = holders.filter((holder) => holder.token !== token);
  const last = dead.at(-1);
  if (!last) return undefined;
  // A takeover file is never renewed, so its age decides.
  const isAsked = dead.length === 1 && last.isAnswering && holderLocation(last) === "other machine";
  const advice = isAsked ? await answerOf(last, options) : await whyHeld(last, options);
  if (advice === "changed") return undefined;
  if (advice !== undefined) return { kind: "held", by: { pid: last.pid, host: last.host, advice } };
  return (await takeOver(options, dead, isAsked)) ? options.keeper.taken() : undefined;
}

/**
 * Waits for the holder to renew its lock. The file that this process wrote to take the lock is the request. Returns
 * advice if the holder is alive, "changed" if there is another holder, and `undefined` if it did not answer.
 */
async function answerOf(holder: LockOwner, { path, temporary, answerMs }: Takeover): Promise<string | undefined> {
  const askedAt = (await stat(temporary)).mtimeMs;
  const end = performance.now() + answerMs;
  while (performance.now() < end) {
    const now = await readHolder(path);
    if (now?.token !== holder.token) return "changed";
    if (isRenewed(now, holder, askedAt)) return "It runs in another container or on another machine: end it there.";
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  return undefined;
}

/** A time that is far ahead of the request is not a renewal: the clock was set back. */
function isRenewed(now: LockOwner, before: LockOwner, askedAt: number): boolean {
  const { renewedAt = 0 } = now;
  return renewedAt !== before.renewedAt || (renewedAt >= askedAt && renewedAt < askedAt + SILENCE_MS);
}

/**
 * Replaces the dead holders. Returns false if another process was faster, or if the holder turned out to be alive.
 * `isAsked`: the holder was asked and did not answer.
 */
async function takeOver(options: Takeover, dead: readonly LockOwner[], isAsked: boolean): Promise<boolean> {
  const { disk, path, token } = options;
  const takeovers = dead.map((holder) => takeoverPath(path, holder));
  const takeover = takeovers.pop() ?? path;
  if (!(await publish(options, takeover)) && (await readHolder(takeover))?.token !== token) return false;
  try {
    const now = (await readHolders(path)).map((holder) => holder.token);
    const isUnchanged = now.join() === [...dead.map((holder) => holder.token), token].join();
    const last = (await readHolders(path)).at(-2); // it may have been renewed in the meantime
    const isAlive = isAsked
      ? last?.renewedAt !== dead.at(-1)?.renewedAt
      : last !== undefined && (await whyHeld(last, options)) !== undefined;
    if (!isUnchanged || isAlive) {
      await disk.unlink(takeover).catch(ignoreMissing);
      return false;
    }
    const isMoved = await disk.rename(takeover, path).then(() => true, ignoreMissing);
    if (!isMoved) return false; // the holder is alive and deleted the takeover file
  } catch (error) {
    // A leftover takeover file would block all other processes while this process lives.
    await disk.unlink(takeover).catch(() => undefined);
    throw error;
  }
  for (const older of takeovers) await disk.unlink(older).catch(() => undefined);
  return true;
}

/** Resolves false if the file is missing. */
function ignoreMissing(error: unknown): false {
  if (errorCode(error) === "ENOENT") return false;
  throw error;
}

/** Renews the lock of this process: on request where the folder can be watched, else by a timer. */
class LockKeeper {
  readonly #options: LockOptions;
  readonly #path: string;
  readonly #watch: FolderWatch | undefined;
  #timer: NodeJS.Timeout | undefined;
  #checkedAt = 0;
  #isTaken = false;
  #isLost = false;

  constructor(options: LockOptions, path: string) {
    this.#options = options;
    this.#path = path;
    const own = `${LOCK_FILE}.${options.token}.tmp`;
    const asked = (name: string): void => {
      if (this.#isTaken && name !== own && TEMPORARY.test(name)) this.#renewSoon();
    };
    this.#watch = (options.watch ?? watchFolder)(options.directory, asked, () => this.#startTimer());
  }

  get isWatching(): boolean {
    return this.#watch !== undefined;
  }

  stopUnlessTaken(): void {
    if (!this.#isTaken) this.#watch?.close();
  }

  taken(): LockResult {
    this.#isTaken = true;
    this.#checkedAt = Date.now();
    if (!this.#watch) this.#startTimer();
    return { kind: "taken", isOurs: () => this.#isOurs(), release: () => this.#release() };
  }

  #startTimer(): void {
    if (!this.#isTaken) return;
    this.#timer ??= setInterval(() => this.#renewSoon(), this.#options.beatMs ?? BEAT_MS).unref();
  }

  #renewSoon(): void {
    void this.#check().catch(() => undefined); // a failing disk shows at the next write
  }

  async #isInPlace(): Promise<boolean> {
    return (await readHolder(this.#path))?.token === this.#options.token;
  }

  /** Renews the lock, withdraws it from a successor, and finds out whether it is lost. The order matters: see above. */
  async #check(): Promise<void> {
    if (this.#isLost) return;
    const { disk, token } = this.#options;
    const from = Date.now();
    await disk.touch(this.#path).catch(ignoreMissing);
    await disk.unlink(takeoverPath(this.#path, { token })).catch(ignoreMissing);
    this.#isLost = !(await this.#isInPlace());
    this.#checkedAt = from;
  }

  async #isOurs(): Promise<boolean> {
    // Uses the wall clock, which continues while the machine sleeps.
    const limit = this.#watch ? (this.#options.answerMs ?? ANSWER_MS) / 3 : SILENCE_MS / 2;
    if (Math.abs(Date.now() - this.#checkedAt) >= limit) await this.#check();
    return !this.#isLost;
  }

  async #release(): Promise<void> {
    clearInterval(this.#timer);
    this.#watch?.close();
    if (await this.#isInPlace()) await this.#options.disk.unlink(this.#path);
  }
}

const takeoverPath = (path: string, dead: Pick<LockOwner, "token">): string => `${path}.after-${dead.token}`;

/** Publishes the complete lock as `target`. Returns false if the file exists. */
async function publish({ disk, temporary, content }: Takeover, target: string): Promise<boolean> {
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

/** Returns the lock's holder, then the takeover file for it, then the one for that file, and so on. */
async function readHolders(path: string): Promise<LockOwner[]> {
  const holders: LockOwner[] = [];
  let next = await readHolder(path);
  while (next && holders.length < MAX_TRIES) {
    holders.push(next);
    next = await readHolder(takeoverPath(path, next));
  }
  return holders;
}

const HELD_HERE =
  "Join it in a terminal (troupe --attach <session>), or end that process first. It may be working: an idle one hands the session over.";

/** Returns advice for a held lock, or `undefined` when its process is gone. */
async function whyHeld(holder: LockOwner, { path, temporary }: Takeover): Promise<string | undefined> {
  if (holder.unreadableSince !== undefined) {
    return Date.now() - holder.unreadableSince < UNREADABLE_GRACE_MS ? "Try again in a moment." : undefined;
  }
  const location = holderLocation(holder);
  if (location === "here") {
    const isRunning = await isSameProcess(holder.pid, holder.started);
    return isRunning ? HELD_HERE : undefined;
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
