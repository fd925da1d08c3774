/**
 * One process at a time reads, changes and replaces a small file of the user. Held for milliseconds, waited for with an
 * end, and never lost with its owner: who makes `<lock>.after-<token>` first, and then still finds the dead lock in
 * place, renames its claim over it. Tokens never come back, so a slow process cannot remove a lock it did not see.
 */
import { readFile, stat } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname } from "node:path";
import { isObject, parseJson } from "../json.ts";
import { type Stamp, systemStamp } from "../stamp.ts";
import { type Disk, writeNewFile } from "./disk.ts";
import { isSameProcess, startTime } from "./process-identity.ts";

export interface FileLockOptions {
  /** The file that is changed; the lock is `<path>.lock`. */
  readonly path: string;
  readonly disk: Disk;
  /** What is thrown when the wait is over: `TroupeError`, which this folder does not know. */
  readonly Failure: new (
    kind: "storage",
    message: string,
    options: { hint: string },
  ) => Error;
  readonly stamp?: Stamp;
  readonly maxWaitMs?: number;
}

const MAX_WAIT_MS = 15_000;
/** Nobody needs the lock for this long, so an owner that cannot be judged does not keep it for ever. */
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
    // What was done stays done; a lock that cannot be taken away is succeeded when it is old.
    await release(options.disk, path, token).catch(() => undefined);
  }
}

interface Attempt {
  readonly path: string;
  /** Holds what the lock will hold. */
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
    const deadline = stamp.monotonic() + maxWaitMs;
    while (!(await takes(attempt))) {
      if (stamp.monotonic() > deadline) throw stillHeld(options, await readHolder(path));
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

/** Puts our claim in the place of the dead lock, unless somebody changed anything meanwhile. */
async function succeed({ path, disk }: Attempt, claim: string, dead: readonly { path: string; token: string }[]) {
  try {
    for (const former of dead) {
      if ((await readHolder(former.path))?.token === former.token) continue;
      await disk.unlink(claim);
      return false;
    }
    await disk.rename(claim, path);
  } catch (error) {
    // A claim that stays behind would keep everyone out for as long as this process lives.
    await disk.unlink(claim).catch(() => undefined);
    throw error;
  }
  for (const { path: older } of dead.slice(1)) await disk.unlink(older).catch(() => undefined);
  return true;
}

/** Makes the lock appear whole; false when there is one already. */
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
  /** Undefined when it cannot be told, as for a lock that is just being written. */
  readonly process: { readonly pid: number; readonly started: string; readonly host: string } | undefined;
  readonly since: number;
}

/** Undefined also for what is no file: nobody can take its place, and the wait ends with its name. */
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

/** Of a process on another machine only time tells. */
async function isAlive({ process: owner, since }: Holder): Promise<boolean> {
  if (Date.now() - since > STALE_MS) return false;
  if (owner === undefined || owner.host !== hostname()) return true;
  return isSameProcess(owner.pid, owner.started);
}

function stillHeld({ path, Failure }: FileLockOptions, holder: Holder | undefined): Error {
  const who = holder?.process === undefined ? "another process" : `another process (${holder.process.pid})`;
  return new Failure("storage", `${path} is being changed by ${who}, which does not finish.`, {
    hint: `Try again; when no other troupe is running, remove ${path}.lock.`,
  });
}

const codeOf = (error: unknown): string => (error instanceof Error && "code" in error ? String(error.code) : "");
