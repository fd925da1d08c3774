/**
 * The working folder of a session on this worker. A repository is cloned through a cache; changes travel as one commit
 * under `refs/troupe/<session>` of the same remote, pushed at the end of each activation. Ignored files do not travel.
 */

import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import type { Disk } from "../../lib/node/disk.ts";
import { GitFailure, gitAt } from "../../lib/node/git-write.ts";
import { isInside } from "../../lib/node/paths.ts";
import { sanitiseLine } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { WorkRow } from "./work.ts";

const FETCH_MS = 600_000;
const author = { name: "troupe", email: "troupe@localhost" };

export interface CheckoutOptions {
  /** The worker's folder for caches and working folders. */
  readonly folder: string;
  readonly disk: Disk;
  /** Folders whose repositories may be named by path. */
  readonly localFolders: readonly string[];
}

/** Returns the prepared working folder. Another worker's changes are fetched. */
export async function checkOut(work: WorkRow, options: CheckoutOptions): Promise<string> {
  const { folder, disk } = options;
  const workTree = join(folder, "workspaces", work.sessionId);
  const { repository, ref } = work.request;
  await disk.mkdir(workTree);
  if (repository === undefined) return workTree;
  checkAddress({ repository, ref }, options);
  const gitDir = join(workTree, ".git");
  const checkout = { gitDir, workTree };
  const git = (args: readonly string[]) => gitAt(checkout, args, { timeoutMs: FETCH_MS, protocols: PROTOCOLS });
  if (!existsSync(gitDir)) {
    const cache = await updateCache(repository, options);
    await git(["init", "--quiet"]);
    await git(["remote", "add", "origin", repository]);
    await git(["fetch", "--quiet", cache, "+refs/cache/*:refs/cache/*"]);
  }
  const own = ownRef(work.sessionId);
  const moved = await git(["fetch", "--quiet", "origin", `+${own}:${own}`]).then(
    () => true,
    () => false,
  );
  if (moved) await git(["checkout", "--quiet", "--force", "--detach", own]);
  else if (!(await hasCommit(git))) await startAt(git, { repository, ref });
  return workTree;
}

/** Pushes the working folder as a commit. Returns false if nothing has changed or there is no repository. */
export async function pushChanges(work: WorkRow, { folder }: CheckoutOptions): Promise<boolean> {
  const workTree = join(folder, "workspaces", work.sessionId);
  if (work.request.repository === undefined) return false;
  const checkout = { gitDir: join(workTree, ".git"), workTree };
  const git = async (args: readonly string[]) =>
    (await gitAt(checkout, args, { timeoutMs: FETCH_MS, author, protocols: PROTOCOLS })).stdout.trim();
  await git(["add", "--all"]);
  const [tree, before] = [await git(["write-tree"]), await git(["rev-parse", "HEAD^{tree}"])];
  if (tree === before) return false;
  const commit = await git(["commit-tree", tree, "-p", "HEAD", "-m", `Session ${work.sessionId}`]);
  await git(["update-ref", "HEAD", commit]);
  await git(["push", "--quiet", "--force", "origin", `${commit}:${ownRef(work.sessionId)}`]);
  return true;
}

const PROTOCOLS = "https:ssh:file";
const REMOTE = /^(?:https:\/\/|ssh:\/\/|[\w.-]+@[\w.-]+:)/;

/** Throws unless the repository is a remote one without credentials, or lies in a folder that the worker has named. */
function checkAddress(
  { repository, ref = "" }: { readonly repository: string; readonly ref: string | undefined },
  { localFolders }: CheckoutOptions,
): void {
  // Git would take a value that begins with a dash for an option.
  if (repository.startsWith("-") || ref.startsWith("-"))
    throw badAddress("A repository or ref cannot begin with a dash.");
  if (REMOTE.test(repository)) {
    if (/^https:\/\/[^/]*@/.test(repository)) throw badAddress("The address of the repository contains credentials.");
    return;
  }
  const path = repository.replace(/^file:\/\//, "");
  if (isAbsolute(path) && isInside(path, localFolders)) return;
  throw badAddress(`The workers do not take the repository ${sanitiseLine(repository).slice(0, 200)}.`);
}

const badAddress = (message: string): TroupeError =>
  new TroupeError("usage", message, {
    hint: "Use an https or ssh address. Credentials belong to the git configuration of the workers; folders to their --add-dir.",
  });

const ownRef = (sessionId: string): string => `refs/troupe/${sessionId}`;

type Git = (args: readonly string[]) => Promise<{ stdout: string }>;

const hasCommit = (git: Git): Promise<boolean> =>
  git(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).then(
    () => true,
    () => false,
  );

async function startAt(git: Git, { repository, ref }: { repository: string; ref: string | undefined }): Promise<void> {
  try {
    await git(["fetch", "--quiet", "origin", ref ?? "HEAD"]);
    await git(["checkout", "--quiet", "--force", "--detach", "FETCH_HEAD"]);
  } catch (error) {
    if (!(error instanceof GitFailure)) throw error;
    throw new TroupeError("usage", `Cannot check out ${ref ?? "HEAD"} of ${repository}: ${error.message}`, {
      hint: "Check the address and the ref, and that the workers can reach the repository.",
    });
  }
}

/** Returns the folder of a copy of the repository on this machine, brought up to date. It has no checked-out files. */
async function updateCache(repository: string, { folder, disk }: CheckoutOptions): Promise<string> {
  const name = createHash("sha256").update(repository).digest("hex").slice(0, 16);
  const cache = join(folder, "repositories", name);
  const cacheFolders = { gitDir: join(cache, ".git"), workTree: cache };
  await disk.mkdir(cache);
  if (!existsSync(cacheFolders.gitDir)) await gitAt(cacheFolders, ["init", "--quiet"]);
  const remote = { timeoutMs: FETCH_MS, protocols: PROTOCOLS };
  await gitAt(cacheFolders, ["fetch", "--quiet", repository, "+refs/heads/*:refs/cache/*"], remote).catch(
    () => undefined, // the working folder's own fetch reports the error
  );
  return cache;
}
