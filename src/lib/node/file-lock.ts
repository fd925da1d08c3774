/**
 * Lets one process at a time read, change and replace a small file of the user. The lock is held for milliseconds, the
 * wait is bounded, and a dead owner does not block it. A successor creates `<lock>.after-<token>` first; if the dead
 * lock is still in place then, it renames its claim over it. Tokens are never reused, so a slow process cannot remove a
 * lock that it did not see.
 */
import { readFile, stat } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname } from "node:path";
import { isObject, parseJson } from "../json.ts";
import { type Stamp, systemStamp } from "../stamp.ts";
import { type Disk, writeNewFile } from "./disk.ts";
import { isSameProcess, startTime } from "./process-identity.ts";

export interface FileLockOptions {
  /** The file that is changed. The lock is `<path>.lock`. */
  readonly path: string;
  readonly disk: Disk;
  /** The error class thrown when the wait is over: `TroupeError`, which this folder must not import. */
  readonly Failure: new (
    kind: "storage",
    message: string,
    options: { hint: string },
  ) => Error;
  readonly stamp?: Stamp;
  /** How long one owner is waited for. */
  readonly maxWaitMs?: number;
}

const MAX_WAIT_MS = 15_000;
/** The wait begins again when the lock has passed to another owner meanwhile: many may be in line on a busy machine. */
const MAX_WAITS = 20;
/** The lock is never needed for this long, so an owner whose state is unknown loses it after this time. */
const STALE_MS = 30_000;
const MAX_CLAIMS = 50;
const MAX_LOCK_BYTES = 4096;

export async function withFileLock<T>(options: FileLockOptions, work: () => Promise<T>): Promise<T> {
  const path = `${options.path}.lock`;
  const token = (options.stamp ?? systemStamp).id("lock");
  await acquire(options, { path, own: `${path}.${token}.tmp`, token, disk: options.disk });
  try {
    return await work();
  } finally {
    // The work is done. A lock that cannot be removed is replaced when it is stale.
    await release(options.disk, path, token).catch(() => undefined);
  }
}

interface Attempt {
  readonly path: string;
  /** The file with the content of the future lock. */
  readonly own: string;
  readonly token: string;
  readonly disk: Disk;
}

async function acquire(options: FileLockOptions, attempt: Attempt): Promise<void> {
  const { stamp = systemStamp, maxWaitMs = MAX_WAIT_MS } = options;
  const { path, own, token, disk } = attempt;
  const started = (await startTime(process.pid)) ?? "";
  const content = `${JSON.stringify({ pid: process.pid, started, host: hostname(), token })}\n`;
  await disk.mkdir(dirname(path));
  try {
    await writeNewFile(disk, own, [Buffer.from(content)]);
    let waits = 0;
    let [seen, deadline] = ["", 0];
    while (!(await takes(attempt))) {
      if (waits === 0 || stamp.monotonic() > deadline) {
        const holder = await readHolder(path);
        const isStuck = holder ? holder.token === seen : await isObstacle(path);
        if (waits > 0 && (isStuck || waits >= MAX_WAITS)) throw stillHeld(options, holder);
        waits++;
        [seen, deadline] = [holder?.token ?? "", stamp.monotonic() + maxWaitMs];
      }
      await stamp.sleep(3 + Math.random() * 15);
    }
  } finally {
    await disk.unlink(own).catch(() => undefined);
  }
}

async function takes(attempt: Attempt): Promise<boolean> {
  const { path } = attempt;
  if (await publish(attempt, path)) return true;
  const dead: { path: string; token: string }[] = [];
  let at = path;
  while (dead.length < MAX_CLAIMS) {
    const holder = await readHolder(at);
    if (holder === undefined || (await isAlive(holder))) return false;
    dead.push({ path: at, token: holder.token });
    at = `${path}.after-${holder.token}`;
    if (await publish(attempt, at)) return succeed(attempt, at, dead);
  }
  return false;
}

/** Replaces the dead lock with our claim, unless something changed meanwhile. */
async function succeed({ path, disk }: Attempt, claim: string, dead: readonly { path: string; token: string }[]) {
  try {
    for (const former of dead) {
      if ((await readHolder(former.path))?.token === former.token) continue;
      await disk.unlink(claim);
      return false;
    }
    await disk.rename(claim, path);
  } catch (error) {
    // A remaining claim would block everyone while this process lives.
    await disk.unlink(claim).catch(() => undefined);
    throw error;
  }
  for (const { path: older } of dead.slice(1)) await disk.unlink(older).catch(() => undefined);
  return true;
}

/** Creates the lock with its whole content. Returns false if there is one already. */
async function publish({ disk, own }: Attempt, target: string): Promise<boolean> {
  try {
    await disk.link(own, target).catch(async (error: unknown) => {
      if (!["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"].includes(codeOf(error))) throw error;
      await writeNewFile(disk, target, [await readFile(own)]);
    });
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  }
}

async function release(disk: Disk, path: string, token: string): Promise<void> {
  if ((await readHolder(path))?.token === token) await disk.unlink(path);
}

interface Holder {
  readonly token: string;
  /** Undefined if it cannot be determined, as for a lock that is being written. */
  readonly process: { readonly pid: number; readonly started: string; readonly host: string } | undefined;
  readonly since: number;
}

/**
 * Returns undefined also if the path is not a file: it cannot be replaced, and the wait ends with an error that names it.
 */
async function readHolder(path: string): Promise<Holder | undefined> {
  try {
    const found = await stat(path);
    if (!found.isFile()) return undefined;
    const { ino, mtimeMs, size } = found;
    const unnamed = { token: `${ino}-${Math.trunc(mtimeMs)}`, process: undefined, since: mtimeMs };
    if (size > MAX_LOCK_BYTES) return unnamed;
    const parsed = parseJson(await readFile(path, "utf8"));
    const value: unknown = parsed.ok ? parsed.value : undefined;
    if (!isObject(value)) return unnamed;
    const { token, pid, started, host } = value;
    const isNamed = typeof token === "string" && /^[\w-]{1,64}$/.test(token);
    if (!isNamed || typeof pid !== "number" || typeof host !== "string") return unnamed;
    return { token, process: { pid, started: typeof started === "string" ? started : "", host }, since: mtimeMs };
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

const isObstacle = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => !found.isFile(),
    () => false,
  );

/** The state of a process on another machine is unknown: only the age of its lock counts. */
async function isAlive({ process: owner, since }: Holder): Promise<boolean> {
  if (Date.now() - since > STALE_MS) return false;
  if (owner === undefined || owner.host !== hostname()) return true;
  return isSameProcess(owner.pid, owner.started);
}

function stillHeld({ path, Failure }: FileLockOptions, holder: Holder | undefined): Error {
  const who = holder?.process === undefined ? "another process" : `another process (${holder.process.pid})`;
  return new Failure("storage", `${path} is locked by ${who}, which has not finished.`, {
    hint: `Try again. If no other troupe is running, delete ${path}.lock.`,
  });
}

const codeOf = (error: unknown): string => (error instanceof Error && "code" in error ? String(error.code) : "");
