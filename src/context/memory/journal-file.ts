/** Reads and writes the file of a journal. Damaged lines are moved aside, never lost. */
import { readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { type Disk, replaceFile } from "../../lib/node/disk.ts";
import { readStart } from "../../lib/node/small-file.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { decodeTransaction, encodeTransaction, type Transaction } from "./journal-line.ts";

export interface JournalFile {
  readonly transactions: readonly Transaction[];
  readonly damaged: readonly Buffer[];
  /** The bytes after the last newline: an interrupted write, or one in progress. */
  readonly tail: Buffer;
  readonly size: number;
}

const MAX_BYTES = 16 * 1024 * 1024;
const NEWLINE = 0x0a;

/** Reads the file once. A missing file is empty. Throws when the file cannot be read or is too large. */
export function readJournalFile(path: string, spaceKey: string): JournalFile {
  const file = readStart(path, { maxBytes: MAX_BYTES });
  if (file.kind === "missing") return { transactions: [], damaged: [], tail: Buffer.alloc(0), size: 0 };
  if (file.kind !== "read") throw unreadable(path, file.kind === "unreadable" ? file.code : "it is not a regular file");
  if (file.size > MAX_BYTES) throw unreadable(path, `it has more than ${MAX_BYTES} bytes`);
  const { bytes } = file;
  const transactions: Transaction[] = [];
  const damaged: Buffer[] = [];
  let start = 0;
  for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, start)) {
    const line = bytes.subarray(start, end);
    const transaction = line.length > 0 ? decodeTransaction(line.toString("utf8"), spaceKey) : undefined;
    if (transaction) transactions.push(transaction);
    else if (line.length > 0) damaged.push(line);
    start = end + 1;
  }
  return { transactions, damaged, tail: bytes.subarray(start), size: bytes.length };
}

/**
 * Appends a line and resolves once it survives a power cut. The caller must hold the lock and have read the file since.
 */
export async function appendTransaction(
  { path, disk }: { readonly path: string; readonly disk: Disk },
  file: JournalFile,
  transaction: Transaction,
): Promise<void> {
  const size = file.damaged.length > 0 || file.tail.length > 0 ? await setAside(disk, path, file) : file.size;
  const line = encodeTransaction(transaction);
  if (size + line.length > MAX_BYTES) {
    throw new TroupeError("storage", `${path} is full: a memory has at most ${MAX_BYTES} bytes.`, {
      hint: "Purge what is not needed: troupe memory remove <id> --purge",
    });
  }
  const fd = await disk.openAppend(path);
  try {
    await disk.write(fd, line);
    await disk.sync(fd);
  } catch (error) {
    // Removes the unacknowledged line. If this fails too, the next change moves it aside.
    if (size > 0) await disk.truncate(path, size).catch(() => undefined);
    throw error;
  } finally {
    await disk.close(fd).catch(() => undefined);
  }
  if (size === 0) await disk.syncDirectory(dirname(path));
}

/** Replaces the whole file atomically: readers and a power cut see the old or the new content. */
export async function rewriteJournal(disk: Disk, path: string, transactions: readonly Transaction[]): Promise<number> {
  const bytes = Buffer.concat(transactions.map(encodeTransaction));
  await replaceFile(disk, path, bytes);
  await disk.syncDirectory(dirname(path));
  return bytes.length;
}

/** Deletes damaged lines that were moved aside and interrupted rewrites, as they may contain any fact. */
export async function removeLeftovers(disk: Disk, path: string): Promise<void> {
  const isLeftover = new RegExp(`^${basename(path).replaceAll(".", "\\.")}(?:\\.damaged|\\.\\d+\\.[a-z0-9]+\\.tmp)$`);
  for (const name of readdirSync(dirname(path)).filter((entry) => isLeftover.test(entry))) {
    await disk.remove(join(dirname(path), name));
  }
  await disk.syncDirectory(dirname(path));
}

/** Copies damaged bytes beside the file before removing them. An interrupted call may copy them twice. */
async function setAside(disk: Disk, path: string, { damaged, tail, transactions }: JournalFile): Promise<number> {
  const pieces = [...damaged, ...(tail.length > 0 ? [tail] : [])];
  const fd = await disk.openAppend(`${path}.damaged`);
  try {
    for (const piece of pieces) await disk.write(fd, Buffer.concat([piece, Buffer.from("\n")]));
    await disk.sync(fd);
  } finally {
    await disk.close(fd).catch(() => undefined);
  }
  return rewriteJournal(disk, path, transactions);
}

function unreadable(path: string, why: string): TroupeError {
  return new TroupeError("storage", `The memory in ${path} cannot be read: ${why}.`, {
    hint: "Move the file away to start with an empty memory.",
  });
}
