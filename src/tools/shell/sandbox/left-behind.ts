/**
 * Undoes what a sandboxed command must not leave behind: mount points, replaced links, and files that would make git or
 * an editor run something as the user later. The same function runs in three places: in this process when a command has
 * ended, in the watchdog after troupe was killed, and in the keeper of a detached command. The last two start it with
 * `node -e` and its source text, so it uses nothing but its parameters.
 */
import * as nodeFs from "node:fs";
import * as nodePath from "node:path";
import { PROTECTED_FILES, PROTECTED_FOLDERS, PROTECTED_PARTS } from "../../../lib/protected-names.ts";
import { cleanUp, cleanUpParts } from "./clean-up/clean-up.ts";
import type { CleanUpTools } from "./clean-up/tools.ts";
import type { LeftBehind, MountPoint } from "./leftovers.ts";
import { O_PATH, PinnedFolders } from "./pinned-folders.ts";

/** Protected names below the top of a workspace. `.gitmodules` there belongs to a repository with a protected configuration. */
export const NESTED_NAMES: readonly string[] = [...PROTECTED_FOLDERS, ...PROTECTED_FILES].filter(
  (name) => name !== ".gitmodules",
);

/** Creates mount points in pinned folders. Throws when a parent folder is a link, or when a name is taken. */
export function makePoints(points: readonly MountPoint[]): void {
  const folders = new PinnedFolders();
  try {
    for (const { path, kind } of points) {
      if (kind === "folder") nodeFs.mkdirSync(folders.leaf(path), { mode: 0o755 });
      else nodeFs.writeFileSync(folders.leaf(path), kind === "commondir" ? ".\n" : "", { flag: "wx", mode: 0o644 });
    }
  } finally {
    folders.close();
  }
}

/** Runs `cleanUp` in this process. */
export const cleanUpHere = (left: LeftBehind): string[] =>
  cleanUp({ fs: nodeFs, path: nodePath.posix, ...LISTS }, cleanUpParts, left);

const LISTS = { names: NESTED_NAMES, parts: PROTECTED_PARTS, pathFlag: O_PATH };

/**
 * A program for `node -e`. It reads one `LeftBehind` per line from its input, adds the records of processes that have
 * ended, and writes its notes to a report file. Its argument is the folder of the records.
 */
export const CLEAN_UP_PROGRAM = `(${cleanUpAlone.toString()})(require, ${sourceOfCleanUp()}, ${JSON.stringify(LISTS)})`;

/** Returns the text of a function that calls `cleanUp` with its parts. */
function sourceOfCleanUp(): string {
  const parts = Object.entries(cleanUpParts).map(([name, part]) => `${name}: ${part.toString()}`);
  return `((tools, left) => (${cleanUp.toString()})(tools, {${parts.join(",")}}, left))`;
}

type CleanUp = (tools: CleanUpTools, left: LeftBehind) => string[];

function cleanUpAlone(load: NodeJS.Require, clean: CleanUp, lists: typeof LISTS): void {
  const fs: typeof nodeFs = load("node:fs");
  const path: typeof nodePath = load("node:path");
  const [folder = ""] = process.argv.slice(1);
  const used = new Set<string>();
  const ended: string[] = [];
  const jobs: LeftBehind[] = fs
    .readFileSync(0, "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
  for (const name of fs.readdirSync(folder).filter((entry) => /^mounts-\d+\.json$/.test(entry))) {
    try {
      const record = JSON.parse(fs.readFileSync(path.join(folder, name), "utf8"));
      const { pid, started, points, links, trees } = record;
      const stat = fs.existsSync(`/proc/${pid}/stat`) ? fs.readFileSync(`/proc/${pid}/stat`, "latin1") : "";
      const fields = stat.split(") ").at(-1)?.split(" ") ?? [];
      // A killed process stays a zombie where nobody waits for it, as in a container without an init.
      const isAlive = fields[19] === started && fields[0] !== "Z" && fields[0] !== "X";
      if (isAlive) for (const point of points) used.add(point.path);
      else {
        jobs.push({ points, links, trees });
        ended.push(path.join(folder, name));
      }
    } catch {
      // Another process is writing or removing it.
    }
  }
  const notes = jobs.flatMap((left) =>
    clean({ fs, path, ...lists }, { ...left, points: left.points.filter((point) => !used.has(point.path)) }),
  );
  // Removed last: a program that starts meanwhile must see that the mount points are not the user's folders.
  for (const record of ended) fs.rmSync(record, { force: true });
  if (notes.length === 0) return;
  const report = path.join(folder, `report-${process.pid}-${Date.now()}.txt`);
  fs.writeFileSync(report, `${[...new Set(notes)].join("\n")}\n`, { mode: 0o600, flag: "wx" });
}
