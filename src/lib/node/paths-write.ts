/**
 * The only way in which tools change files. A target is found as in `paths.ts`: the folder is opened and its real path
 * is compared with the allowed roots. All later steps use that folder's descriptor: a temporary file beside the old one
 * is synced, then renamed over it. Readers see the old content or the new, never a mixture. Replacing a folder or a
 * file with a link has no effect.
 */
import * as fs from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { type Disk, nodeDisk } from "./disk.ts";
import {
  absolutePath,
  changedMeanwhile,
  explain,
  kindOf,
  MAX_LINK_HOPS,
  type OpenedFolder,
  openFolderByDescriptor,
  PathError,
  type PathScope,
  refuseUnlessAllowed,
} from "./paths.ts";
import { codeOf, readWhole, refuseIfChanged, replace, statIfExists, writeFailure } from "./paths-replace.ts";

export interface WriteScope extends PathScope {
  readonly disk?: Disk;
  /** Returns why nothing may be written at this real path, regardless of the roots; undefined if it may. */
  readonly reasonToRefuse?: (realPath: string) => string | undefined;
}

/** A name in an open folder, where a file exists or could be created. The caller closes it. */
export interface WriteTarget {
  /** Absolute, as the caller wrote it: links are not resolved. */
  readonly path: string;
  /** The real path of a write. */
  readonly realPath: string;
  /** The entry when the target was opened; undefined if there was none. */
  readonly stat: fs.Stats | undefined;
  /** Folders that a write creates first, the outermost first. */
  readonly missingFolders: readonly string[];
  /** Returns the whole content of the file. */
  read(maxBytes: number): Promise<Buffer>;
  /** Replaces or creates the file atomically. Fails if the entry has changed since the target was opened. */
  write(content: Uint8Array, options?: { mode?: number }): Promise<fs.Stats>;
  /** Removes the file, the link or the empty folder. */
  remove(): Promise<void>;
  /** Creates a folder with this mode. An existing one only gets the mode. */
  makeFolder(mode: number): Promise<void>;
  makeLink(target: string): Promise<void>;
  close(): Promise<void>;
}

const NEW_FOLDER_MODE = 0o777;

/**
 * Opens the path of a regular file, or of one that could be created. Links are followed while every step stays inside.
 */
export async function openForWriting(path: string, scope: WriteScope): Promise<WriteTarget> {
  const asked = absolutePath(path, scope.cwd);
  let target = asked;
  for (let hop = 0; hop <= MAX_LINK_HOPS; hop++) {
    const opened = await openAsIs(target, scope, asked);
    try {
      if (opened.stat?.isSymbolicLink()) {
        target = absolutePath(resolve(dirname(opened.realPath), await opened.read(0).then(String)), scope.cwd);
        await opened.close();
        continue;
      }
      if (hop > 0 && opened.stat === undefined) throw dangling(asked, opened.realPath);
      if (opened.stat) refuseUnlessWritable(opened.stat, asked);
      return opened;
    } catch (error) {
      await opened.close();
      throw await explain(error, { asked, target, scope });
    }
  }
  throw new PathError("invalid", asked, `Path ${asked} leads through more than ${MAX_LINK_HOPS} symbolic links.`);
}

/** Opens the path of the entry itself: a link, not its target. Reading a link returns its target. */
export async function openAsIs(path: string, scope: WriteScope, asked = path): Promise<WriteTarget> {
  const target = absolutePath(path, scope.cwd);
  const open = scope.openFolder ?? openFolderByDescriptor;
  try {
    const { folder, missing } = await nearestFolder(dirname(target), { open, asked });
    try {
      const realPath = join(folder.realPath, ...missing, basename(target));
      refuseUnlessAllowed(realPath, asked, scope);
      const reason = scope.reasonToRefuse?.(realPath);
      if (reason !== undefined) throw new PathError("outside", asked, `Path ${asked} cannot be written: ${reason}`);
      const stat = missing.length > 0 ? undefined : await statIfExists(folder.child(basename(target)));
      return writeTarget({ asked, realPath, folder, missing, stat, disk: scope.disk ?? nodeDisk, open });
    } catch (error) {
      await folder.close();
      throw error;
    }
  } catch (error) {
    throw await explain(error, { asked, target, scope });
  }
}

/** Removes folders that were created for a file, if they are empty. The outermost comes first in the list. */
export async function removeEmptyFolders(folders: readonly string[], scope: WriteScope): Promise<void> {
  for (const folder of [...folders].reverse()) {
    const opened = await openAsIs(folder, scope).catch(() => undefined);
    if (opened?.stat?.isDirectory()) await opened.remove().catch(() => undefined);
    await opened?.close();
  }
}

