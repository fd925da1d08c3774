/**
 * The working folder of a session on this worker. A repository is cloned through a cache; changes travel as one commit
 * under `refs/troupe/<session>` of the same remote, pushed at the end of each activation. Ignored files do not travel.
 */

import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Disk } from "../../lib/node/disk.ts";
import { GitFailure, gitAt } from "../../lib/node/git-write.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { WorkRow } from "./work.ts";

const FETCH_MS = 600_000;
const author = { name: "troupe", email: "troupe@localhost" };

export interface CheckoutOptions {
  /** The worker's folder for caches and working folders. */
  readonly folder: string;
  readonly disk: Disk;
}

/** Returns the prepared working folder. Another worker's changes are fetched. */
export async function checkOut(work: WorkRow, { folder, disk }: CheckoutOptions): Promise<string> {
  const workTree = join(folder, "workspaces", work.sessionId);
  const { repository, ref } = work.request;
  await disk.mkdir(workTree);
  if (repository === undefined) return workTree;
  const gitDir = join(workTree, ".git");
  const place = { gitDir, workTree };
  const git = (args: readonly string[]) => gitAt(place, args, { timeoutMs: FETCH_MS });
  if (!existsSync(gitDir)) {
    const cache = await updateCache(repository, { folder, disk });
    await git(["init", "--quiet"]);
    await git(["remote", "add", "origin", repository]);
    await git(["fetch", "--quiet", cache, "+refs/*:refs/cache/*"]);
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
  const place = { gitDir: join(workTree, ".git"), workTree };
  const git = async (args: readonly string[]) =>
    (await gitAt(place, args, { timeoutMs: FETCH_MS, author })).stdout.trim();
  await git(["add", "--all"]);
  const [tree, before] = [await git(["write-tree"]), await git(["rev-parse", "HEAD^{tree}"])];
  if (tree === before) return false;
  const commit = await git(["commit-tree", tree, "-p", "HEAD", "-m", `Session ${work.sessionId}`]);
  await git(["update-ref", "HEAD", commit]);
  await git(["push", "--quiet", "--force", "origin", `${commit}:${ownRef(work.sessionId)}`]);
  return true;
}

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

/** Returns the folder of a bare copy of the repository on this machine, brought up to date. */
async function updateCache(repository: string, { folder, disk }: CheckoutOptions): Promise<string> {
  const name = createHash("sha256").update(repository).digest("hex").slice(0, 16);
  const cache = join(folder, "repositories", name);
  const place = { gitDir: cache, workTree: cache };
  const isNew = !existsSync(join(cache, "HEAD"));
  await disk.mkdir(cache);
  if (isNew) await gitAt(place, ["init", "--bare", "--quiet", cache]);
  await gitAt(place, ["fetch", "--quiet", repository, "+refs/heads/*:refs/heads/*"], { timeoutMs: FETCH_MS }).catch(
    () => undefined, // the working folder's own fetch reports the error
  );
  return cache;
}
