/**
 * `snapshot.json`: the condensed beginning of a log. With it, opening a session costs what is still relevant, not
 * everything that ever happened. It is derived: a snapshot that is missing, damaged, or of another version or log is
 * ignored.
 *
 * The file is one line of JSON about the log and the body, then the body. It is used only if
 * - its own checksum is correct, and its rules are those of this program;
 * - the log still begins with the bytes it was made from. Either the log file is unchanged (same inode, size and
 *   times), or the checksum of these bytes is correct.
 */
import { open, readFile } from "node:fs/promises";
import { crc32 } from "node:zlib";
import { isObject, parseJson } from "../../lib/json.ts";
import { type Disk, replaceFile } from "../../lib/node/disk.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import type { Damage } from "../damage.ts";
import type { LogPosition } from "./read-log.ts";

export const SNAPSHOT_FILE = "snapshot.json";
const VERSION = 1;
const MAX_BYTES = 128 * 1024 * 1024;
const PIECE_BYTES = 1024 * 1024;
const MIN_LOG_BYTES = 1024 * 1024;

/** The rules for condensing events. `src/store` does not know what events mean. */
export interface SnapshotRules {
  /** Must change whenever the same events condense to something else. */
  readonly version: number;
  condense(events: readonly SessionEvent[]): readonly SessionEvent[];
  condenseRemoved(events: readonly SessionEvent[]): readonly SessionEvent[];
  /** True when enough can be dropped before this event to be worth condensing. */
  isMilestone(event: SessionEvent): boolean;
  /** Logs shorter than this have no snapshot (default: 1 MiB). */
  readonly minLogBytes?: number;
  /** Number of events to read before condensing (default: 10,000). */
  readonly chunkEvents?: number;
}

export const minLogBytes = ({ minLogBytes: bytes = MIN_LOG_BYTES }: SnapshotRules): number => bytes;

/** The content of a log up to a position. */
export interface Snapshot {
  /** Events in view, condensed. */
  readonly events: readonly SessionEvent[];
  /** Events out of view, condensed. */
  readonly removed: readonly SessionEvent[];
  /** Number of events in view, before condensing. */
  readonly count: number;
  readonly damage: readonly Damage[];
}

/** The length of a log's prefix and the checksum of its bytes. */
export interface Prefix {
  readonly length: number;
  readonly checksum: number;
}

interface Header extends Prefix, Omit<LogPosition, "offset"> {
  readonly version: number;
  readonly rules: number;
  readonly file: FileIdentity;
  readonly body: { readonly bytes: number; readonly checksum: number };
}

interface FileIdentity {
  readonly ino: string;
  readonly size: number;
  readonly changed: string;
}

export interface ReadSnapshot {
  readonly snapshot: Snapshot;
  readonly position: LogPosition;
  readonly prefix: Prefix;
}

/** Returns `undefined` when there is no usable snapshot. Never throws. */
export async function readSnapshot(
  paths: { readonly log: string; readonly snapshot: string },
  rules: number,
): Promise<ReadSnapshot | undefined> {
  try {
    const bytes = await readFile(paths.snapshot);
    const end = bytes.indexOf(0x0a);
    const header = headerIn(bytes.toString("utf8", 0, Math.max(0, end)));
    const body = bytes.subarray(end + 1);
    if (!header || header.version !== VERSION || header.rules !== rules) return undefined;
    if (body.length !== header.body.bytes || crc32(body) !== header.body.checksum) return undefined;
    if (!(await isPrefix(paths.log, header))) return undefined;
    const snapshot = JSON.parse(body.toString("utf8")) as Snapshot;
    const { length, checksum, lines, last, afterDamage } = header;
    return { snapshot, position: { offset: length, lines, last, afterDamage }, prefix: { length, checksum } };
  } catch {
    return undefined;
  }
}

/**
 * Replaces the snapshot with one of the log up to `position`. `before` is a prefix with a known checksum. Returns the new
 * prefix, or `undefined` if the snapshot would be too large to help or the log is shorter than `position`.
 */
export async function writeSnapshot(
  disk: Disk,
  paths: { readonly log: string; readonly snapshot: string },
  what: {
    readonly snapshot: Snapshot;
    readonly rules: number;
    readonly position: LogPosition;
    readonly before?: Prefix;
  },
): Promise<Prefix | undefined> {
  const { snapshot, rules, position } = what;
  const body = Buffer.from(JSON.stringify(snapshot));
  if (body.length > MAX_BYTES || body.length > position.offset) return undefined;
  const known = what.before && what.before.length <= position.offset ? what.before : { length: 0, checksum: 0 };
  const file = await identityOf(paths.log);
  const checksum = await checksumOf(paths.log, known, position.offset);
  if (checksum === undefined) return undefined;
  const { offset: length, ...where } = position;
  const header: Header = {
    version: VERSION,
    rules,
    length,
    checksum,
    ...where,
    file,
    body: { bytes: body.length, checksum: crc32(body) },
  };
  await replaceFile(disk, paths.snapshot, Buffer.concat([Buffer.from(`${JSON.stringify(header)}\n`), body]));
  return { length: position.offset, checksum };
}

function headerIn(text: string): Header | undefined {
  const json = parseJson(text);
  return json.ok && isObject(json.value) && isObject(json.value.body) ? (json.value as unknown as Header) : undefined;
}

async function isPrefix(log: string, header: Header): Promise<boolean> {
  const now = await identityOf(log);
  const { file, length } = header;
  if (now.size < length) return false;
  // An unchanged file need not be read.
  if (now.size === length && now.ino === file.ino && now.size === file.size && now.changed === file.changed)
    return true;
  return (await checksumOf(log, { length: 0, checksum: 0 }, length)) === header.checksum;
}

async function identityOf(log: string): Promise<FileIdentity> {
  const file = await open(log, "r");
  try {
    const { ino, size, mtimeNs, ctimeNs } = await file.stat({ bigint: true });
    return { ino: String(ino), size: Number(size), changed: `${mtimeNs} ${ctimeNs}` };
  } finally {
    await file.close();
  }
}

/** Returns `undefined` if the file is shorter than `to`. */
async function checksumOf(log: string, from: Prefix, to: number): Promise<number | undefined> {
  const file = await open(log, "r");
  try {
    const buffer = Buffer.allocUnsafe(Math.max(1, Math.min(PIECE_BYTES, to - from.length)));
    let { length: position, checksum } = from;
    while (position < to) {
      const { bytesRead } = await file.read(buffer, 0, Math.min(buffer.length, to - position), position);
      if (bytesRead === 0) return undefined;
      checksum = crc32(buffer.subarray(0, bytesRead), checksum);
      position += bytesRead;
    }
    return checksum;
  } finally {
    await file.close();
  }
}
