/** How the host sees a workspace: independent of the code of the sandbox, and by bytes, so that no name is missed. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import * as fs from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { PROTECTED_FILES, PROTECTED_FOLDERS, PROTECTED_PARTS } from "../../src/lib/protected-names.ts";

/** Paths are latin-1 texts of their bytes. */
export const raw = (path: string): Buffer => Buffer.from(path, "latin1");
export const latin = (path: string): string => Buffer.from(path, "utf8").toString("latin1");

const NAMES = new Set([...PROTECTED_FOLDERS, ...PROTECTED_FILES]);
const INTERNALS = ["hooks", "config", "config.worktree", "info/attributes", "commondir"];

/** Not for names that every object has, such as "constructor". */
const partsOf = (name: string): readonly string[] => new Map(Object.entries(PROTECTED_PARTS)).get(name) ?? [];

export function statOf(path: string): fs.Stats | undefined {
  try {
    return fs.lstatSync(raw(path));
  } catch {
    return undefined;
  }
}

/** Names in a folder, also in one that its owner may not list. */
export function namesIn(folder: string): string[] {
  try {
    return fs.readdirSync(raw(folder), { encoding: "latin1" }).sort();
  } catch {
    const mode = statOf(folder)?.mode;
    if (mode === undefined || !statOf(folder)?.isDirectory()) return [];
    try {
      fs.chmodSync(raw(folder), 0o700);
      return fs.readdirSync(raw(folder), { encoding: "latin1" }).sort();
    } catch {
      return [];
    } finally {
      fs.chmodSync(raw(folder), mode & 0o7777);
    }
  }
}

/** One line per entry below a path, with type, mode and content. Links are not followed. */
export function contents(path: string, skip: ReadonlySet<string> = new Set()): string[] {
  const lines: string[] = [];
  const add = (at: string): void => {
    if (skip.has(at)) return;
    const stat = statOf(at);
    if (stat === undefined) return;
    const mode = (stat.mode & 0o7777).toString(8);
    if (stat.isSymbolicLink()) lines.push(`${at} link ${fs.readlinkSync(raw(at), { encoding: "latin1" })}`);
    else if (stat.isFile()) lines.push(`${at} file ${mode} ${stat.size} ${digest(at)}`);
    else lines.push(`${at} ${stat.isDirectory() ? "folder" : "other"} ${mode}`);
    if (stat.isDirectory()) for (const name of namesIn(at)) add(`${at}/${name}`);
  };
  add(path);
  return lines;
}

function digest(path: string): string {
  try {
    return createHash("sha1")
      .update(fs.readFileSync(raw(path)))
      .digest("base64");
  } catch {
    return "unreadable";
  }
}

export interface ProtectedView {
  /** What stands under each protected name, as editors, shells and git would read it. */
  readonly names: ReadonlyMap<string, string>;
  /** Git folders, `.git` files and links. */
  readonly git: ReadonlySet<string>;
  /** Folders in which someone may run git. */
  readonly worktrees: readonly string[];
}

/** Everything in a workspace that runs code later. Packages are left out, as documented. */
export function protectedView(root: string, skip: ReadonlySet<string>): ProtectedView {
  const names = new Map<string, string>();
  const git = new Set<string>();
  const worktrees = [root];
  const look = (folder: string): void => {
    const entries = namesIn(folder);
    if (entries.includes("HEAD")) {
      if (folder !== root) worktrees.push(folder);
      if (entries.includes("objects") && entries.includes("refs")) internals(folder, { names, git, skip });
    }
    const parts = partsOf(basename(folder));
    for (const name of entries) {
      const path = `${folder}/${name}`;
      if (skip.has(path)) continue;
      if (name === ".git") {
        if (folder !== root) worktrees.push(folder);
        gitEntry(path, root, { names, git, skip });
        continue;
      }
      const isName = NAMES.has(name) && (name !== ".gitmodules" || folder === root);
      const isLinkToParts = partsOf(name).length > 0 && statOf(path)?.isSymbolicLink();
      if (isName || isLinkToParts || parts.includes(name)) names.set(path, effective(path, root, skip));
      else if (name !== "node_modules" && statOf(path)?.isDirectory()) look(path);
    }
  };
  look(root);
  return { names, git, worktrees };
}

type Found = { names: Map<string, string>; git: Set<string>; skip: ReadonlySet<string> };

