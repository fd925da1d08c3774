/** Reads the index of a repository, only to learn whether git would step from there into another repository. */
import { lstatSync, readFileSync } from "node:fs";

/** A larger index is taken to name repositories. */
const MAX_BYTES = 64 * 1024 * 1024;
const HEADER_BYTES = 12;
/** Where the mode lies in an entry, and how long an entry is up to the object's name. */
const MODE_OFFSET = 24;
const STAT_BYTES = 40;
/** SHA-1 and SHA-256. Which of them the repository uses does not stand in the index. */
const HASH_BYTES = [20, 32];
/** Git looks at these bits of a mode only. */
const TYPE_BITS = 0xf000;
const GITLINK = 0xe000;
const FOLDER = 0x4000;
const EXTENDED_FLAG = 0x4000;
/** A shared index, and folders that stand for everything in them. */
const MORE_ENTRIES = new Set(["link", "sdir"]);

/** True when it may name some, also when it cannot be read. */
export function indexNamesRepositories(path: string): boolean {
  const stat = lstatSync(path);
  if (!stat.isFile() || stat.size > MAX_BYTES) return true;
  const bytes = readFileSync(path);
  const answers = HASH_BYTES.map((hash) => namesIn(bytes, hash)).filter((answer) => answer !== undefined);
  return answers.length === 0 || answers.includes(true);
}

/** Undefined when the bytes are no index with object names of this length. */
function namesIn(bytes: Buffer, hashBytes: number): boolean | undefined {
  if (bytes.length < HEADER_BYTES + hashBytes || bytes.toString("latin1", 0, 4) !== "DIRC") return undefined;
  const version = bytes.readUInt32BE(4);
  if (version < 2 || version > 4) return undefined;
  const end = bytes.length - hashBytes;
  let at = HEADER_BYTES;
  let names = false;
  for (let left = bytes.readUInt32BE(8); left > 0; left--) {
    const flagsAt = at + STAT_BYTES + hashBytes;
    if (flagsAt + 2 > end) return undefined;
    const type = bytes.readUInt32BE(at + MODE_OFFSET) & TYPE_BITS;
    names ||= type === GITLINK || type === FOLDER;
    const isExtended = version >= 3 && (bytes.readUInt16BE(flagsAt) & EXTENDED_FLAG) !== 0;
    const next = afterName(bytes, { at, nameAt: flagsAt + (isExtended ? 4 : 2), version });
    if (next === undefined || next > end) return undefined;
    at = next;
  }
  while (at + 8 <= end) {
    names ||= MORE_ENTRIES.has(bytes.toString("latin1", at, at + 4));
    at += 8 + bytes.readUInt32BE(at + 4);
  }
  return at === end ? names : undefined;
}

/** Where the entry after this one begins. Version 4 shortens names and does not pad entries. */
function afterName(
  bytes: Buffer,
  { at, nameAt, version }: { at: number; nameAt: number; version: number },
): number | undefined {
  let start = nameAt;
  if (version === 4) {
    while (start < bytes.length && ((bytes[start] ?? 0) & 0x80) !== 0) start++;
    start++;
  }
  const zero = bytes.indexOf(0, start);
  if (zero < 0) return undefined;
  return version === 4 ? zero + 1 : at + Math.ceil((zero - at + 1) / 8) * 8;
}
