/** Reads the index of a repository, only to find the other repositories that git would enter from there. */
import { lstatSync, readFileSync } from "node:fs";

/** A larger index may name any repository. */
const MAX_BYTES = 64 * 1024 * 1024;
const HEADER_BYTES = 12;
/** The offset of the mode in an entry, and the length of an entry up to the object name. */
const MODE_OFFSET = 24;
const STAT_BYTES = 40;
/** SHA-1 and SHA-256. The index does not state which one the repository uses. */
const HASH_BYTES = [20, 32];
/** Git checks only these bits of a mode. */
const TYPE_BITS = 0xf000;
const GITLINK = 0xe000;
const FOLDER = 0x4000;
const EXTENDED_FLAG = 0x4000;
/** Bits of the flags with the length of the name; all of them are set for longer names. */
const LENGTH_BITS = 0xfff;
/** A shared index, and sparse folders that stand for all their files. */
const MORE_ENTRIES = new Set(["link", "sdir"]);
/** A table that may make git read the entries in another order, so that a forged one can give them other names. */
const ENTRY_TABLE = "IEOT";

/**
 * Returns the paths of the repositories in the worktree that the index names. Returns undefined when it may name any.
 */
export function repositoriesIn(path: string): readonly string[] | undefined {
  const stat = lstatSync(path);
  if (!stat.isFile() || stat.size > MAX_BYTES) return undefined;
  const bytes = readFileSync(path);
  const answers = HASH_BYTES.map((hash) => namesIn(bytes, hash)).filter((answer) => answer !== "no index");
  const isCertain = answers.length > 0 && answers.every((names) => names?.every(isPlainPath));
  return isCertain ? answers.flatMap((names) => names ?? []) : undefined;
}

/** Returns whether git would write this path; it also follows other forms. */
const isPlainPath = (path: string): boolean =>
  path.split("/").every((part) => part !== "" && part !== "." && part !== "..");

/**
 * Returns undefined when the bytes may name more than the entries say, and "no index" for object names of another
 * length.
 */
function namesIn(bytes: Buffer, hashBytes: number): string[] | undefined | "no index" {
  if (bytes.length < HEADER_BYTES + hashBytes || bytes.toString("latin1", 0, 4) !== "DIRC") return "no index";
  const version = bytes.readUInt32BE(4);
  if (version < 2 || version > 4) return "no index";
  const end = bytes.length - hashBytes;
  let at = HEADER_BYTES;
  let name: Buffer = Buffer.alloc(0);
  let isComplete = true;
  const names: string[] = [];
  for (let left = bytes.readUInt32BE(8); left > 0; left--) {
    const flagsAt = at + STAT_BYTES + hashBytes;
    if (flagsAt + 2 > end) return "no index";
    const type = bytes.readUInt32BE(at + MODE_OFFSET) & TYPE_BITS;
    const flags = bytes.readUInt16BE(flagsAt);
    const isExtended = version >= 3 && (flags & EXTENDED_FLAG) !== 0;
    const entry = nameIn(bytes, { at, nameAt: flagsAt + (isExtended ? 4 : 2), version, before: name });
    if (entry === undefined || entry.next > end) return "no index";
    ({ name, next: at } = entry);
    // Git uses the length and would read another name.
    if ((flags & LENGTH_BITS) !== Math.min(name.length, LENGTH_BITS)) isComplete = false;
    if (type === GITLINK) names.push(name.toString("utf8"));
    if (type === FOLDER) isComplete = false;
  }
  while (at + 8 <= end) {
    const extension = bytes.toString("latin1", at, at + 4);
    if (MORE_ENTRIES.has(extension) || (extension === ENTRY_TABLE && names.length > 0)) isComplete = false;
    at += 8 + bytes.readUInt32BE(at + 4);
  }
  if (at !== end) return "no index";
  return isComplete ? names : undefined;
}

interface EntryAt {
  readonly at: number;
  readonly nameAt: number;
  readonly version: number;
  /** The name of the previous entry. */
  readonly before: Buffer;
}

/**
 * Returns the name of an entry and the start of the next one. Version 4 does not pad entries. Its names state how many
 * bytes to cut off the end of the previous name, and what to append.
 */
function nameIn(bytes: Buffer, { at, nameAt, version, before }: EntryAt): { name: Buffer; next: number } | undefined {
  let start = nameAt;
  let cut = 0;
  if (version === 4) {
    let byte = bytes[start++] ?? 0;
    cut = byte & 0x7f;
    while ((byte & 0x80) !== 0 && start < bytes.length) {
      byte = bytes[start++] ?? 0;
      cut = (cut + 1) * 128 + (byte & 0x7f);
    }
  }
  const zero = bytes.indexOf(0, start);
  if (zero < 0 || cut > before.length) return undefined;
  const own = bytes.subarray(start, zero);
  if (version === 4) return { name: Buffer.concat([before.subarray(0, before.length - cut), own]), next: zero + 1 };
  return { name: own, next: at + Math.ceil((zero - at + 1) / 8) * 8 };
}
