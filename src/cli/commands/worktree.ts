/** `troupe tasks merge|diff|discard <task>`: merges, shows or discards the work of an agent in its own worktree. */
import { nodeDisk } from "../../lib/node/disk.ts";
import { plural, sanitise } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { Conflict } from "../../worktrees/worktree-conflicts.ts";
import { type MergeKind, mergeWorktree } from "../../worktrees/worktree-merge.ts";
import type { ProtectedChange } from "../../worktrees/worktree-protection.ts";
import { discardWorktree } from "../../worktrees/worktree-remove.ts";
import { type WorktreeState, worktreeState } from "../../worktrees/worktree-state.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";

export interface WorktreeCall {
  /** `<session folder>/worktrees` of the session that has the task. */
  readonly folder: string;
  readonly taskId: string;
  readonly stateRoot: string;
  print(text: string): void;
}

export async function diffTask(call: WorktreeCall): Promise<ExitCode> {
  const state = await worktreeState({ ...call, disk: nodeDisk });
  call.print(stateText(state));
  return exitCodes.done;
}

/** Throws if the merge did not happen; nothing has changed then. */
export async function mergeTask(
  call: WorktreeCall & {
    readonly as?: MergeKind;
    readonly description?: string;
    /** Merges protected names too. */
    readonly force?: boolean;
    /** Undefined if there is no terminal. */
    readonly ask?: (question: string) => Promise<boolean>;
  },
): Promise<ExitCode> {
  const { taskId, force = false, ask } = call;
  const permit = async (changes: readonly ProtectedChange[]): Promise<boolean> => {
    if (force) return true;
    call.print(protectedText(changes));
    if (changes.some(({ protection }) => protection === "deny")) return false;
    return (await ask?.("Merge them? [y/N] ")) === true;
  };
  const result = await mergeWorktree({ ...call, permit, disk: nodeDisk });
  switch (result.kind) {
    case "nothing":
      call.print(`There is nothing to merge from ${taskId}.\n`);
      return exitCodes.done;
    case "merged":
      call.print(mergedText(result.files, result.commit));
      return exitCodes.done;
    case "conflict":
      call.print(conflictsText(result.conflicts));
      throw new TroupeError(
        "failed",
        `Nothing was merged: ${plural(result.conflicts.length, "file")} changed on both sides.`,
        {
          hint: `Change the worktree so that they agree, or take over by hand; then \`troupe tasks merge ${taskId}\` again.`,
        },
      );
    case "dirty":
      call.print(list("Changed here, and the merge would overwrite it:", result.files));
      throw new TroupeError("failed", "Nothing was merged: files here have changes that would be lost.", {
        hint: "Commit or stash them, then merge again.",
      });
    case "protected":
      throw new TroupeError(
        "failed",
        `Nothing was merged: ${plural(result.changes.length, "protected name")} changed.`,
        {
          hint: `Look at them with \`troupe tasks diff ${taskId}\`. To merge them as well, use --force in your own terminal.`,
        },
      );
    case "taken-back":
      throw new TroupeError("failed", sanitise(`The merge was undone: ${result.because}`), {
        hint: "The files are as before. Try again.",
      });
  }
}

export async function discardTask(call: WorktreeCall & { readonly force?: boolean }): Promise<ExitCode> {
  const result = await discardWorktree({ ...call, disk: nodeDisk });
  if (result.kind === "discarded") {
    call.print(`Discarded the worktree of ${call.taskId} and its branch.\n`);
    return exitCodes.done;
  }
  const { ahead, files } = result.work;
  call.print(list("Not merged yet:", files));
  const what = `${plural(ahead, "commit")} and ${plural(files.length, "changed file")}`;
  throw new TroupeError("failed", `Nothing was discarded: ${what} would be lost.`, {
    hint: `Merge it with \`troupe tasks merge ${call.taskId}\`, or use --force.`,
  });
}

function stateText(state: WorktreeState): string {
  const { branch, root, ahead, uncommitted, files, conflicts, dirty, diff, isDiffCut } = state;
  const guarded = state.guarded.map(({ path }) => path);
  const about = [
    `${branch} at ${root}`,
    `${plural(ahead, "commit")}, ${plural(uncommitted.length, "uncommitted file")}, ${plural(files.length, "file")} to merge`,
    ...(conflicts.length > 0 ? [`Conflicts with the main tree: ${conflicts.join(", ")}`] : []),
    ...(guarded.length > 0 ? [`Protected names, merged only with --force: ${guarded.join(", ")}`] : []),
    ...(dirty.length > 0 ? [`Changed in the main tree: ${dirty.join(", ")}`] : []),
  ];
  const end = isDiffCut ? `\n… the rest is left out; see it with: git diff in ${root}\n` : "";
  return sanitise(`${about.join("\n")}\n\n${diff}${end}`);
}

function mergedText(files: readonly string[], commit: string | undefined): string {
  if (files.length === 0) return "The main tree has all of it already.\n";
  const where = commit === undefined ? "not committed, for you to look at" : `in commit ${commit.slice(0, 10)}`;
  return list(`Merged ${plural(files.length, "file")}, ${where}:`, files);
}

const MAX_LISTED = 100;

function protectedText(changes: readonly ProtectedChange[]): string {
  const title = "Protected names, which can run code later or decide what others run:";
  return list(
    title,
    changes.map(({ path }) => path),
  );
}

function list(title: string, paths: readonly string[]): string {
  const more = paths.length > MAX_LISTED ? [`  and ${paths.length - MAX_LISTED} more`] : [];
  const shown = paths.slice(0, MAX_LISTED).map((path) => `  ${path}`);
  return sanitise(`${[title, ...shown, ...more].join("\n")}\n`);
}

function conflictsText(conflicts: readonly Conflict[]): string {
  const entries = conflicts
    .slice(0, MAX_LISTED)
    .flatMap(({ path, main, task }) => [
      `  ${path}`,
      `    here: ${main ?? "deleted, or not shown"}`,
      `    task: ${task ?? "deleted, or not shown"}`,
    ]);
  return sanitise(`${["Changed on both sides:", ...entries].join("\n")}\n`);
}
