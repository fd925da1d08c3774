/** Opens folders component by component without following links, so that a command cannot redirect what is done in them. */
import * as fs from "node:fs";
import { basename, dirname, join, sep } from "node:path";

/** Opens a folder that may not be listable. Node does not export this flag. */
export const O_PATH = 0o10000000;

/** Folders that stay open until `close`. */
export class PinnedFolders {
  readonly #held = new Map<string, number>();

  /** Returns a path that names `path` in its pinned folder. Throws when a parent folder is missing or a link. */
  leaf(path: string): string {
    return join(this.#open(dirname(path)), basename(path));
  }

  close(): void {
    for (const fd of this.#held.values()) fs.closeSync(fd);
    this.#held.clear();
  }

  #open(folder: string): string {
    if (folder === sep) return folder;
    let fd = this.#held.get(folder);
    if (fd === undefined) {
      fd = fs.openSync(this.leaf(folder), O_PATH | fs.constants.O_NOFOLLOW | fs.constants.O_DIRECTORY);
      this.#held.set(folder, fd);
    }
    return `/proc/self/fd/${fd}`;
  }
}
