/** A log that a feed reads: the file of a session on this machine, or its rows in a database. */
import { watch } from "node:fs";
import { dirname } from "node:path";
import { LOCK_FILE } from "../store/lock-holder.ts";
import { type LinePage, LogLines } from "../store/log/log-lines.ts";

export interface LogSource {
  /** Returns the lines after the one with this number. */
  read(after: number): Promise<LinePage>;
  /** Calls back when the log may have grown. Returns a function that ends it. */
  watch(onChange: () => void): () => void;
}

/** `onLock` is called when a process opens or leaves the session. */
export function fileSource(path: string, onLock: () => void): LogSource {
  const lines = new LogLines(path);
  return {
    read: (after) => lines.read(after),
    watch(onChange) {
      try {
        const watcher = watch(dirname(path), { persistent: false }, (kind, name) => {
          if (kind === "rename" && name === LOCK_FILE) onLock();
          if (name === null || path.endsWith(name)) onChange();
        });
        watcher.on("error", () => watcher.close());
        return () => watcher.close();
      } catch {
        // A folder that is gone, or no more watches: the list of sessions notices changes by looking.
        return () => undefined;
      }
    },
  };
}
