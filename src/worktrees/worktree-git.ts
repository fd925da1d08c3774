/** Finds the repository of a folder and the user's git identity, and explains git failures. */

import { lstatSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { defined } from "../lib/defined.ts";
import { type GitReply, runGit, runNeutral } from "../lib/node/git.ts";
import {
  type GitCheckout,
  GitFailure,
  type GitWriteOptions,
  gitAt,
  type Identity,
  preparedCheckout,
} from "../lib/node/git-write.ts";
import { sanitiseLine } from "../lib/text.ts";
import { TroupeError } from "../protocol/errors.ts";

export interface Repository {
  /** The user's work tree; a linked one if the folder is in it. */
  readonly main: GitCheckout;
  /** The common git folder: objects, branches and the list of worktrees. */
  readonly common: string;
  /** Path from the top of the work tree to the folder; empty or ending with a slash. */
  readonly prefix: string;
  readonly head: string;
}

export async function findRepository(folder: string, signal?: AbortSignal): Promise<Repository> {
  const options = { cwd: folder, ...defined({ signal }) };
  const words = ["--show-toplevel", "--absolute-git-dir", "--git-common-dir", "--show-prefix"];
  const reply = await runGit(["rev-parse", "--path-format=absolute", ...words], options);
  if (reply.code !== 0) throw noRepository(folder, reply);
  const [workTree = "", gitDir = "", common = "", prefix = "", ...more] = reply.stdout.split("\n");
  if (more.length > 1) throw new TroupeError("usage", "The path of this repository contains a line break.");
  const head = await runGit(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"], options);
  if (head.code !== 0) {
    throw new TroupeError("usage", `${workTree} has no commit yet, so no worktree can be created from it.`, {
      hint: "Create a first commit, or let the agent work in the folder itself.",
    });
  }
  return { main: await preparedCheckout({ gitDir, workTree }), common, prefix, head: head.stdout.trim() };
}

function noRepository(folder: string, { stderr, stopped }: GitReply): TroupeError {
  if (stopped === "abort") return new TroupeError("interrupted", "Stopped before the repository was found.");
  if (/bare repository|must be run in a work tree/.test(stderr)) {
    return new TroupeError(
      "usage",
      `${folder} is in a bare repository or in a .git folder: there are no files to work on.`,
      {
        hint: "Start in a clone or in one of its worktrees.",
      },
    );
  }
  if (/not a git repository/.test(stderr)) {
    return new TroupeError(
      "usage",
      `${folder} is not in a git repository, so an agent cannot get a worktree of its own.`,
      {
        hint: "Run git init and commit first, or use an agent without isolation: worktree.",
      },
    );
  }
  return new TroupeError("failed", `git cannot read the repository of ${folder}: ${brief(stderr)}`);
}

export interface GitWork extends GitWriteOptions {
  /** Completes the sentence "Could not …". */
  readonly to: string;
}

/** Runs `gitAt` and throws failures as `TroupeError`. */
export async function git(checkout: GitCheckout, args: readonly string[], work: GitWork): Promise<string> {
  return (await gitCode(checkout, args, work)).stdout;
}

export async function gitCode(checkout: GitCheckout, args: readonly string[], work: GitWork) {
  try {
    return await gitAt(checkout, args, work);
  } catch (error) {
    if (error instanceof GitFailure) throw explainFailure(error, work.to);
    throw error;
  }
}

export function explainFailure(failure: GitFailure, to: string): TroupeError {
  const { message, reason } = failure;
  const options = { cause: failure };
  if (reason === "abort") return new TroupeError("interrupted", `Stopped before it could ${to}.`, options);
  if (reason !== "refused") return new TroupeError("limit", `Could not ${to}: ${message}.`, options);
  if (/No space left on device|Disk quota exceeded/.test(message)) {
    return new TroupeError("storage", `Could not ${to}: the disk is full.`, {
      ...options,
      hint: "Free some space, then try again. No partial changes were made.",
    });
  }
  if (/unknown (option|switch)|usage: git/.test(message)) {
    return new TroupeError("configuration", `Could not ${to}: this git is too old.`, {
      ...options,
      hint: "Install git 2.38 or later.",
    });
  }
  if (/lazy fetch|promisor|missing blob|unable to read/i.test(message)) {
    return new TroupeError("failed", `Could not ${to}: parts of the repository are not downloaded. ${brief(message)}`, {
      ...options,
      hint: "Fetch them (git fetch --refetch), then try again. They are not fetched automatically.",
    });
  }
  return new TroupeError("failed", `Could not ${to}: ${brief(message)}`, options);
}

const brief = (text: string): string => sanitiseLine(text.trim()).slice(0, 300);

export interface GitUser {
  readonly identity?: Identity;
  /** File with ignore patterns of the user. */
  readonly excludesFile?: string;
}

/** Reads the user's identity and excludes file from git's configuration. */
export async function gitUserOf(checkout: GitCheckout): Promise<GitUser> {
  const found = new Map<string, string>();
  const files = [".config/git/config", ".gitconfig"].map((name) => join(homedir(), name));
  const present = files.filter((file) => statSync(file, { throwIfNoEntry: false })?.isFile());
  for (const file of present.length > 0 ? present : ["/dev/null"]) {
    const environment = { GIT_DIR: checkout.gitDir, GIT_CONFIG_GLOBAL: file };
    const args = ["config", "--includes", "--null", "--get-regexp", WANTED];
    const reply = await runNeutral(args, { cwd: checkout.workTree, environment }, checkout.neutral);
    for (const entry of reply.code === 0 ? reply.stdout.split("\0") : []) {
      const end = entry.indexOf("\n");
      if (end > 0) found.set(entry.slice(0, end), entry.slice(end + 1));
    }
  }
  const [name, email, excludes] = ["user.name", "user.email", "core.excludesfile"].map((key) => found.get(key));
  return {
    ...(name && email && { identity: { name, email } }),
    ...(excludes && { excludesFile: excludes.replace(/^~(?=\/)/, homedir()) }),
  };
}

const WANTED = "^(user\\.(name|email)|core\\.excludesfile)$";

/** Author of commits that only carry a tree for a merge. The fixed date makes equal trees give equal commits. */
export const NOBODY: Identity = { name: "troupe", email: "troupe@localhost", date: "2000-01-01T00:00:00Z" };

/**
 * Throws if a path is a link. Agents can write these paths, and our own git would follow the link with our permissions.
 */
export function refuseLinks(paths: readonly string[]): void {
  for (const path of paths) {
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (stat === undefined || stat.isFile() || stat.isDirectory()) continue;
    throw new TroupeError("failed", `${path} is no longer a regular file, so this worktree was not changed.`, {
      hint: "An agent has replaced a file of git. Inspect it, then discard the worktree with --force.",
    });
  }
}

/** Returns the files and folders that git writes when a branch moves, as far as the session's agents can write them. */
export function refFiles(common: string, branch: string): string[] {
  const parts = ["refs", "heads", ...branch.split("/")];
  const ways = parts.slice(2).map((_, index) => parts.slice(0, index + 3));
  return ways.flatMap((way) => [join(common, ...way), join(common, "logs", ...way)]);
}