type Open = (path: string) => Promise<OpenedFolder>;

/** Returns the innermost existing folder of the path, and the missing names below it. */
async function nearestFolder(
  path: string,
  { open, asked }: { open: Open; asked: string },
): Promise<{ folder: OpenedFolder; missing: string[] }> {
  const missing: string[] = [];
  for (let at = path; ; at = dirname(at)) {
    const folder = await open(at).catch((error: unknown) => {
      if (codeOf(error) === "ENOENT" && dirname(at) !== at) return undefined;
      throw error;
    });
    if (folder === undefined) {
      missing.unshift(basename(at));
      continue;
    }
    const [next] = missing;
    // An existing name that could not be opened is a dangling link: a write through it would land elsewhere.
    const blocking = next === undefined ? undefined : await statIfExists(folder.child(next));
    if (blocking === undefined) return { folder, missing };
    await folder.close();
    if (blocking.isSymbolicLink()) throw dangling(asked, join(folder.realPath, next ?? ""));
    throw changedMeanwhile(asked);
  }
}

interface WriteTargetParts {
  readonly asked: string;
  readonly realPath: string;
  readonly folder: OpenedFolder;
  readonly missing: readonly string[];
  readonly stat: fs.Stats | undefined;
  readonly disk: Disk;
  readonly open: Open;
}

function writeTarget(parts: WriteTargetParts): WriteTarget {
  const { asked, realPath, missing, stat, disk } = parts;
  const leaf = basename(realPath);
  let folder = parts.folder;
  let unmade = [...missing];
  const withWriteError = <T>(work: Promise<T>): Promise<T> =>
    work.catch((error: unknown) => {
      throw writeFailure(error, asked);
    });
  const prepare = async (): Promise<void> => {
    for (const name of unmade) {
      const inner = await makeFolderIn(folder, name, parts);
      await folder.close();
      folder = inner;
    }
    unmade = [];
    await refuseIfChanged(folder, leaf, { stat, asked });
  };
  return {
    path: asked,
    realPath,
    stat,
    missingFolders: missing.map((_, index) => join(parts.folder.realPath, ...missing.slice(0, index + 1))),
    read: (maxBytes) => withWriteError(readWhole(folder.child(leaf), { stat, maxBytes, asked })),
    write: (content, { mode } = {}) =>
      withWriteError(
        prepare().then(() => replace({ content, mode: mode ?? stat?.mode, stat, folder, leaf, disk, asked })),
      ),
    async remove() {
      await withWriteError(
        prepare().then(() =>
          stat?.isDirectory() ? fs.promises.rmdir(folder.child(leaf)) : disk.unlink(folder.child(leaf)),
        ),
      );
      await disk.syncDirectory(folder.child("."));
    },
    async makeFolder(mode) {
      await withWriteError(prepare());
      if (!stat?.isDirectory())
        await withWriteError(fs.promises.mkdir(folder.child(leaf), { mode }).then(() => undefined));
      await fs.promises.chmod(folder.child(leaf), mode & 0o7777);
      await disk.syncDirectory(folder.child("."));
    },
    makeLink: (target) => withWriteError(prepare().then(() => fs.promises.symlink(target, folder.child(leaf)))),
    close: () => folder.close(),
  };
}

async function makeFolderIn(
  folder: OpenedFolder,
  name: string,
  { asked, disk, open }: WriteTargetParts,
): Promise<OpenedFolder> {
  if (!(await folder.inPlace())) throw changedMeanwhile(asked);
  await fs.promises.mkdir(folder.child(name), { mode: NEW_FOLDER_MODE }).catch((error: unknown) => {
    if (codeOf(error) !== "EEXIST") throw error;
  });
  await disk.syncDirectory(folder.child("."));
  const made = await open(folder.child(name));
  if (made.realPath === join(folder.realPath, name)) return made;
  await made.close();
  throw changedMeanwhile(asked);
}

function refuseUnlessWritable(stat: fs.Stats, path: string): void {
  if (kindOf(stat, path) === "directory") throw new PathError("special", path, `Path ${path} is a folder, not a file.`);
  if (stat.nlink > 1) {
    const why = `has ${stat.nlink} names (hard links), so that a change could reach a file outside the allowed folders`;
    throw new PathError("special", path, `${path} ${why}. Copy it to a new file and change that, or ask the user.`);
  }
  if ((stat.mode & 0o222) === 0) {
    throw new PathError("unreadable", path, `${path} is read-only. Ask the user to make it writable first.`);
  }
}

function dangling(asked: string, link: string): PathError {
  const where = link === asked ? "is" : `leads through ${link}, which is`;
  return new PathError("invalid", asked, `Path ${asked} ${where} a symbolic link to something that does not exist.`);
}
