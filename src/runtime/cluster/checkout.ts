/**
 * The working folder of a session on this worker. A repository is cloned through a cache. Changes travel as commits that
 * `workspace-keeper.ts` pushes to the same remote.
 */

import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { isAbsolute, join, sep } from "node:path";
import type { Disk } from "../../lib/node/disk.ts";
import { GitFailure, gitAt } from "../../lib/node/git-write.ts";
import { isInside } from "../../lib/node/paths.ts";
import type { Queries } from "../../lib/queries.ts";
import { sanitiseLine } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { EventData } from "../../protocol/event.ts";
import { decodeLine } from "../../store/log/line.ts";
import type { WorkRow } from "./work.ts";

export const FETCH_MS = 600_000;

export interface CheckoutOptions {
  /** The worker's folder for caches and working folders. */
  readonly folder: string;
  readonly disk: Disk;
  /** Folders whose repositories may be named by path. */
  readonly localFolders: readonly string[];
}

export interface Checkout {
  readonly workTree: string;
  /** False if the work has no repository: then its files stay on this machine. */
  readonly isRepository: boolean;
  /** True if the files were last changed on another machine. */
  readonly isMoved: boolean;
}

/** Prepares the working folder. Changes that another worker has kept are fetched. */
export async function checkOut(
  work: WorkRow,
  kept: EventData<"troupe.workspace_kept"> | undefined,
  options: CheckoutOptions,
): Promise<Checkout> {
  const { folder, disk } = options;
  const workTree = join(folder, ownPart(work.sessionId));
  const { repository, ref } = work.request;
  await disk.mkdir(workTree);
  if (repository === undefined) return { workTree, isRepository: false, isMoved: false };
  checkAddress({ repository, ref }, options);
  const gitDir = join(workTree, ".git");
  const git: Git = (args) => gitAt({ gitDir, workTree }, args, { timeoutMs: FETCH_MS, protocols: PROTOCOLS });
  if (!existsSync(gitDir)) {
    const cache = await updateCache(repository, options);
    await git(["init", "--quiet"]);
    await git(["remote", "add", "origin", repository]);
    await git(["fetch", "--quiet", cache, "+refs/cache/*:refs/cache/*"]);
  }
  // Files that this machine kept itself are here already. They may have changed since then.
  const isMoved = kept !== undefined && (await commitOf(git, KEPT_REF)) !== kept.commit;
  if (isMoved) await restore(git, kept);
  else if ((await commitOf(git, BASE_REF)) === undefined) await startAt(git, { repository, ref });
  return { workTree, isRepository: true, isMoved };
}

const ownPart = (sessionId: string): string => join("workspaces", sessionId);

/** Returns a function that tells whether a folder is the session's working folder, on any worker. */
export const isWorkTreeOf =
  (sessionId: string) =>
  (folder: string): boolean =>
    folder.endsWith(join(sep, ownPart(sessionId)));

/** Returns what the session's log says about its working folder. */
export async function lastKept(
  queries: Queries,
  sessionId: string,
): Promise<EventData<"troupe.workspace_kept"> | undefined> {
  const { rows } = await queries.query<{ line: string }>(
    `select line from troupe.event where session_id = $1 and line like '%"type":"troupe.workspace_kept"%'
     order by seq desc limit 1`,
    [sessionId],
  );
  const decoded = decodeLine(Buffer.from(rows[0]?.line ?? ""));
  if (decoded.kind === "bad" || decoded.event.type !== "troupe.workspace_kept") return undefined;
  return decoded.event.data;
}

/** Replaces all files but ignored ones and `.env` files. HEAD and the branch become those of the other worker. */
async function restore(git: Git, { ref, commit, branch }: EventData<"troupe.workspace_kept">): Promise<void> {
  await git(["fetch", "--quiet", "origin", `+${ref}:${KEPT_REF}`]);
  if ((await commitOf(git, KEPT_REF)) !== commit) {
    throw new TroupeError("failed", `The ref ${ref} is not at the commit ${commit}, which the session's log names.`, {
      hint: "Restore the ref in the repository, then run the job again: troupe cluster retry <job>.",
    });
  }
  await git(["clean", "--quiet", "-fd", "--exclude=.env*"]);
  await git(["checkout", "--quiet", "--force", "--detach", commit]);
  await git(["update-ref", "--no-deref", "HEAD", `${commit}^`]);
  await git(["read-tree", "HEAD"]);
  if (branch !== undefined) {
    await git(["update-ref", `refs/heads/${branch}`, "HEAD"]);
    await git(["symbolic-ref", "HEAD", `refs/heads/${branch}`]);
  }
  if ((await commitOf(git, BASE_REF)) === undefined) await git(["update-ref", BASE_REF, "HEAD"]);
}

/** Local refs: the commit that was kept last, and the one that the session began with. */
export const KEPT_REF = "refs/troupe/kept";
export const BASE_REF = "refs/troupe/base";

/** The beginning of the refs that a session has in the remote repository. Numbers follow. */
export const refsOf = (sessionId: string): string => `refs/troupe/${sessionId}/`;

export const PROTOCOLS = "https:ssh:file";
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

type Git = (args: readonly string[]) => Promise<{ stdout: string }>;

const commitOf = (git: Git, ref: string): Promise<string | undefined> =>
  git(["rev-parse", "--verify", "--quiet", `${ref}^{commit}`]).then(
    ({ stdout }) => stdout.trim(),
    () => undefined,
  );

async function startAt(git: Git, { repository, ref }: { repository: string; ref: string | undefined }): Promise<void> {
  try {
    await git(["fetch", "--quiet", "origin", ref ?? "HEAD"]);
    await git(["checkout", "--quiet", "--force", "--detach", "FETCH_HEAD"]);
    await git(["update-ref", BASE_REF, "HEAD"]);
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
  if (!existsSync(cacheFolders.gitDir)) await createCache(cache, disk);
  const remote = { timeoutMs: FETCH_MS, protocols: PROTOCOLS };
  await gitAt(cacheFolders, ["fetch", "--quiet", repository, "+refs/heads/*:refs/cache/*"], remote).catch(
    () => undefined, // the working folder's own fetch reports the error
  );
  return cache;
}

/** Several sessions and workers may do it at the same time: the first one counts. An interrupted one leaves nothing half done. */
async function createCache(cache: string, disk: Disk): Promise<void> {
  const own = `${cache}.${crypto.randomUUID()}`;
  await disk.mkdir(own);
  await gitAt({ gitDir: join(own, ".git"), workTree: own }, ["init", "--quiet"]);
  await disk.rename(own, cache).catch(async (error: unknown) => {
    await disk.remove(own);
    if (!existsSync(join(cache, ".git"))) throw error;
  });
}
