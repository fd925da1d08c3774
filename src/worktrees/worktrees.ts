/**
 * Gives each writing agent a git worktree, so that agents can work in parallel and the user's files change only on a
 * merge. This folder creates, inspects, merges and removes worktrees. All files are in the session's folder; the
 * repository gets only a branch and git's worktree entry. Records make worktrees recoverable after a crash.
 */
import { statSync } from "node:fs";
import { realpath } from "node:fs/promises";
import { basename, isAbsolute, join, relative, resolve, sep } from "node:path";
import type { Disk } from "../lib/node/disk.ts";
import { withFileLock } from "../lib/node/file-lock.ts";
import { type GitCheckout, gitAt, preparedCheckout } from "../lib/node/git-write.ts";
import { TroupeError } from "../protocol/errors.ts";
import { findRepository, git, gitUserOf, NOBODY, type Repository } from "./worktree-git.ts";
import { checkTaskId, readRecord, stateFolder, type WorktreeRecord, writeRecord } from "./worktree-records.ts";
import { removeWorktree } from "./worktree-remove.ts";
import { changesIn, filteredPaths, secretPaths, snapshotTree } from "./worktree-snapshot.ts";

export interface WorktreeRequest {
  /** Any folder of the user's work tree. */
  readonly repository: string;
  /** Folder of this session's worktrees: `<session folder>/worktrees`. */
  readonly folder: string;
  readonly sessionId: string;
  readonly taskId: string;
  /** A commit; default HEAD. */
  readonly base?: string;
  /** Starts from HEAD plus uncommitted changes: tracked files, and new ones that are not ignored, but no `.env` files. */
  readonly includeUncommitted?: boolean;
  /** Returns false for uncommitted files, given by their path in the main tree, that are not to be copied. */
  mayCopy?(path: string): boolean;
  readonly disk: Disk;
  readonly signal?: AbortSignal;
}

export interface Worktree {
  readonly taskId: string;
  /** Real path; the agent's only root. */
  readonly root: string;
  /** The folder in the worktree that corresponds to `repository`. */
  readonly cwd: string;
  readonly branch: string;
  /** The commit it started from. */
  readonly base: string;
  readonly gitDir: string;
  /** Notices for the agent and the user. */
  readonly notices: readonly string[];
}

/** Creates the task's worktree. Returns the existing one if the task already has one. */
export async function createWorktree(request: WorktreeRequest): Promise<Worktree> {
  const { disk, folder, taskId, signal } = request;
  const known = await readRecord(folder, checkTaskId(taskId));
  if (known?.state === "ready" && isFolder(known.root) && isFolder(known.gitDir)) return describe(known);
  if (known) await removeLeftover(known, request);

  const repository = await findRepository(request.repository, signal);
  await disk.mkdir(folder);
  const root = join(await realpath(folder), taskId);
  refuseInside(root, repository.main.workTree);
  const start = await startOf(repository, request);
  const making: WorktreeRecord = {
    version: 1,
    state: "making",
    taskId,
    main: repository.main,
    common: repository.common,
    root,
    cwd: root,
    gitDir: "",
    branch: branchOf(request.sessionId, taskId),
    base: start.commit,
    includesUncommitted: start.includesUncommitted,
    notices: start.notices,
  };
  await refuseTaken(making, signal);
  await writeRecord(disk, folder, making);
  try {
    const ready = await checkOut(making, { repository, request });
    await writeRecord(disk, folder, ready);
    return describe(ready);
  } catch (error) {
    await removeWorktree(making, { folder, disk }).catch(() => undefined); // the first failure says more
    throw error;
  }
}

const isFolder = (path: string): boolean =>
  path !== "" && statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

function describe({ taskId, root, cwd, branch, base, gitDir, notices }: WorktreeRecord): Worktree {
  return { taskId, root, cwd: isFolder(cwd) ? cwd : root, branch, base, gitDir, notices };
}

/**
 * Removes only unfinished worktrees. Throws if a finished one's folder is gone, because its branch may have commits.
 */
async function removeLeftover(known: WorktreeRecord, { folder, disk }: WorktreeRequest): Promise<void> {
  if (known.state === "making") return removeWorktree(known, { folder, disk });
  throw new TroupeError("failed", `The worktree of task ${known.taskId} at ${known.root} no longer exists.`, {
    hint: `Its commits are on the branch ${known.branch}. Discard the worktree, or restore the folder.`,
  });
}

function refuseInside(root: string, workTree: string): void {
  const way = relative(workTree, root);
  if (way === ".." || way.startsWith(`..${sep}`) || isAbsolute(way)) return;
  throw new TroupeError("configuration", `Worktrees would be inside the work tree itself: ${root}.`, {
    hint: "Set TROUPE_HOME to a folder outside the repository.",
  });
}

/** Returns the name of the branch that an agent works on. */
export const branchOf = (sessionId: string, taskId: string): string => `troupe/${shortId(sessionId)}/${taskId}`;

const shortId = (sessionId: string): string => sessionId.replace(/[^A-Za-z0-9]/g, "").slice(0, 8) || "session";

async function refuseTaken({ main, branch, root }: WorktreeRecord, signal?: AbortSignal): Promise<void> {
  const name = `refs/heads/${branch}`;
  const to = "look for the branch";
  const taken = await git(main, ["for-each-ref", "--format=%(refname)", name], { to, signal });
  if (taken.trim() === "" && !isFolder(root)) return;
  throw new TroupeError("failed", `The branch ${branch} or the folder ${root} already exists.`, {
    hint: "Another session made it. Discard or rename it, or give the task another name.",
  });
}

