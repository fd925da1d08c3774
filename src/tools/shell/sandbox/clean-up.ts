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
  const { basename, dirname, isAbsolute, join, resolve, sep } = node.path;
  const notes: string[] = [];
  const suffix = Math.random().toString(36).slice(2, 8);
  const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const FOLDER = pathFlag | constants.O_NOFOLLOW | constants.O_DIRECTORY;

  const roots = left.trees.map(({ root }) => root);
  const isInWorkspace = (target: string): boolean =>
    roots.some((root) => target === root || target.startsWith(root + sep));
  const codeOf = (error: unknown): unknown => (error instanceof Error && "code" in error ? error.code : undefined);
  const held = new Map<string, number>();
  const MAX_HELD = 200;
  let nested = 0;
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
  const identity = (of: { dev: number; ino: number } | undefined): string => (of ? `${of.dev}:${of.ino}` : "");
  const moveAside = (target: string, why: string): void => {
    const aside = `${target}.blocked-${suffix}`;
    const moved = pinned(target, (leaf) => {
      fs.renameSync(leaf, `${leaf}.blocked-${suffix}`);
      return true;
    });
    notes.push(moved ? `Moved ${target} to ${aside}: ${why}.` : `Could not move ${target} away: ${why}. Remove it.`);
  };

  /** Returns the text of a small regular file; undefined when there is none, null when it is anything else. */
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
  /** Returns the path as git reads it from a file: trailing line breaks are ignored, spaces are not. */
  const pathIn = (text: string | null | undefined): string | undefined => text?.replace(/[\r\n]+$/, "");

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
      const links = paths.filter((path) => fs.lstatSync(path).isSymbolicLink());
      for (const path of links) fs.unlinkSync(path);
      return links.length > 0;
    });
    if (removed) notes.push(`Removed the link ${target} to ${end}: git would write through it.`);
  };

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

  /** Keys that make git run no program. Every other key in a new configuration counts as dangerous. */
  const HARMLESS_KEYS = [
    /^core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol)$/,
    /^remote\..*\.(url|fetch|pushurl|tagopt|prune|promisor|partialclonefilter)$/,
    /^branch\..*\.(remote|merge|rebase|description)$/,
    /^(user\.(name|email)|init\.defaultbranch|pull\.rebase|extensions\.(objectformat|partialclone|refstorage))$/,
    /^submodule\.(active|.*\.(active|url))$/,
    /^(lfs\.repositoryformatversion|color\..*|gc\.auto|advice\..*)$/,
  ];
  /** Returns the first key of a git configuration that is not known to be harmless, or undefined. */
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

  /** Git folders that existed before. The sandbox protects them, so their content is the user's. */
  const known = new Set(left.trees.flatMap(({ root, gitFolders }) => [join(root, ".git"), ...gitFolders]));
  const knownLinks = new Set(left.trees.flatMap(({ gitLinks }) => gitLinks));
  /** Also true for a protected link that an earlier call moved aside: it is the user's. */
  const isKnownLink = (link: string): boolean => {
    const [, path, target] = /^(.*)\.blocked-\w+\0(.*)$/s.exec(link) ?? [];
    return knownLinks.has(link) || left.links.some((one) => one.path === path && one.target === target);
  };
  /**
   * Returns the folder that a path in a file leads git to. Returns undefined if there is none, or if the way is through
   * a link, which a later command could redirect. Bytes that are not valid text could name another folder than the one
   * checked here.
   */
  const folderBehind = (folder: string, path: string): string | undefined => {
    if (path.includes("\ufffd")) return undefined;
    try {
      // `resolve` removes ".." by its text, the kernel after it has followed links.
      const real = fs.realpathSync.native(isAbsolute(path) ? path : `${folder}${sep}${path}`);
      return real === resolve(folder, path) ? real : undefined;
    } catch {
      return undefined;
    }
  };

  const checkGitFolder = (folder: string): void => {
    if (known.has(folder)) return;
    for (const name of ["config", "config.worktree"]) {
      const text = textOf(join(folder, name));
      // Git reads no folder here; an empty one is a mount point of another command.
      const isFolder = text === null && pinned(join(folder, name), stat)?.isDirectory() === true;
      const key = text === null && !isFolder ? "an unreadable configuration" : dangerIn(text ?? "");
      if (key !== undefined) moveAside(join(folder, name), `git would run programs by it (${key})`);
      else unshare(join(folder, name), text);
    }
    const redirection = textOf(join(folder, "commondir"));
    const common = redirection ? folderBehind(folder, pathIn(redirection) ?? "") : undefined;
    const isWorktree =
      folder === join(common ?? "", "worktrees", basename(folder)) && basename(common ?? "") === ".git";
    if (common !== undefined && isWorktree && isInWorkspace(common)) checkGitFolder(common);
    else if (redirection !== undefined && pathIn(redirection) !== "." && !(common && known.has(common))) {
      moveAside(join(folder, "commondir"), "it gives git a foreign configuration");
    }
    unshare(join(folder, "commondir"), redirection);
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
  };
  /**
   * Also checks everything in it that git could take for a git folder: those of submodules and worktrees, at any depth.
   */
  const checkGitTree = (folder: string): void => {
    if (known.has(folder)) return;
    const { gitFolders, gitLinks } = search(folder, "git");
    // Inner ones first: entries that were moved aside can no longer be found.
    for (const one of gitFolders.reverse()) if (one !== folder) checkGitFolder(one);
    checkGitFolder(folder);
    for (const link of gitLinks) if (!isKnownLink(link)) removeLink(link);
  };
  const checkGit = (target: string): void => {
    const there = pinned(target, stat);
    if (there?.isDirectory()) checkGitTree(target);
    if (there === undefined || there.isDirectory()) return;
    const text = (there.isFile() ? pathIn(textOf(target)) : undefined) ?? "";
    const link = text.slice("gitdir: ".length);
    if (!text.startsWith("gitdir: ") || link === "") {
      moveAside(target, "it redirects git");
      return;
    }
    const folder = folderBehind(dirname(target), link);
    if (folder !== undefined && isInWorkspace(folder)) {
      unshare(target, `${text}\n`);
      checkGitTree(folder);
    }
    // Commands can write some folders outside every workspace, and those are not searched.
    else moveAside(target, "it redirects git through a link, to a folder outside the workspace, or to none");
  };

  /** Returns the entries of a folder. Makes it listable for its owner, unless it was not listable before. */
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
  /** Renames a folder so that a path can name it. Returns the path. */
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
  const isBare = (entries: readonly nodeFs.Dirent[]): boolean => {
    const has = new Set(entries.map((entry) => entry.name));
    return has.has("HEAD") && (has.has("commondir") || (has.has("objects") && has.has("refs")));
  };
  /** Returns everything dangerous below a folder. The areas and their rules are those of `sandbox-scan.ts`. */
  const search = (top: string, start: "tree" | "protected" | "git" | "bare", before?: KnownTree) => {
    const found = { gitFolders: [] as string[], gitLinks: [] as string[], protectedNames: [] as string[] };
    const waiting = [{ folder: top, area: start }];
    const isRoot = (folder: string): boolean => folder === before?.root;
    const look = (folder: string, area: typeof start, entry: nodeFs.Dirent, isRepository: boolean): void => {
      const { name } = entry;
      const path = join(folder, name);
      const isLink = entry.isSymbolicLink();
      const isName = nestedNames.includes(name) || (isLink && partsOf(name).length > 0);
      const isPart = !isRoot(dirname(folder)) && partsOf(basename(folder)).includes(name);
      const isPlain = area === "tree" || area === "bare";
      if (area !== "git" && !isRoot(folder) && name === ".git") found.gitFolders.push(path);
      else if (isPlain && ((!isRoot(folder) && isName) || isPart)) found.protectedNames.push(path);
      if (isLink && (area === "git" || area === "bare" || isRepository)) {
        const link = `${path}\0${pinned(path, (leaf) => fs.readlinkSync(leaf)) ?? ""}`;
        if (!/\/HEAD\0refs\/heads\/(?!.*\.\.)/.test(link)) found.gitLinks.push(link);
      }
      const isObject = area === "git" && basename(folder) === "objects" && name !== "info" && name !== "pack";
      if (!entry.isDirectory() || isObject) return;
      const below = isPlain && isRepository ? "bare" : area;
      const inner = area !== "git" && name === ".git" ? "git" : isPlain && isName ? "protected" : below;
      waiting.push({ folder: path, area: inner });
    };
    for (let index = 0; index < waiting.length; index++) {
      const { folder, area } = waiting[index] ?? { folder: top, area: start };
      waiting[index] = { folder: "", area };
      if (before?.unreadable.includes(folder)) continue;
      const entries = entriesIn(folder);
      const isRepository = isBare(entries);
      if (isRepository && (area !== "git" || start === "git")) found.gitFolders.push(folder);
      for (const entry of entries) look(folder, area, entry, isRepository);
      if (!entries.some((entry) => entry.name.includes("\ufffd"))) continue;
      for (const name of fs.readdirSync(folder, { encoding: "latin1" })) {
        const bytes = Buffer.from(name, "latin1");
        if (Buffer.from(bytes.toString("utf8")).equals(bytes)) continue;
        const at = Buffer.concat([Buffer.from(`${folder}/`), bytes]);
        if (fs.lstatSync(at, { throwIfNoEntry: false })?.isDirectory())
          waiting.push({ folder: rename({ folder, name }, index), area });
      }
    }
    return found;
  };
  /** Returns the time of the newest change in a git folder, or of a `.git` file. */
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
    const found: ReturnType<typeof search>[] = [];
    if (now === undefined) {
      found.push(search(before.root, "tree", before));
      for (const folder of before.linkedGit) found.push({ ...search(folder, "git"), gitFolders: [] });
    } else {
      const { gitFolders, gitLinks, protectedNames } = now;
      found.push({ gitFolders: [...gitFolders], gitLinks: [...gitLinks], protectedNames: [...protectedNames] });
      const fresh = now.unreadable.filter((folder) => !before.unreadable.includes(folder));
      for (const folder of [...fresh, ...now.unnameable.map(rename)]) {
        const isIn = (git: string): boolean => `${folder}${sep}`.startsWith(git + sep);
        const area = gitFolders.some(isIn) ? "bare" : "tree";
        const isInGit = folder.slice(before.root.length).split(sep).includes(".git") || before.linkedGit.some(isIn);
        found.push(search(folder, isInGit ? "git" : area, before));
      }
    }
    const isPackage = (target: string): boolean =>
      target.slice(before.root.length).includes(`${sep}node_modules${sep}`);
    // Inner ones first: entries that were moved aside can no longer be found.
    for (const target of found.flatMap(({ gitFolders }) => gitFolders).reverse()) {
      if (before.gitFolders.includes(target)) continue;
      // The search above omits packages that no index names. Without it, old ones are not the command's work.
      if (now !== undefined || !isPackage(target) || changed(target) >= before.since) checkGit(target);
      letGo();
    }
    for (const link of found.flatMap(({ gitLinks }) => gitLinks)) {
      if (!isKnownLink(link) && (now !== undefined || !isPackage(link))) removeLink(link);
      letGo();
    }
    for (const target of found.flatMap(({ protectedNames }) => protectedNames).reverse()) {
      if (before.protectedNames.includes(target) || isPackage(target)) continue;
      moveAside(target, "commands may not create this name");
      letGo();
    }
  };

  try {
    // Children before their parents.
    for (const point of [...left.points].reverse()) removePoint(point);
    for (const tree of left.trees) checkTree(tree);
    // Last: a folder in place of a link is moved aside with its content.
    for (const link of left.links) checkLink(link);
  } finally {
    letGo();
  }
  return notes;
}
