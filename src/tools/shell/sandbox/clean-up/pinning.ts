import type { CleanUpTools } from "./tools.ts";

/** Does everything in folders that are opened component by component, without following links. */
export function pinning({ fs, path, pathFlag }: CleanUpTools, isInWorkspace: (target: string) => boolean) {
  const { basename, dirname, join, sep } = path;
  const { constants } = fs;
  const FOLDER = pathFlag | constants.O_NOFOLLOW | constants.O_DIRECTORY;
  const MAX_HELD = 200;
  const codeOf = (error: unknown): unknown => (error instanceof Error && "code" in error ? error.code : undefined);
  const held = new Map<string, number>();
  let nested = 0;
  /** Folders stay open until `letGo`. */
  const open = (folder: string): string => {
    if (folder === sep) return sep;
    let fd = held.get(folder);
    if (fd === undefined) {
      const above = dirname(folder);
      fd = unlocking(above, () => fs.openSync(join(open(above), basename(folder)), FOLDER));
      held.set(folder, fd);
    }
    return `/proc/self/fd/${fd}`;
  };
  const letGo = (): void => {
    for (const fd of held.values()) fs.closeSync(fd);
    held.clear();
  };
  /** A command can remove the user's rights to a folder. Restores them and tries `work` again. */
  const unlocking = <T>(folder: string, work: () => T): T => {
    try {
      return work();
    } catch (error) {
      if (codeOf(error) !== "EACCES" || !isInWorkspace(folder)) throw error;
      const leaf = open(folder);
      fs.chmodSync(leaf, (fs.statSync(leaf).mode & 0o7777) | 0o700);
      return work();
    }
  };
  /**
   * Calls `work` with a path that names `target` in its pinned folder. Returns undefined when there is no such folder,
   * and `failed` when that is unknown.
   */
  const pinned = <T>(target: string, work: (leaf: string) => T, failed?: T): T | undefined => {
    const folder = dirname(target);
    nested++;
    try {
      return unlocking(folder, () => work(join(open(folder), basename(target))));
    } catch (error) {
      return codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR" ? undefined : failed;
    } finally {
      nested--;
      if (nested === 0 && held.size > MAX_HELD) letGo();
    }
  };
  const stat = (leaf: string) => fs.lstatSync(leaf, { throwIfNoEntry: false });
  return { FOLDER, pinned, stat, letGo };
}

export type Pins = ReturnType<typeof pinning>;

/** Reads small files. */
export function reading({ fs }: CleanUpTools, { pinned, stat }: Pins) {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = fs.constants;
  const MAX_BYTES = 65_536;
  /** Returns the text of a small regular file; undefined when there is none, null when it is anything else. */
  const textOf = (target: string): string | null | undefined =>
    pinned<string | null | undefined>(
      target,
      (leaf) => {
        const before = stat(leaf);
        if (before === undefined) return undefined;
        if (!before.isFile() || before.size > MAX_BYTES) return null;
        const fd = fs.openSync(leaf, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
        try {
          return fs.readFileSync(fd, "utf8");
        } finally {
          fs.closeSync(fd);
        }
      },
      null,
    );
  /** Returns the path as git reads it from a file: trailing line breaks are ignored, spaces are not. */
  const pathIn = (text: string | null | undefined): string | undefined => text?.replace(/[\r\n]+$/, "");
  return { textOf, pathIn };
}

export type Reading = ReturnType<typeof reading>;