interface Start {
  readonly commit: string;
  readonly includesUncommitted: boolean;
  readonly notices: string[];
}

async function startOf(repository: Repository, request: WorktreeRequest): Promise<Start> {
  const { main, head } = repository;
  const { base, includeUncommitted = false, signal } = request;
  if (base !== undefined) {
    const args = ["rev-parse", "--verify", "--quiet", "--end-of-options", `${base}^{commit}`];
    const commit = (await git(main, args, { to: `find the commit ${base.slice(0, 100)}`, signal })).trim();
    return { commit, includesUncommitted: false, notices: [] };
  }
  const { excludesFile } = await gitUserOf(main);
  const changes = await changesIn(main, { excludesFile, signal });
  const count = changes.paths.length + changes.unmerged.length;
  if (count === 0) return { commit: head, includesUncommitted: false, notices: [] };
  if (!includeUncommitted) {
    const notice = `The main tree has uncommitted changes in ${count} file(s); this worktree starts without them.`;
    return { commit: head, includesUncommitted: false, notices: [notice] };
  }
  if (changes.unmerged.length > 0) {
    throw new TroupeError("failed", `${main.workTree} is in the middle of a merge.`, {
      hint: "Finish or abort it first, or start from HEAD.",
    });
  }
  return withUncommitted(repository, { request, paths: changes.paths, nested: changes.nested });
}

async function withUncommitted(
  { main, head }: Repository,
  what: { request: WorktreeRequest; paths: readonly string[]; nested: readonly string[] },
): Promise<Start> {
  const { disk, folder, taskId, signal, mayCopy } = what.request;
  const withheld = what.paths.filter((path) => mayCopy?.(join(main.workTree, path)) === false);
  const secret = [...withheld, ...secretPaths(main, what.paths)];
  const filtered = new Set([...(await filteredPaths(main, what.paths, signal)), ...secret]);
  const own = stateFolder(folder, taskId);
  const indexFile = join(own, "start.index");
  await disk.mkdir(own);
  try {
    const paths = what.paths.filter((path) => !filtered.has(path));
    const tree = await snapshotTree(main, { commit: head, paths, indexFile, signal });
    const message = "Uncommitted changes of the main tree";
    const args = ["commit-tree", tree, "-p", head, "-m", message];
    const commit = (await git(main, args, { to: "store the uncommitted changes", author: NOBODY, signal })).trim();
    const left = [...what.paths.filter((path) => filtered.has(path)), ...what.nested];
    const notice = `Not copied from the main tree: ${left.slice(0, 20).join(", ")}.`;
    return { commit, includesUncommitted: true, notices: left.length > 0 ? [notice] : [] };
  } finally {
    await disk.remove(indexFile);
  }
}

const MAX_ADD_WAIT_MS = 120_000;

/** Checks out in two steps: the programs that its configuration names are known only in the new worktree. */
async function checkOut(
  making: WorktreeRecord,
  { repository, request }: { repository: Repository; request: WorktreeRequest },
): Promise<WorktreeRecord> {
  const { root, branch, base } = making;
  const { signal, disk, folder } = request;
  const to = "create a worktree";
  const add = ["worktree", "add", "--quiet", "--no-checkout", "--no-track", "-b", branch, root, base];
  // One at a time: git reads the entries of all worktrees, and fails if one is being written.
  const path = join(folder, ".state", "add");
  const lock = { path, disk, Failure: TroupeError, maxWaitMs: MAX_ADD_WAIT_MS };
  await withFileLock(lock, () => git(repository.main, add, { to, signal }));
  const gitDir = await ownGitDir(repository, root);
  const ready: WorktreeRecord = { ...making, state: "ready", gitDir, cwd: resolve(root, repository.prefix) };
  const checkout = await preparedCheckout({ gitDir, workTree: root });
  await git(checkout, ["reset", "--hard", "--quiet", "--no-recurse-submodules"], { to, signal });
  return { ...ready, notices: [...making.notices, ...(await noticesOf(checkout, base, signal))] };
}

async function ownGitDir({ main, common }: Repository, root: string): Promise<string> {
  const { stdout } = await gitAt({ gitDir: join(root, ".git"), workTree: root }, ["rev-parse", "--absolute-git-dir"]);
  const gitDir = await realpath(stdout.trim());
  if (relative(join(await realpath(common), "worktrees"), gitDir) === basename(gitDir)) return gitDir;
  throw new TroupeError("failed", `git created the worktree of ${main.workTree} in an unexpected folder: ${gitDir}.`);
}

async function noticesOf(checkout: GitCheckout, base: string, signal: AbortSignal | undefined): Promise<string[]> {
  const work = { to: "look for attributes", signal, accept: [0, 1] };
  const search = ["grep", "-l", "-I", "-F", "--no-textconv", "-e", "filter=", base, "--", ":(glob)**/.gitattributes"];
  const modules = await git(checkout, ["ls-tree", "--name-only", base, "--", ".gitmodules"], work);
  const filters = await git(checkout, search, work);
  return [
    ...(filters === ""
      ? []
      : ["Filters such as Git LFS do not run here: the files they manage have their stored form."]),
    ...(modules === "" ? [] : ["Submodules are not checked out here."]),
  ];
}
