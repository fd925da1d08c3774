import type { MountPoint, ProtectedLink, Unnameable } from "../leftovers.ts";
import type { Pins, Reading } from "./pinning.ts";
import type { CleanUpTools } from "./tools.ts";

/** Moves, renames and removes entries, and notes each change. */
export function changing({ fs, path }: CleanUpTools, { pinned, stat }: Pins, notes: string[]) {
  const { basename, dirname, join } = path;
  const suffix = Math.random().toString(36).slice(2, 8);
  const moveAside = (target: string, why: string): void => {
    const aside = `${target}.blocked-${suffix}`;
    const moved = pinned(target, (leaf) => {
      fs.renameSync(leaf, `${leaf}.blocked-${suffix}`);
      return true;
    });
    notes.push(moved ? `Moved ${target} to ${aside}: ${why}.` : `Could not move ${target} away: ${why}. Remove it.`);
  };
  /** Gives a checked file its own copy, so that it cannot be changed through another name. */
  const unshare = (target: string, text: string | null | undefined): void => {
    pinned(target, (leaf) => {
      if (typeof text !== "string" || (stat(leaf)?.nlink ?? 1) === 1) return;
      fs.writeFileSync(`${leaf}.own-${suffix}`, text, { flag: "wx", mode: 0o644 });
      fs.renameSync(`${leaf}.own-${suffix}`, leaf);
    });
  };
  const removeLink = (link: string): void => {
    const [target = "", end] = link.split("\0");
    const names = (folder: string): Buffer[] =>
      fs.readdirSync(folder, { encoding: "latin1" }).map((name) => Buffer.from(name, "latin1"));
    const removed = pinned(target, (leaf) => {
      // A name that is not valid text has replacement characters here.
      const paths = names(dirname(leaf))
        .filter((name) => name.toString("utf8") === basename(target))
        .map((name) => Buffer.concat([Buffer.from(`${dirname(leaf)}/`), name]));
      const links = paths.filter((one) => fs.lstatSync(one).isSymbolicLink());
      for (const one of links) fs.unlinkSync(one);
      return links.length > 0;
    });
    if (removed) notes.push(`Removed the link ${target} to ${end}: git would write through it.`);
  };
  /** Renames a folder so that a path can name it. Returns the path. */
  const rename = ({ folder, name }: Unnameable, index: number): string => {
    const target = join(folder, `renamed-${suffix}-${index}`);
    pinned(target, (leaf) => {
      const from = Buffer.concat([Buffer.from(`${dirname(leaf)}/`), Buffer.from(name, "latin1")]);
      fs.renameSync(from, leaf);
      notes.push(`Renamed a folder in ${folder} to ${basename(target)}: its name was not valid UTF-8.`);
    });
    return target;
  };
  return { moveAside, unshare, removeLink, rename };
}

export type Changes = ReturnType<typeof changing>;

/** Removes mount points and compares protected links. */
export function undoing(
  { fs }: CleanUpTools,
  {
    pinned,
    stat,
    textOf,
    pathIn,
    moveAside,
  }: Pick<Pins & Reading & Changes, "pinned" | "stat" | "textOf" | "pathIn" | "moveAside">,
) {
  const identity = (of: { dev: number; ino: number } | undefined): string => (of ? `${of.dev}:${of.ino}` : "");
  const removePoint = ({ path: target, kind }: MountPoint): void => {
    pinned(target, (leaf) => {
      const there = stat(leaf);
      if (kind === "folder") {
        if (there?.isDirectory()) fs.rmdirSync(leaf);
        return;
      }
      if (!there?.isFile()) return;
      const isOurs = there.size === 0 || (kind === "commondir" && pathIn(textOf(target)) === ".");
      if (isOurs) fs.unlinkSync(leaf);
    });
  };
  const checkLink = ({ path: target, target: was, end }: ProtectedLink): void => {
    const unchanged = pinned(target, (leaf) => {
      const there = stat(leaf);
      if (there === undefined) return true;
      const isSame = there.isSymbolicLink() && fs.readlinkSync(leaf) === was;
      return isSame && identity(fs.statSync(leaf, { throwIfNoEntry: false })) === end;
    });
    if (unchanged === false) moveAside(target, "a command changed where this protected name leads");
  };
  return { removePoint, checkLink };
}
