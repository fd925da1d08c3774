import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { appendFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { type FileTree, type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";
import { createWorktree, type WorktreeRequest } from "../../src/worktrees/worktrees.ts";

export interface WorktreeStage extends AsyncDisposable {
  readonly temp: TempFolder;
  /** The tree of the person, with a space in its path. */
  readonly main: string;
  /** Where worktrees go. */
  readonly folder: string;
  git(args: readonly string[], cwd?: string): string;
  write(files: FileTree): Promise<void>;
  make(taskId: string, more?: Partial<WorktreeRequest>): ReturnType<typeof createWorktree>;
  ports(taskId: string): { folder: string; taskId: string; stateRoot: string; disk: typeof nodeDisk };
  /** Changes files in the worktree of a task. */
  edit(taskId: string, files: FileTree): Promise<void>;
}

export function runGitPlainly(args: readonly string[], cwd: string): string {
  const env = { PATH: process.env.PATH ?? "", HOME: "/nonexistent", GIT_CONFIG_NOSYSTEM: "1" };
  return execFileSync("git", args, { cwd, env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

/** A repository with one commit, and the folder of a session beside it. */
export async function worktreeStage(files: FileTree = { "a.txt": "one\n" }): Promise<WorktreeStage> {
  const temp = await tempFolder();
  const main = temp.at("my project");
  const folder = temp.at("session/worktrees");
  const within = (folderName: string, tree: FileTree): FileTree =>
    Object.fromEntries(Object.entries(tree).map(([name, content]) => [`${folderName}/${name}`, content]));
  await mkdir(main);
  await temp.files(within("my project", files));
  runGitPlainly(["init", "-q", "-b", "main", "--template="], main);
  await appendFile(join(main, ".git/config"), "[user]\n\tname = Ada\n\temail = ada@example.com\n");
  if (Object.keys(files).length > 0) {
    runGitPlainly(["add", "."], main);
    runGitPlainly(["commit", "-q", "-m", "first"], main);
  }
  return {
    temp,
    main,
    folder,
    git: (args, cwd = main) => runGitPlainly(args, cwd),
    write: (tree) => temp.files(within("my project", tree)),
    make: (taskId, more = {}) =>
      createWorktree({ repository: main, folder, sessionId: "0123abcd-rest", taskId, disk: nodeDisk, ...more }),
    ports: (taskId) => ({ folder, taskId, stateRoot: temp.at("session"), disk: nodeDisk }),
    edit: (taskId, tree) => temp.files(within(`session/worktrees/${taskId}`, tree)),
    [Symbol.asyncDispose]: () => temp.remove(),
  };
}

/** Every file of a folder with its content and mode; of git's own only what a person would miss. */
export function fingerprint(folder: string): Record<string, string> {
  const found: Record<string, string> = {};
  const walk = (inner: string): void => {
    for (const name of readdirSync(join(folder, inner)).sort()) {
      const path = join(inner, name);
      if (/^\.git\/(objects|worktrees|logs\/refs\/heads\/troupe|refs\/heads\/troupe)(\/|$)/.test(path)) continue;
      const stat = lstatSync(join(folder, path));
      if (stat.isDirectory()) walk(path);
      else found[path] = stat.isSymbolicLink() ? readlinkSync(join(folder, path)) : hash(join(folder, path), stat.mode);
    }
  };
  walk("");
  return found;
}

const hash = (path: string, mode: number): string =>
  `${(mode & 0o7777).toString(8)} ${createHash("sha256").update(readFileSync(path)).digest("hex")}`;
