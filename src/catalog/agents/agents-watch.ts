/**
 * Detects agents that are added, changed or removed while a session runs. Existing folders are watched. `refresh`
 * detects changes in folders that appear later, and where watching fails.
 */
import * as fs from "node:fs";
import { join } from "node:path";
import { readFolder } from "../../context/skills/read-inside.ts";
import { type AgentCatalog, type AgentSources, loadAgents } from "./agents.ts";
import { type AgentLocation, agentId, agentLocations } from "./agents-locations.ts";

export interface AgentWatch {
  /** The catalog as last read. */
  readonly current: AgentCatalog;
  /** Compares names and times of the files, and reads them again only if something differs. */
  refresh(): Promise<AgentCatalog>;
  close(): void;
}

const QUIET_MS = 200;
const MAX_WATCHED = 64;
const MAX_ENTRIES = 1000;

/** Calls `onChange` with every catalog that differs from the one before. */
export async function watchAgents(
  sources: AgentSources,
  onChange: (catalog: AgentCatalog) => void,
): Promise<AgentWatch> {
  const locations = agentLocations(sources);
  let seen = fingerprint(locations);
  let current = await loadAgents(sources);
  let reading: Promise<AgentCatalog> | undefined;
  let isClosed = false;

  const read = async (): Promise<AgentCatalog> => {
    const now = fingerprint(locations);
    if (now === seen || isClosed) return current;
    const catalog = await loadAgents(sources);
    seen = now;
    current = catalog;
    if (!isClosed) {
      folders.update();
      onChange(catalog);
    }
    return catalog;
  };
  /** Reads one at a time. Callers during a read get the result of a later one. */
  const refresh = (): Promise<AgentCatalog> => {
    const next = (reading ?? Promise.resolve()).then(read, read).finally(() => {
      if (reading === next) reading = undefined;
    });
    reading = next;
    return next;
  };
  const folders = watchFolders(
    locations.map(({ path }) => path),
    () => void refresh().catch(() => undefined),
  );
  folders.update();
  return {
    get current() {
      return current;
    },
    refresh,
    close() {
      isClosed = true;
      folders.close();
    },
  };
}

/** Calls `onQuiet` after changes, once they have stopped for `QUIET_MS`. Does not keep the process alive. */
function watchFolders(paths: readonly string[], onQuiet: () => void) {
  const watchers = new Map<string, fs.FSWatcher>();
  let timer: NodeJS.Timeout | undefined;
  const stir = (): void => {
    clearTimeout(timer);
    timer = setTimeout(onQuiet, QUIET_MS).unref();
  };
  const forget = (path: string): void => {
    watchers.get(path)?.close();
    watchers.delete(path);
  };
  const watch = (path: string): void => {
    try {
      const watcher = fs.watch(path, { persistent: false }, stir);
      watcher.on("error", () => forget(path));
      watchers.set(path, watcher);
      stir(); // covers changes before the watch began
    } catch {
      // Too many watches, or a file system without them: `refresh` detects changes then.
    }
  };
  return {
    /** Watches folders that appeared, and drops those that are gone. */
    update(): void {
      for (const path of paths) {
        const isThere = fs.statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
        if (!isThere) forget(path);
        else if (!watchers.has(path) && watchers.size < MAX_WATCHED) watch(path);
      }
    },
    close(): void {
      clearTimeout(timer);
      for (const path of [...watchers.keys()]) forget(path);
    },
  };
}

function fingerprint(locations: readonly AgentLocation[]): string {
  return locations
    .flatMap(({ path }) => {
      const entries = readFolder(path, MAX_ENTRIES)?.entries ?? [];
      return entries.filter(({ name }) => agentId(name) !== undefined).map(({ name }) => stateOf(join(path, name)));
    })
    .join("\n");
}

function stateOf(path: string): string {
  try {
    const stat = fs.statSync(path, { throwIfNoEntry: false });
    return `${path}\0${stat?.mtimeMs}\0${stat?.size}\0${stat?.ino}`;
  } catch {
    return path;
  }
}
