/** Reads the file of a lock: the process that holds it, and whether that process still exists. */
import { readFile, stat } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { isObject, parseJson } from "../lib/json.ts";
import { bootId, isSameProcess, pidNamespace } from "../lib/node/process-identity.ts";
import { errorCode } from "./storage-error.ts";

export const LOCK_FILE = "lock";
export const ON_REQUEST = "on request";
/** A lock that is renewed by a timer counts as left after this time without renewal. */
export const SILENCE_MS = 20_000;
/** A session elsewhere that wrote nothing for this long is listed as left. Opening it asks its holder. */
const LISTED_MS = 60 * 60_000;

export interface LockOwner {
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

/** Returns `undefined` if there is no lock. */
export async function readHolder(path: string): Promise<LockOwner | undefined> {
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

/** Returns "other machine" if the pid cannot be looked up from here. */
export function holderLocation(holder: LockOwner): "here" | "earlier boot" | "other machine" {
  const boot = bootId();
  const isThisHost = holder.host === hostname();
  if (holder.boot !== "" && boot !== "" && holder.boot !== boot) {
    // Host names repeat across machines, so for a renewed lock the renewal time decides.
    return isThisHost && holder.renewedAt === undefined ? "earlier boot" : "other machine";
  }
  const pids = pidNamespace();
  if (holder.pids !== "" && pids !== "" && holder.boot !== "") return holder.pids === pids ? "here" : "other machine";
  return isThisHost ? "here" : "other machine";
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
  const limit = holder.isAnswering ? LISTED_MS : SILENCE_MS;
  const isSilent = renewedAt === undefined || Date.now() - renewedAt > limit;
  return isSilent ? { kind: "died" } : { kind: "process", pid, isHere: false };
}
