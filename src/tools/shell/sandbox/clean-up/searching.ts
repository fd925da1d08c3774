import type * as nodeFs from "node:fs";
import type { KnownTree } from "../leftovers.ts";
import type { Changes } from "./changing.ts";
import type { Pins } from "./pinning.ts";
import type { CleanUpTools } from "./tools.ts";

/** Lists folders, also those that a command made unlistable. */
export function listing({ fs }: CleanUpTools, { pinned, stat, FOLDER }: Pins, notes: string[]) {
  /** Makes a folder listable for its owner. */
  const entriesIn = (folder: string): nodeFs.Dirent[] => {
    try {
      return fs.readdirSync(folder, { withFileTypes: true });
    } catch {
      const listed = pinned(folder, (leaf) => {
        const fd = fs.openSync(leaf, FOLDER);
        try {
          fs.chmodSync(`/proc/self/fd/${fd}`, 0o700);
          return fs.readdirSync(`/proc/self/fd/${fd}`, { withFileTypes: true });
        } finally {
          fs.closeSync(fd);
        }
      });
      if (listed === undefined && pinned(folder, stat) !== undefined)
        notes.push(`Could not search ${folder}. Remove it.`);
      return listed ?? [];
    }
  };
  /** Returns folders with names that are not valid UTF-8, as latin-1. */
  const oddFolders = (folder: string, entries: readonly nodeFs.Dirent[]): string[] => {
    if (!entries.some((entry) => entry.name.includes("\ufffd"))) return [];
    return fs.readdirSync(folder, { encoding: "latin1" }).filter((name) => {
      const bytes = Buffer.from(name, "latin1");
      if (Buffer.from(bytes.toString("utf8")).equals(bytes)) return false;
      const at = Buffer.concat([Buffer.from(`${folder}/`), bytes]);
      return fs.lstatSync(at, { throwIfNoEntry: false })?.isDirectory() ?? false;
    });
  };
  return { entriesIn, oddFolders };
}

export type Listings = ReturnType<typeof listing>;
/** See `sandbox-scan.ts`. */
export type Area = "tree" | "protected" | "git" | "bare";

/** Searches for everything dangerous below a folder. The areas and their rules are those of `sandbox-scan.ts`. */
export function searching(
  { fs, path, names, parts }: CleanUpTools,
  {
    pinned,
    entriesIn,
    oddFolders,
    rename,
  }: Pick<Pins & Listings & Changes, "pinned" | "entriesIn" | "oddFolders" | "rename">,
) {
  const { basename, dirname, join } = path;
  const partsOf = (name: string): readonly string[] => (Object.hasOwn(parts, name) ? (parts[name] ?? []) : []);
  const isBare = (entries: readonly nodeFs.Dirent[]): boolean => {
    const has = new Set(entries.map((entry) => entry.name));
    return has.has("HEAD") && (has.has("commondir") || (has.has("objects") && has.has("refs")));
  };
  const search = (top: string, start: Area, before?: KnownTree) => {
    const found = { gitFolders: [] as string[], gitLinks: [] as string[], protectedNames: [] as string[] };
    const waiting = [{ folder: top, area: start }];
    const isRoot = (folder: string): boolean => folder === before?.root;
    const look = (folder: string, area: Area, entry: nodeFs.Dirent, isRepository: boolean): void => {
      const { name } = entry;
      const target = join(folder, name);
      const isLink = entry.isSymbolicLink();
      const isName = names.includes(name) || (isLink && partsOf(name).length > 0);
      const isPart = !isRoot(dirname(folder)) && partsOf(basename(folder)).includes(name);
      const isPlain = area === "tree" || area === "bare";
      if (area !== "git" && !isRoot(folder) && name === ".git") found.gitFolders.push(target);
      else if (isPlain && ((!isRoot(folder) && isName) || isPart)) found.protectedNames.push(target);
      if (isLink && (area === "git" || area === "bare" || isRepository)) {
        const link = `${target}\0${pinned(target, (leaf) => fs.readlinkSync(leaf)) ?? ""}`;
        if (!/\/HEAD\0refs\/heads\/(?!.*\.\.)/.test(link)) found.gitLinks.push(link);
      }
      const isObject = area === "git" && basename(folder) === "objects" && name !== "info" && name !== "pack";
      if (!entry.isDirectory() || isObject) return;
      const below = isPlain && isRepository ? "bare" : area;
      waiting.push({
        folder: target,
        area: area !== "git" && name === ".git" ? "git" : isPlain && isName ? "protected" : below,
      });
    };
    for (let index = 0; index < waiting.length; index++) {
      const { folder, area } = waiting[index] ?? { folder: top, area: start };
      waiting[index] = { folder: "", area };
      if (before?.unreadable.includes(folder)) continue;
      const entries = entriesIn(folder);
      const isRepository = isBare(entries);
      if (isRepository && (area !== "git" || start === "git")) found.gitFolders.push(folder);
      for (const entry of entries) look(folder, area, entry, isRepository);
      for (const name of oddFolders(folder, entries)) waiting.push({ folder: rename({ folder, name }, index), area });
    }
    return found;
  };
  return { search };
}

export type Search = ReturnType<typeof searching>["search"];
export type Found = ReturnType<Search>;
