import { statfsSync, watch } from "node:fs";

export interface FolderWatch {
  close(): void;
}

/**
 * File systems whose changes all pass this machine's kernel, whoever makes them: other containers, and machines to
 * which the folder is exported. ext2-4, xfs, btrfs, tmpfs, overlayfs, f2fs, zfs, bcachefs.
 */
const LOCAL_TYPES: ReadonlySet<number> = new Set([
  0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x794c7630, 0xf2f52010, 0x2fc12fc1, 0xca451a4e,
]);

/**
 * Calls `onEntry` with the name of each entry of a folder that is created, changed or removed, by any process. Costs
 * nothing while nothing changes, and does not keep the process alive.
 *
 * Returns undefined where changes by others could be missed: not on Linux, on a network or user-space file system, or
 * when the system has no watch left. `onLost` is called if the watch ends later.
 */
export function watchFolder(
  directory: string,
  onEntry: (name: string) => void,
  onLost: () => void = () => undefined,
): FolderWatch | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    if (!LOCAL_TYPES.has(statfsSync(directory).type)) return undefined;
    const watcher = watch(directory, { persistent: false }, (_, name) => {
      if (name !== null) onEntry(name);
    });
    watcher.on("error", () => {
      watcher.close();
      onLost();
    });
    return watcher;
  } catch {
    return undefined;
  }
}
