import type { Changes } from "./changing.ts";
import type { Pins, Reading } from "./pinning.ts";
import type { Search } from "./searching.ts";
import type { CleanUpTools } from "./tools.ts";

/** Judges git configurations. */
export function judgingConfigurations() {
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
  return { dangerIn };
}

/** Facts about the workspaces before the command. */
export interface Before {
  isInWorkspace(target: string): boolean;
  /** True for a git folder that existed: the sandbox protects it, so its content is the user's. */
  isKnown(folder: string): boolean;
  isKnownLink(link: string): boolean;
}

/** Checks one git folder. */
export function checkingGitFolders(
  { fs, path }: CleanUpTools,
  before: Before,
  tools: Pins & Reading & Changes & ReturnType<typeof judgingConfigurations>,
) {
  const { basename, isAbsolute, join, resolve, sep } = path;
  const { pinned, stat, textOf, pathIn, moveAside, unshare, dangerIn } = tools;
  /**
   * Returns the folder that a path in a file leads git to. Returns undefined if there is none, or if the way is through
   * a link, which a later command could redirect. Bytes that are not valid text could name another folder than the one
   * checked here.
   */
  const folderBehind = (folder: string, target: string): string | undefined => {
    if (target.includes("\ufffd")) return undefined;
    try {
      // `resolve` removes ".." by its text, the kernel after it has followed links.
      const real = fs.realpathSync.native(isAbsolute(target) ? target : `${folder}${sep}${target}`);
      return real === resolve(folder, target) ? real : undefined;
    } catch {
      return undefined;
    }
  };
  const checkConfiguration = (file: string): void => {
    const text = textOf(file);
    // Git reads no folder here; an empty one is a mount point of another command.
    const isFolder = text === null && pinned(file, stat)?.isDirectory() === true;
    const key = text === null && !isFolder ? "an unreadable configuration" : dangerIn(text ?? "");
    if (key !== undefined) moveAside(file, `git would run programs by it (${key})`);
    else unshare(file, text);
  };
  const liveHooks = (leaf: string): string[] => {
    const there = stat(leaf);
    if (there === undefined) return [];
    if (!there.isDirectory()) return ["a link"];
    return fs.readdirSync(leaf).filter((name) => !name.endsWith(".sample"));
  };
  const checkGitFolder = (folder: string): void => {
    if (before.isKnown(folder)) return;
    for (const name of ["config", "config.worktree"]) checkConfiguration(join(folder, name));
    const redirection = textOf(join(folder, "commondir"));
    const common = redirection ? folderBehind(folder, pathIn(redirection) ?? "") : undefined;
    const isWorktree =
      folder === join(common ?? "", "worktrees", basename(folder)) && basename(common ?? "") === ".git";
    if (common !== undefined && isWorktree && before.isInWorkspace(common)) checkGitFolder(common);
    else if (redirection !== undefined && pathIn(redirection) !== "." && !(common && before.isKnown(common))) {
      moveAside(join(folder, "commondir"), "it gives git a foreign configuration");
    }
    unshare(join(folder, "commondir"), redirection);
    const hooks = pinned(join(folder, "hooks"), liveHooks, ["hooks that cannot be listed"]);
    if (hooks !== undefined && hooks.length > 0) moveAside(join(folder, "hooks"), `git would run ${hooks[0]}`);
  };
  return { folderBehind, checkGitFolder };
}

export type FolderChecks = ReturnType<typeof checkingGitFolders>;

/** Checks whatever git may take for a repository: a folder, a file or a link. */
export function checkingGit(
  { path }: CleanUpTools,
  before: Before,
  tools: Pins & Reading & Changes & FolderChecks & { search: Search },
) {
  const { dirname } = path;
  const { pinned, stat, textOf, pathIn, moveAside, unshare, removeLink, folderBehind, checkGitFolder, search } = tools;
  /**
   * Also checks everything in it that git could take for a git folder: those of submodules and worktrees, at any depth.
   */
  const checkGitTree = (folder: string): void => {
    if (before.isKnown(folder)) return;
    const { gitFolders, gitLinks } = search(folder, "git");
    // Inner ones first: entries that were moved aside can no longer be found.
    for (const one of gitFolders.reverse()) if (one !== folder) checkGitFolder(one);
    checkGitFolder(folder);
    for (const link of gitLinks) if (!before.isKnownLink(link)) removeLink(link);
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
    if (folder !== undefined && before.isInWorkspace(folder)) {
      unshare(target, `${text}\n`);
      checkGitTree(folder);
    }
    // Commands can write some folders outside every workspace, and those are not searched.
    else moveAside(target, "it redirects git through a link, to a folder outside the workspace, or to none");
  };
  return { checkGit };
}
