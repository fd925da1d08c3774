/**
 * Runs git commands that change a repository, as safely as `git.ts`: no hook, filter, driver or signing program runs.
 * The repository is always named, never searched for, so that a file in a folder cannot lead to another one.
 */

import { homedir } from "node:os";
import { join } from "node:path";
import { defined } from "../defined.ts";
import { type Neutral, neutralise, runNeutral } from "./git.ts";

export interface GitCheckout {
  /** The git folder of this work tree; for a linked one `<repository>/.git/worktrees/<name>`. */
  readonly gitDir: string;
  readonly workTree: string;
  /** The result of an earlier lookup. If absent, each command looks it up. */
  readonly neutral?: Neutral;
  /** Stores new objects in the folder `own`, not in the repository. `repository`: its folder of objects, for reading. */
  readonly objects?: { readonly own: string; readonly repository: string };
}

export interface GitWriteOptions {
  /** Used instead of the index of the work tree. */
  readonly indexFile?: string;
  readonly input?: string;
  readonly author?: Identity;
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number;
  readonly maxBytes?: number;
  /** Whether output above `maxBytes` is a failure or is truncated. */
  readonly whenTooMuch?: "fail" | "cut";
  /** Lets git reach a remote by these protocols, with the user's own git configuration. Default: none. */
  readonly protocols?: string;
  /** Exit codes that count as success. Default: 0. */
  readonly accept?: readonly number[];
}

export interface Identity {
  readonly name: string;
  readonly email: string;
  /** A fixed date, for internal commits that must be identical each time. */
  readonly date?: string;
}

export class GitFailure extends Error {
  override readonly name = "GitFailure";
  readonly reason: "refused" | "time" | "size" | "abort";

  constructor(message: string, reason: GitFailure["reason"]) {
    super(message);
    this.reason = reason;
  }
}

const TIMEOUT_MS = 120_000;
const MAX_COMPLAINT_CHARACTERS = 500;

/** Returns git's output. Throws `GitFailure` if git failed. */
export async function gitAt(
  checkout: GitCheckout,
  args: readonly string[],
  options: GitWriteOptions = {},
): Promise<{ code: number; stdout: string; isCut?: boolean }> {
  const { indexFile, input, author, signal, timeoutMs = TIMEOUT_MS, maxBytes, accept = [0] } = options;
  const wanted = {
    cwd: checkout.workTree,
    timeoutMs,
    environment: {
      ...variables(checkout),
      ...defined({ GIT_INDEX_FILE: indexFile }),
      ...(author && identityVariables(author)),
      ...(options.protocols !== undefined && remoteVariables(options.protocols)),
    },
    ...defined({ input, signal, maxBytes }),
  };
  const reply = await runNeutral(["--no-pager", ...SETTINGS, ...args], wanted, checkout.neutral);
  if (reply.stopped === "size" && options.whenTooMuch === "cut") return { code: 0, stdout: reply.stdout, isCut: true };
  if (reply.stopped !== undefined) throw new GitFailure(`git ${args[0]} was ended: ${reply.stopped}`, reply.stopped);
  if (reply.code !== null && accept.includes(reply.code)) return { code: reply.code, stdout: reply.stdout };
  const said = reply.stderr.trim().slice(0, MAX_COMPLAINT_CHARACTERS);
  throw new GitFailure(said || `git ${args[0]} failed with ${reply.code}`, "refused");
}

/** Returns the same checkout, prepared for several commands in a row. */
export async function preparedCheckout({ gitDir, workTree }: GitCheckout): Promise<GitCheckout> {
  const checkout: GitCheckout = { gitDir, workTree };
  const neutral = await neutralise({ cwd: workTree, environment: variables(checkout) });
  return "program" in neutral ? { ...checkout, neutral } : checkout; // the next command reports the error
}

const variables = ({ gitDir, workTree, objects }: GitCheckout) => ({
  GIT_DIR: gitDir,
  GIT_WORK_TREE: workTree,
  ...(objects && {
    GIT_OBJECT_DIRECTORY: objects.own,
    // A list. Quotes protect a path with a colon.
    GIT_ALTERNATE_OBJECT_DIRECTORIES: JSON.stringify(objects.repository),
  }),
});

/** Line endings that do not survive a round trip are the user's concern and no reason to fail. */
const SETTINGS = ["-c", "core.safecrlf=false", "-c", "core.splitIndex=false"];

function remoteVariables(protocols: string): Record<string, string> {
  return {
    GIT_ALLOW_PROTOCOL: protocols,
    GIT_SSH_COMMAND: "ssh -oBatchMode=yes",
    GIT_CONFIG_GLOBAL: join(homedir(), ".gitconfig"),
  };
}

function identityVariables({ name, email, date }: Identity): Record<string, string> {
  return {
    GIT_AUTHOR_NAME: name,
    GIT_AUTHOR_EMAIL: email,
    GIT_COMMITTER_NAME: name,
    GIT_COMMITTER_EMAIL: email,
    ...defined({ GIT_AUTHOR_DATE: date, GIT_COMMITTER_DATE: date }),
  };
}
