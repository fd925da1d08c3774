/** One function that other processes run from its source text: it uses nothing but its parameters. */
import type * as nodeFs from "node:fs";
import type * as nodePath from "node:path";
import type { KnownTree, LeftBehind, MountPoint, ProtectedLink, Unnameable } from "./left-behind.ts";

/** Modules and lists that `cleanUp` uses; its source text must not refer to an import. */
export interface CleanUpTools {
  readonly fs: typeof nodeFs;
  readonly path: typeof nodePath;
  readonly names: readonly string[];
  readonly parts: Readonly<Record<string, readonly string[]>>;
  readonly pathFlag: number;
}

/** Returns one sentence for each change it made. Never throws. */
export function cleanUp(node: CleanUpTools, left: LeftBehind): string[] {
  const { fs, names: nestedNames, parts: nestedParts, pathFlag } = node;
  const { constants } = fs;
  const { basename, dirname, join, resolve, sep } = node.path;
  const notes: string[] = [];
  const suffix = Math.random().toString(36).slice(2, 8);
  const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const FOLDER = pathFlag | constants.O_NOFOLLOW | constants.O_DIRECTORY;

  const roots = left.trees.map(({ root }) => root);
  const isInWorkspace = (target: string): boolean =>
    roots.some((root) => target === root || target.startsWith(root + sep));
  const codeOf = (error: unknown): unknown => (error instanceof Error && "code" in error ? error.code : undefined);
  const held = new Map<string, number>();
  /** Opens a folder component by component, without following links. Folders stay open until `letGo`. */
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
  /** A command can take away the user's rights to a folder; `work` is tried again with them. */
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
   * and `failed` when that cannot be told.
   */
  const pinned = <T>(target: string, work: (leaf: string) => T, failed?: T): T | undefined => {
    const folder = dirname(target);
    try {
      return unlocking(folder, () => work(join(open(folder), basename(target))));
    } catch (error) {
      return codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR" ? undefined : failed;
    }
  };
  const stat = (leaf: string) => fs.lstatSync(leaf, { throwIfNoEntry: false });
  const identity = (of: { dev: number; ino: number } | undefined): string => (of ? `${of.dev}:${of.ino}` : "");
  const moveAside = (target: string, why: string): void => {
    const aside = `${target}.blocked-${suffix}`;
    const moved = pinned(target, (leaf) => {
      fs.renameSync(leaf, `${leaf}.blocked-${suffix}`);
      return true;
    });
    notes.push(moved ? `Moved ${target} to ${aside}: ${why}.` : `Could not move ${target} away: ${why}. Remove it.`);
  };

  /** The text of a small regular file; undefined when there is none, null when it is anything else. */
  const textOf = (target: string): string | null | undefined =>
    pinned<string | null | undefined>(
      target,
      (leaf) => {
        const before = stat(leaf);
        if (before === undefined) return undefined;
        if (!before.isFile() || before.size > 65_536) return null;
        const fd = fs.openSync(leaf, READ);
        try {
          return fs.readFileSync(fd, "utf8");
        } finally {
          fs.closeSync(fd);
        }
      },
      null,
    );
  /** As git reads a file with a path: only line ends at the end do not count, spaces do. */
  const pathIn = (text: string | null | undefined): string | undefined => text?.replace(/[\r\n]+$/, "");

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

  /** Keys that no program runs by. Everything else in a new configuration counts as dangerous. */
  const HARMLESS_KEYS = [
    /^core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol)$/,
    /^remote\..*\.(url|fetch|pushurl|tagopt|prune|promisor|partialclonefilter)$/,
    /^branch\..*\.(remote|merge|rebase|description)$/,
    /^(user\.(name|email)|init\.defaultbranch|pull\.rebase|extensions\.(objectformat|partialclone|refstorage))$/,
    /^submodule\.(active|.*\.(active|url))$/,
    /^(lfs\.repositoryformatversion|color\..*|gc\.auto|advice\..*)$/,
  ];
  /** The first key of a git configuration that is not known to be harmless, or undefined. */
  const dangerIn = (text: string): string | undefined => {
    let section = "";
    for (const line of text.split(/\r?\n/)) {
      let rest = line.trim();
      const header = /^\[\s*([A-Za-z0-9.-]+)\s*(?:"((?:[^"\\]|\\.)*)")?\s*\]/.exec(rest);
      if (header) {
        section = [header[1]?.toLowerCase(), header[2]].filter((part) => part !== undefined).join(".");
        rest = rest.slice(header[0].length).trim();
      }
      if (rest === "" || rest.startsWith("#") || rest.startsWith(";")) continue;
      const key = /^[A-Za-z][A-Za-z0-9-]*/.exec(rest)?.[0];
      if (key === undefined || rest.endsWith("\\")) return rest.slice(0, 40);
      const name = `${section}.${key.toLowerCase()}`;
      if (!HARMLESS_KEYS.some((harmless) => harmless.test(name))) return name;
    }
    return undefined;
  };

  /** Git folders that were there before. The sandbox protects them, so that what they contain is the user's. */
  const known = new Set(left.trees.flatMap(({ root, gitFolders }) => [join(root, ".git"), ...gitFolders]));
  const real = (path: string): string | undefined => {
    try {
      return fs.realpathSync(path);
    } catch {
      return undefined;
    }
  };

  const checkGitFolder = (folder: string, depth: number): void => {
    if (known.has(folder)) return;
    for (const name of ["config", "config.worktree"]) {
      const text = textOf(join(folder, name));
      // Git reads no folder; an empty one is a mount point of another command.
      const isFolder = text === null && pinned(join(folder, name), stat)?.isDirectory() === true;
      const key = text === null && !isFolder ? "an unreadable configuration" : dangerIn(text ?? "");
      if (key !== undefined) moveAside(join(folder, name), `git would run programs by it (${key})`);
    }
    const redirection = textOf(join(folder, "commondir"));
    const common = redirection ? real(resolve(folder, pathIn(redirection) ?? "")) : undefined;
    const isWorktree =
      folder === join(common ?? "", "worktrees", basename(folder)) && basename(common ?? "") === ".git";
    if (common !== undefined && isWorktree && isInWorkspace(common)) checkGitFolder(common, 0);
    else if (redirection !== undefined && pathIn(redirection) !== "." && !(common && known.has(common))) {
      moveAside(join(folder, "commondir"), "it gives git a foreign configuration");
    }
    const hooks = pinned(
      join(folder, "hooks"),
      (leaf) => {
        const there = stat(leaf);
        if (there === undefined) return [];
        if (!there.isDirectory()) return ["a link"];
        return fs.readdirSync(leaf).filter((name) => !name.endsWith(".sample"));
      },
      ["hooks that cannot be listed"],
    );
    if (hooks !== undefined && hooks.length > 0) moveAside(join(folder, "hooks"), `git would run ${hooks[0]}`);
    const modules = depth > 0 ? pinned(join(folder, "modules"), (leaf) => fs.readdirSync(leaf)) : undefined;
    for (const name of modules ?? []) checkGitFolder(join(folder, "modules", name), depth - 1);
  };
  const checkGit = (target: string): void => {
    const there = pinned(target, stat);
    if (there === undefined) return;
    if (there.isDirectory()) {
      checkGitFolder(target, 4);
      return;
    }
    const text = (there.isFile() ? pathIn(textOf(target)) : undefined) ?? "";
    const link = text.slice("gitdir: ".length);
    // Bytes that are no text could name another folder than the one that is looked at here.
    if (!text.startsWith("gitdir: ") || link === "" || text.includes("\ufffd")) {
      moveAside(target, "it redirects git");
      return;
    }
    const folder = real(resolve(dirname(target), link));
    if (folder !== undefined && isInWorkspace(folder)) checkGitFolder(folder, 4);
    // Commands can write some folders that belong to no workspace, and nobody looks there.
    else moveAside(target, "it redirects git to a folder outside the workspace, or to none");
  };

  /** The entries of a folder. One that its owner may not list is made listable, unless it was like that before. */
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
  /** Gives a folder a name that paths can name. Returns its path. */
  const rename = ({ folder, name }: Unnameable, index: number): string => {
    const path = join(folder, `renamed-${suffix}-${index}`);
    pinned(path, (leaf) => {
      const from = Buffer.concat([Buffer.from(`${dirname(leaf)}/`), Buffer.from(name, "latin1")]);
      fs.renameSync(from, leaf);
      notes.push(`Renamed a folder in ${folder} to ${basename(path)}: its name was not valid UTF-8.`);
    });
    return path;
  };
  const partsOf = (name: string): readonly string[] =>
    Object.hasOwn(nestedParts, name) ? (nestedParts[name] ?? []) : [];
  /** Everything dangerous below a folder. */
  const search = (top: string, known: KnownTree): Pick<KnownTree, "gitFolders" | "protectedNames"> => {
    const gitFolders: string[] = [];
    const protectedNames: string[] = [];
    const waiting = [top];
    const isRoot = (folder: string): boolean => folder === known.root;
    for (let index = 0; index < waiting.length && index < 2_000_000; index++) {
      const folder = waiting[index] ?? "";
      if (known.unreadable.includes(folder)) continue;
      const entries = entriesIn(folder);
      const has = new Set(entries.map((entry) => entry.name));
      if (has.has("HEAD") && (has.has("commondir") || (has.has("objects") && has.has("refs")))) gitFolders.push(folder);
      const parts = isRoot(dirname(folder)) ? [] : partsOf(basename(folder));
      for (const entry of entries) {
        const path = join(folder, entry.name);
        const isLinkToParts = entry.isSymbolicLink() && partsOf(entry.name).length > 0;
        const isName = nestedNames.includes(entry.name) || isLinkToParts;
        if (!isRoot(folder) && entry.name === ".git") gitFolders.push(path);
        else if ((!isRoot(folder) && isName) || parts.includes(entry.name)) protectedNames.push(path);
        else if (entry.isDirectory() && entry.name !== ".git" && !isName) waiting.push(path);
      }
      if (!entries.some((entry) => entry.name.includes("\ufffd"))) continue;
      for (const name of fs.readdirSync(folder, { encoding: "latin1" })) {
        const bytes = Buffer.from(name, "latin1");
        if (Buffer.from(bytes.toString("utf8")).equals(bytes)) continue;
        const at = Buffer.concat([Buffer.from(`${folder}/`), bytes]);
        if (fs.lstatSync(at, { throwIfNoEntry: false })?.isDirectory()) waiting.push(rename({ folder, name }, index));
      }
    }
    return { gitFolders, protectedNames };
  };
  /** The newest change in a git folder, or of a `.git` file. */
  const changed = (target: string): number => {
    const names = ["", "config", "config.worktree", "commondir", "hooks", "modules"];
    const hooks = pinned(join(target, "hooks"), (leaf) => fs.readdirSync(leaf)) ?? [];
    const times = [...names, ...hooks.map((name) => `hooks/${name}`)].map(
      (name) => pinned(join(target, name), stat)?.ctimeMs ?? 0,
    );
    return Math.max(...times);
  };
  const checkTree = (before: KnownTree): void => {
    const now = left.now?.find(({ root }) => root === before.root);
    const found: ReturnType<typeof search>[] = [now ?? search(before.root, before)];
    const fresh = (now?.unreadable ?? []).filter((folder) => !before.unreadable.includes(folder));
    for (const folder of [...fresh, ...(now?.unnameable ?? []).map(rename)]) found.push(search(folder, before));
    const isPackage = (target: string): boolean =>
      target.slice(before.root.length).includes(`${sep}node_modules${sep}`);
    for (const target of found.flatMap(({ gitFolders }) => gitFolders)) {
      if (before.gitFolders.includes(target)) continue;
      // The search above leaves out packages that no index names. Without it, old ones are not the command's work.
      if (now !== undefined || !isPackage(target) || changed(target) >= before.since) checkGit(target);
      letGo();
    }
    for (const target of found.flatMap(({ protectedNames }) => protectedNames)) {
      if (before.protectedNames.includes(target) || isPackage(target)) continue;
      moveAside(target, "commands may not create this name");
      letGo();
    }
  };

  try {
    // Children before their parents.
    for (const point of [...left.points].reverse()) removePoint(point);
    for (const link of left.links) checkLink(link);
    for (const tree of left.trees) checkTree(tree);
  } finally {
    letGo();
  }
  return notes;
}
