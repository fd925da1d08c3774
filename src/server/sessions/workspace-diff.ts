/** The git diff of the repository a session works in. Computing it changes nothing. */
import { defined } from "../../lib/defined.ts";
import { runGit } from "../../lib/node/git.ts";
import { readShared } from "../../lib/node/shared-folder.ts";

export type DiffMode = "unstaged" | "branch" | "session";

export interface Change {
  readonly path: string;
  readonly oldPath?: string;
  readonly changeType: "added" | "modified" | "deleted" | "renamed";
  readonly diff: string;
  readonly isTruncated?: true;
}

export interface WorkspaceDiff {
  readonly requestedMode: DiffMode;
  readonly mode: DiffMode;
  readonly changes: readonly Change[];
  readonly baseBranch?: string;
  /** Set if there is no branch to compare with, or the session's changes are unknown. */
  readonly isFallback: boolean;
  readonly unavailableReason?: "file-change-tracking-disabled";
}

const MAX_DIFF_CHARACTERS = 200_000;
const MAX_CHANGES = 2_000;
const MAX_UNTRACKED_BYTES = 1024 * 1024;

/**
 * `branch` compares with the commit at which the branch began. Without such a commit, and for `session`, `unstaged` is
 * used.
 */
export async function workspaceDiff(
  cwd: string,
  request: { readonly mode: DiffMode; readonly ignoreWhitespace: boolean; readonly signal: AbortSignal },
): Promise<WorkspaceDiff> {
  const { mode: requestedMode, signal } = request;
  const ask = (folder: string) => (args: readonly string[]) => runGit(args, { cwd: folder, signal });
  const root = (await ask(cwd)(["rev-parse", "--show-toplevel"])).stdout.trim();
  if (root === "") return { requestedMode, mode: "unstaged", changes: [], isFallback: requestedMode !== "unstaged" };
  const git = ask(root);
  const base = requestedMode === "branch" ? await branchedFrom(git) : undefined;
  const args = ["-M", ...(request.ignoreWhitespace ? ["-w"] : []), ...(base ? [base.commit] : [])];
  const tracked = changesOf(
    (await git(["diff", "--name-status", "-z", ...args])).stdout,
    (await git(["diff", ...args])).stdout,
  );
  const others = (await git(["ls-files", "--others", "--exclude-standard", "-z"])).stdout.split("\0").filter(Boolean);
  const room = Math.max(0, MAX_CHANGES - tracked.length);
  const added = await Promise.all(others.slice(0, room).map((path) => untracked(root, path)));
  return {
    requestedMode,
    mode: base ? "branch" : "unstaged",
    changes: [...tracked.slice(0, MAX_CHANGES), ...added],
    ...defined({ baseBranch: base?.branch }),
    isFallback: requestedMode !== "unstaged" && !base,
  };
}

type Git = (args: readonly string[]) => ReturnType<typeof runGit>;

/** Returns the default branch, and the commit at which the current branch left it. */
async function branchedFrom(git: Git): Promise<{ branch: string; commit: string } | undefined> {
  const named = (await git(["rev-parse", "--abbrev-ref", "origin/HEAD"])).stdout.trim();
  for (const branch of [named, "origin/main", "origin/master", "main", "master"]) {
    if (branch === "" || branch === "origin/HEAD") continue;
    const { code, stdout } = await git(["merge-base", "HEAD", branch]);
    if (code === 0) return { branch: branch.replace(/^origin\//, ""), commit: stdout.trim() };
  }
  return undefined;
}

/** Git prints the names and the patches in the same order. */
function changesOf(names: string, patch: string): Change[] {
  const fields = names.split("\0");
  const patches = patch === "" ? [] : patch.split(/^(?=diff --git )/m);
  const changes: Change[] = [];
  for (let index = 0; index + 1 < fields.length; ) {
    const status = fields[index++] ?? "";
    const oldPath = /^[RC]/.test(status) ? fields[index++] : undefined;
    const path = fields[index++];
    if (path === undefined) break;
    const changeType = changeTypes[status.charAt(0)] ?? "modified";
    const diff = patches[changes.length];
    changes.push({ path, ...defined({ oldPath }), changeType, ...clipDiff(diff) });
  }
  return changes;
}

const changeTypes: Readonly<Record<string, Change["changeType"]>> = {
  A: "added",
  C: "added",
  D: "deleted",
  R: "renamed",
};

export function clipDiff(diff: string | undefined): Pick<Change, "diff" | "isTruncated"> {
  if (diff === undefined) return { diff: "", isTruncated: true };
  if (diff.length <= MAX_DIFF_CHARACTERS) return { diff };
  return { diff: diff.slice(0, MAX_DIFF_CHARACTERS), isTruncated: true };
}

/** Git has nothing to compare it with: the whole file is new. */
async function untracked(root: string, path: string): Promise<Change> {
  const content = await readShared(root, path, MAX_UNTRACKED_BYTES).catch(() => undefined);
  if (!content) return { path, changeType: "added", diff: "", isTruncated: true };
  const head = `diff --git a/${path} b/${path}\nnew file mode 100644\n`;
  if (content.includes(0)) return { path, changeType: "added", diff: `${head}Binary files differ\n` };
  const lines = content.toString("utf8").replace(/\n$/, "").split("\n");
  if (content.length === 0) return { path, changeType: "added", diff: head };
  const hunk = `--- /dev/null\n+++ b/${path}\n@@ -0,0 +1,${lines.length} @@\n${lines.map((line) => `+${line}`).join("\n")}\n`;
  return { path, changeType: "added", ...clipDiff(head + hunk) };
}
