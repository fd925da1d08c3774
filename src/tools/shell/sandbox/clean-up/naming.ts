import type { Reading } from "./pinning.ts";
import type { CleanUpTools } from "./tools.ts";

/** Reads the index of a repository; simpler than `git-index.ts`, and uncertain more often. */
export function indexing() {
  const [HEADER, STAT, MODE] = [12, 40, 24];
  const [TYPE_BITS, GITLINK, FOLDER] = [0xf000, 0xe000, 0x4000];
  const [EXTENDED, LENGTH_BITS] = [0x4000, 0xfff];
  /** Other extensions may name further repositories, or give entries other names. */
  const EXTENSIONS = ["TREE", "REUC", "UNTR", "FSMN"];
  const UNCERTAIN = "";
  /** Returns undefined for object names of another length. */
  const namesWith = (bytes: Buffer, hashBytes: number): string[] | undefined => {
    const end = bytes.length - hashBytes;
    const names: string[] = [];
    let at = HEADER;
    for (let left = bytes.readUInt32BE(8); left > 0; left--) {
      const flagsAt = at + STAT + hashBytes;
      if (flagsAt + 4 > end) return undefined;
      const flags = bytes.readUInt16BE(flagsAt);
      const start = flagsAt + ((flags & EXTENDED) !== 0 ? 4 : 2);
      const zero = bytes.indexOf(0, start);
      if (zero < 0 || zero >= end) return undefined;
      const type = bytes.readUInt32BE(at + MODE) & TYPE_BITS;
      const isLong = (flags & LENGTH_BITS) !== Math.min(zero - start, LENGTH_BITS);
      // In version 2 entries have no further flags.
      const isOdd = isLong || ((flags & EXTENDED) !== 0 && bytes.readUInt32BE(4) === 2);
      if (type === FOLDER || isOdd) names.push(UNCERTAIN);
      if (type === GITLINK) names.push(bytes.toString("utf8", start, zero));
      at += Math.ceil((zero - at + 1) / 8) * 8;
    }
    while (at + 8 <= end) {
      if (!EXTENSIONS.includes(bytes.toString("latin1", at, at + 4))) names.push(UNCERTAIN);
      at += 8 + bytes.readUInt32BE(at + 4);
    }
    return at === end ? names : undefined;
  };
  const isPlain = (name: string): boolean => name.split("/").every((part) => ![UNCERTAIN, ".", ".."].includes(part));
  /** Returns the repositories that an index names, or undefined when it may name any. */
  const repositoriesIn = (bytes: Buffer): string[] | undefined => {
    if (bytes.length < HEADER + 20) return undefined;
    const version = bytes.toString("latin1", 0, 4) === "DIRC" ? bytes.readUInt32BE(4) : 0;
    // Version 4 shortens names.
    if (version !== 2 && version !== 3) return undefined;
    const readings = [20, 32].map((hashBytes) => namesWith(bytes, hashBytes)).filter((names) => names !== undefined);
    const names = readings.flat();
    return readings.length > 0 && names.every(isPlain) ? names : undefined;
  };
  return { repositoriesIn };
}

/** Decides which repositories in `node_modules` git would enter, because an index names them. */
export function naming(
  { fs, path }: CleanUpTools,
  { textOf, pathIn, repositoriesIn }: Reading & ReturnType<typeof indexing>,
) {
  const { basename, dirname, join, resolve } = path;
  const MAX_BYTES = 64 * 1024 * 1024;
  const isMissing = (error: unknown): boolean =>
    error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
  /** Returns undefined when they may be any. */
  const namedIn = (git: string): string[] | undefined => {
    const redirection = pathIn(textOf(git)) ?? "";
    const folder = redirection.startsWith("gitdir: ") ? resolve(dirname(git), redirection.slice(8)) : git;
    try {
      const file = join(folder, "index");
      const there = fs.lstatSync(file, { throwIfNoEntry: false });
      if (there === undefined) return [];
      return there.isFile() && there.size <= MAX_BYTES ? repositoriesIn(fs.readFileSync(file)) : undefined;
    } catch (error) {
      return isMissing(error) ? [] : undefined;
    }
  };
  /** Returns whether git may find the repository under another path: through a link, or in an unknown worktree. */
  const isElsewhere = (git: string, name: string): boolean => {
    if (basename(git) !== ".git" || name.includes("\ufffd")) return true;
    const target = join(dirname(git), name);
    try {
      return fs.realpathSync.native(target) !== target;
    } catch (error) {
      return !isMissing(error);
    }
  };
  /** Returns a test for paths in packages. */
  const namedBy = (git: readonly string[]): ((target: string) => boolean) => {
    const named = new Set<string>();
    for (const one of git) {
      const names = namedIn(one);
      if (names?.some((name) => isElsewhere(one, name)) ?? true) return () => true;
      for (const name of names ?? []) named.add(name);
    }
    return (target) => [...named].some((name) => `${target.split("\0", 1)[0]}/`.includes(`/${name}/`));
  };
  return { namedBy };
}
