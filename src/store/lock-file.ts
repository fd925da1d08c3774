/** The content of lock files: who holds a lock, and where that process runs. `lock.ts` takes and keeps locks. */
import { readFile, stat } from "node:fs/promises";
import { hostname } from "node:os";
import { isObject, parseJson } from "../lib/json.ts";
import { bootId, pidNamespace } from "../lib/node/process-identity.ts";
import { errorCode } from "./storage-error.ts";

export const LOCK_FILE = "lock";
/** The member `renewed` of a lock that is renewed when another process tries to take it. */
export const ON_REQUEST = "on request";
/** Also the longest chain of claims that is followed. */
export const MAX_ATTEMPTS = 50;

export interface Holder {
  readonly pid: number;
  readonly started: string;
  readonly host: string;
  readonly boot: string;
  /** The pid namespace of `pid`; empty if unknown. */
  readonly pids: string;
  readonly token: string;
  /** Time of the last renewal by the file system's clock. `undefined` for a lock that is never renewed. */
  readonly renewedAt?: number;
  /** It is renewed when another process tries to take it. */
  readonly isAnswering: boolean;
  /** Set when the file's content is not a valid lock. */
  readonly unreadableSince?: number;
}

export const claimPath = (path: string, dead: Pick<Holder, "token">): string => `${path}.after-${dead.token}`;

/** Returns the lock's holder, then the claim to succeed it, then the claim to succeed that one, and so on. */
export async function readHolders(path: string): Promise<Holder[]> {
  const holders: Holder[] = [];
  let next = await readHolder(path);
  while (next && holders.length < MAX_ATTEMPTS) {
    holders.push(next);
    next = await readHolder(claimPath(path, next));
  }
  return holders;
}

export async function readHolder(path: string): Promise<Holder | undefined> {
  try {
    const parsed = parseJson(await readFile(path, "utf8"));
    const value: unknown = parsed.ok ? parsed.value : undefined;
    const { ino, mtimeMs } = await stat(path);
    const unnamed = `${ino}-${Math.trunc(mtimeMs)}`;
    if (!isObject(value) || typeof value.pid !== "number") {
      const unknown = { pid: 0, started: "", host: hostname(), boot: "", pids: "", isAnswering: false };
      return { ...unknown, token: unnamed, unreadableSince: mtimeMs };
    }
    const text = (member: unknown, otherwise: string): string => (typeof member === "string" ? member : otherwise);
    const token = text(value.token, "");
    return {
      pid: value.pid,
      started: text(value.started, ""),
      host: text(value.host, hostname()),
      boot: text(value.boot, ""),
      pids: text(value.pids, ""),
      ...((value.renewed === true || value.renewed === ON_REQUEST) && { renewedAt: mtimeMs }),
      isAnswering: value.renewed === ON_REQUEST,
      token: /^[\w-]{1,64}$/.test(token) ? token : unnamed,
    };
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** Returns "elsewhere" if the pid cannot be looked up from here. */
export function holderLocation(holder: Holder): "here" | "earlier boot" | "elsewhere" {
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
