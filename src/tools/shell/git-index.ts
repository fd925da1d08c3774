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
/** A table of blocks of entries that git reads in parallel, each from its offset. */
const ENTRY_TABLE = "IEOT";
const ENTRY_TABLE_VERSION = 1;
/** States where the entries end. Git looks for it at the end of the file and reads the table from there. */
const END_OF_ENTRIES = "EOIE";

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
  const entries: Entries = { starts: new Map(), count: bytes.readUInt32BE(8), end: HEADER_BYTES };
  let name: Buffer = Buffer.alloc(0);
  let isComplete = true;
  const names: string[] = [];
  for (let number = 0; number < entries.count; number++) {
    const at = entries.end;
    const flagsAt = at + STAT_BYTES + hashBytes;
    if (flagsAt + 2 > end) return "no index";
    const type = bytes.readUInt32BE(at + MODE_OFFSET) & TYPE_BITS;
    const flags = bytes.readUInt16BE(flagsAt);
    const isExtended = version >= 3 && (flags & EXTENDED_FLAG) !== 0;
    const entry = nameIn(bytes, { at, nameAt: flagsAt + (isExtended ? 4 : 2), version, before: name });
    if (entry === undefined || entry.next > end) return "no index";
    if (entry.isWhole) entries.starts.set(at, number);
    ({ name, next: entries.end } = entry);
    // Git uses the length and would read another name.
    if ((flags & LENGTH_BITS) !== Math.min(name.length, LENGTH_BITS)) isComplete = false;
    if (type === GITLINK) names.push(name.toString("utf8"));
    if (type === FOLDER) isComplete = false;
  }
  const extensions = extensionsIn(bytes, entries.end, end);
  if (extensions === undefined) return "no index";
  const isTrue = isTrueEnd(bytes, end - hashBytes, entries) && extensions.every((one) => isTrueTable(one, entries));
  return isComplete && isTrue && !extensions.some(({ name: one }) => MORE_ENTRIES.has(one)) ? names : undefined;
}

/** The entries as they follow each other in the file. */
interface Entries {
  /** Offsets of entries whose names do not depend on the entry before, with their numbers. */
  readonly starts: Map<number, number>;
  readonly count: number;
  end: number;
}

interface Extension {
  readonly name: string;
  readonly content: Buffer;
}

/** Returns undefined when the extensions do not fill the file exactly. */
function extensionsIn(bytes: Buffer, start: number, end: number): Extension[] | undefined {
  const extensions: Extension[] = [];
  let at = start;
  while (at + 8 <= end) {
    const next = at + 8 + bytes.readUInt32BE(at + 4);
    extensions.push({ name: bytes.toString("latin1", at, at + 4), content: bytes.subarray(at + 8, next) });
    at = next;
  }
  return at === end ? extensions : undefined;
}

/**
 * Returns whether git starts to read extensions where the entries end. `at`: the end of the statement of that place,
 * apart from a hash.
 */
function isTrueEnd(bytes: Buffer, at: number, entries: Entries): boolean {
  if (bytes.toString("latin1", Math.max(0, at - 12), at - 8) !== END_OF_ENTRIES) return true;
  return bytes.readUInt32BE(at - 4) === entries.end;
}

/** Returns whether git reads the same entries by the table as one after the other. A forged table gives them other names. */
function isTrueTable({ name, content }: Extension, { starts, count }: Entries): boolean {
  if (name !== ENTRY_TABLE) return true;
  if (content.length % 8 !== 4 || content.readUInt32BE(0) !== ENTRY_TABLE_VERSION) return false;
  let number = 0;
  for (let at = 4; at < content.length; at += 8) {
    if (starts.get(content.readUInt32BE(at)) !== number) return false;
    number += content.readUInt32BE(at + 4);
  }
  return number === count;
}

interface EntryAt {
  readonly at: number;
  readonly nameAt: number;
  readonly version: number;
  /** The name of the previous entry. */
  readonly before: Buffer;
}

interface Entry {
  readonly name: Buffer;
  /** True when the name does not depend on the previous entry. */
  readonly isWhole: boolean;
  /** The start of the next entry. */
  readonly next: number;
}

/**
 * Version 4 does not pad entries. Its names state how many bytes to cut off the end of the previous name, and what to
 * append.
 */
function nameIn(bytes: Buffer, { at, nameAt, version, before }: EntryAt): Entry | undefined {
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
  if (version === 4) {
    const name = Buffer.concat([before.subarray(0, before.length - cut), own]);
    return { name, isWhole: cut === before.length, next: zero + 1 };
  }
  return { name: own, isWhole: true, next: at + Math.ceil((zero - at + 1) / 8) * 8 };
}