function gitEntry(path: string, root: string, found: Found): void {
  const stat = statOf(path);
  if (stat?.isDirectory()) {
    internals(path, found);
    return;
  }
  found.git.add(path);
  found.names.set(path, effective(path, root, found.skip));
  if (!stat?.isFile()) return;
  const [, target] = /^gitdir: (.+)$/m.exec(fs.readFileSync(raw(path), "latin1")) ?? [];
  if (target === undefined) return;
  const folder = realOf(resolve(dirname(path), target));
  if (folder?.startsWith(`${root}/`) && statOf(folder)?.isDirectory()) internals(folder, found);
}

function internals(git: string, found: Found, depth = 4): void {
  found.git.add(git);
  for (const name of INTERNALS) {
    const path = `${git}/${name}`;
    if (statOf(path) !== undefined) found.names.set(path, effective(path, git, found.skip));
  }
  const hasModules = depth > 0 && statOf(`${git}/modules`)?.isDirectory();
  for (const name of hasModules ? namesIn(`${git}/modules`) : []) internals(`${git}/modules/${name}`, found, depth - 1);
}

/** A name with all that is read through it. A link counts with its text and with what it leads to. */
function effective(path: string, root: string, skip: ReadonlySet<string> = new Set()): string {
  if (!statOf(path)?.isSymbolicLink()) return contents(path).join("\n");
  const text = fs.readlinkSync(raw(path), { encoding: "latin1" });
  const end = realOf(path);
  const isInside = end?.startsWith(`${root}/`);
  return `link ${text} to ${end ?? "nothing"}\n${isInside && end ? contents(end, skip).join("\n") : ""}`;
}

function realOf(path: string): string | undefined {
  try {
    return fs.realpathSync(raw(path), { encoding: "latin1" });
  } catch {
    return undefined;
  }
}

/** One sentence for each protected name that was changed, created or removed. */
export function differences(before: ProtectedView, after: ProtectedView): string[] {
  const problems: string[] = [];
  for (const [path, was] of before.names) {
    const now = after.names.get(path);
    if (now === was || (now === undefined && was.startsWith("link "))) continue;
    const [lines, newLines] = [was.split("\n"), (now ?? "missing").split("\n")];
    // A link in it may have been moved aside.
    const isMoved = (line: string): boolean =>
      newLines.some((one) => one.startsWith(`${line.split(" link ")[0]}.blocked-`));
    const gone = lines.filter((line) => !newLines.includes(line) && !isMoved(line)).map((line) => `- ${show(line)}`);
    const isAside = (line: string): boolean => /\.blocked-\w+ link /.test(line);
    const added = newLines.filter((line) => !lines.includes(line) && !isAside(line)).map((line) => `+ ${show(line)}`);
    if (gone.length + added.length === 0) continue;
    problems.push([`${show(path)} was changed:`, ...gone.slice(0, 5), ...added.slice(0, 5)].join("\n"));
  }
  const isNewGit = (path: string): boolean =>
    [...after.git].some((git) => !before.git.has(git) && (path === git || path.startsWith(`${git}/`)));
  for (const path of after.names.keys()) {
    const isTopGit = path === join(before.worktrees[0] ?? "", ".git");
    if (!before.names.has(path) && (isTopGit || !isNewGit(path))) problems.push(`${show(path)} was created`);
  }
  return problems;
}

const show = (text: string): string => Buffer.from(text, "latin1").toString("utf8").slice(0, 400);

/** Runs `git status` as a person with a prompt would. Where that needs a work tree, git fetches instead. */
export function runGit(folder: string, home: string): void {
  let fd: number;
  try {
    fd = fs.openSync(raw(folder), fs.constants.O_DIRECTORY | 0o10000000);
  } catch {
    return;
  }
  try {
    const isBare = statOf(`${folder}/.git`) === undefined && statOf(`${folder}/HEAD`) !== undefined;
    spawnSync("git", isBare ? ["fetch", "ssh://localhost/nothing"] : ["status", "--porcelain"], {
      cwd: `/proc/${process.pid}/fd/${fd}`,
      env: { PATH: process.env.PATH, HOME: home, GIT_CONFIG_NOSYSTEM: "1", GIT_TERMINAL_PROMPT: "0", LC_ALL: "C" },
      stdio: "ignore",
      timeout: 5000,
    });
  } finally {
    fs.closeSync(fd);
  }
}
