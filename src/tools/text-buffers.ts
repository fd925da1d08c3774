/**
 * Texts that client programs hold open: editor buffers, saved or not. A tool first opens its file on disk, with all
 * checks of `lib/node/paths.ts`. A buffer counts only when its text differs from the file.
 */
import { lstat, realpath } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { isInside, sameObject } from "../lib/node/paths.ts";

/** All paths are real paths. */
export interface TextBufferPort {
  /** False while no client holds texts. */
  readonly isOffered: boolean;
  /** Resolves to undefined when no client has the file, or none answers in time. */
  read(path: string, signal: AbortSignal): Promise<string | undefined>;
  /** Asks the client that holds the buffer to write it. Resolves to false when no client did. */
  write(path: string, text: string, signal: AbortSignal): Promise<boolean>;
}

const MAX_HELD_BYTES = 10 * 1024 * 1024;

type Stat = Parameters<typeof sameObject>[0];

/** The file that was opened on disk. */
interface OnDisk {
  readonly realPath: string;
  readonly stat: Stat;
  /** The complete content. */
  readonly content: Buffer;
}

/**
 * Returns the unsaved text of a file in the form it would have on disk, or undefined when disk and buffer agree.
 *
 * Clients open files by name and may follow a link that was created meanwhile. So the answer is dropped unless every
 * parent folder is unchanged: replacing a name changes the timestamp of its folder.
 */
export async function unsavedContent(
  file: OnDisk,
  context: { readonly buffers?: TextBufferPort; readonly signal: AbortSignal; readonly roots: readonly string[] },
): Promise<Buffer | undefined> {
  const { buffers, signal, roots } = context;
  if (!buffers?.isOffered || file.content.includes(0)) return undefined;
  const before = await quietFolders(file.realPath, roots);
  if (before === undefined || !(await isInPlace(file.realPath, file.stat))) return undefined;
  const held = await buffers.read(file.realPath, signal);
  if (held === undefined || Buffer.byteLength(held) > MAX_HELD_BYTES) return undefined;
  const saved = textOf(file.content);
  if (saved === undefined) return undefined;
  if (plain(held) === plain(saved)) return undefined;
  if ((await foldersAbove(file.realPath, roots)).state !== before) return undefined;
  return Buffer.from(likeSaved(held, saved));
}

/** Two changes in one tick of the file system clock look like one. */
const QUIET_MS = 50;

/** Returns undefined when a folder keeps changing. */
async function quietFolders(path: string, roots: readonly string[]): Promise<string | undefined> {
  for (let look = 0; look < 3; look++) {
    if (look > 0) await pause(QUIET_MS);
    const { state, newestMs } = await foldersAbove(path, roots);
    if (newestMs < Date.now() - QUIET_MS) return state;
  }
  return undefined;
}

/** Returns the folders between the file and its root, which commands of the session can change. */
async function foldersAbove(path: string, roots: readonly string[]): Promise<{ state: string; newestMs: number }> {
  const folders: string[] = [];
  for (let at = dirname(path); isInside(at, roots); at = dirname(at)) folders.push(at);
  const stats = await Promise.all(folders.map((folder) => lstat(folder, { bigint: true }))).catch(() => undefined);
  if (!stats) return { state: "gone", newestMs: Number.POSITIVE_INFINITY };
  return {
    state: stats.map(({ dev, ino, ctimeNs }) => `${dev}:${ino}:${ctimeNs}`).join(" "),
    newestMs: Math.max(0, ...stats.map(({ ctimeNs }) => Number(ctimeNs / 1_000_000n))),
  };
}

/** Returns true while the name still leads to this file and not through a link. */
export async function isInPlace(path: string, stat: Stat): Promise<boolean> {
  const [now, leadsTo] = await Promise.all([lstat(path), realpath(path)]).catch(() => []);
  return now !== undefined && leadsTo === path && sameObject(now, stat);
}

/** Returns undefined for anything but UTF-8 text. */
export function textOf(content: Uint8Array): string | undefined {
  if (content.includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(content);
  } catch {
    return undefined;
  }
}

const MARK = "\ufeff";

/** Editors drop the byte order mark and use line feeds for all line endings. */
const plain = (text: string): string => text.replace(MARK, "").replaceAll("\r\n", "\n");

function likeSaved(held: string, saved: string): string {
  const isWindows = saved.includes("\r\n") && !/(?<!\r)\n/.test(saved);
  const lines = isWindows ? plain(held).replaceAll("\n", "\r\n") : held.replace(MARK, "");
  return saved.startsWith(MARK) ? MARK + lines : lines;
}
