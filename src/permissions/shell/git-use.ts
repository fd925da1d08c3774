/** Determines what a git command can do beyond the name of its sub-command. */
import { hasOption, type ProgramUse } from "./option-scan.ts";

const READS = new Set(
  (
    "status log diff show rev-parse ls-files ls-tree blame describe shortlog cat-file rev-list name-rev merge-base " +
    "for-each-ref diff-tree diff-index diff-files grep version whatchanged count-objects check-ignore check-attr show-ref"
  ).split(" "),
);

/** Sub-commands that only read when used with nothing but these words. */
const READS_WITH: Readonly<Record<string, RegExp>> = {
  branch: /^(?:-a|-r|-v|-vv|--all|--remotes|--list|--show-current|--verbose)$/,
  tag: /^(?:-l|--list|-n\d*)$/,
  remote: /^(?:-v|--verbose)$/,
  stash: /^list$/,
  config: /^(?:--get|--get-all|--list|-l|--show-origin|--global|--local|get|list|[a-z][a-z0-9.-]*\.[a-z][a-z0-9.-]*)$/i,
  reflog: /^show$/,
  worktree: /^list$/,
};

/** Sub-commands that write but run none of their arguments. */
const WRITES = new Set(
  (
    "add commit push pull fetch checkout switch restore merge reset rm mv stash branch tag remote cherry-pick revert " +
    "init clone clean worktree rebase apply am format-patch reflog"
  ).split(" "),
);

const HARMLESS_GLOBAL_OPTIONS = new Set(["--no-pager", "-P", "--literal-pathspecs", "--no-optional-locks"]);

/** Options that name a program to run, a file to write, or a configuration that does either. */
const ESCAPES = [
  "--output",
  "--ext-diff",
  "--textconv",
  "--filters",
  "--open-files-in-pager",
  "--upload-pack",
  "--receive-pack",
  "--exec",
  "--exec-path",
  "--config",
  "--config-env",
  "--template",
  "--git-dir",
  "--work-tree",
  "--edit-description",
  "--edit",
  "--extcmd",
  "--output-directory",
  "--separate-git-dir",
];
const SHORT_ESCAPES: Readonly<Record<string, string>> = {
  clone: "uc",
  fetch: "u",
  "ls-remote": "u",
  rebase: "xi",
  commit: "e",
  difftool: "x",
  archive: "o",
  "format-patch": "o",
};
/** Words that make the rest a command. */
const RUNNING: Readonly<Record<string, string>> = { bisect: "run", submodule: "foreach", rebase: "--interactive" };

export function gitUse(args: readonly string[]): ProgramUse {
  let index = 0;
  while (HARMLESS_GLOBAL_OPTIONS.has(args[index] ?? "")) index++;
  const command = args[index];
  if (command === undefined) return { known: true, readOnly: true, escapes: false };
  const rest = args.slice(index + 1);
  if (command === "--version" || command === "--help")
    return { known: true, readOnly: command !== "--help", escapes: false };
  const escapes =
    command.startsWith("-") ||
    hasOption(rest, { long: ESCAPES, short: `O${SHORT_ESCAPES[command] ?? ""}` }) ||
    rest.some((word) => /^(?:ext|fd)::/.test(word) || word === RUNNING[command]) ||
    command === "filter-branch" ||
    (command === "config" && !onlyReads(command, rest));
  const known = READS.has(command) || WRITES.has(command) || command in READS_WITH;
  return { known: known && !escapes, readOnly: !escapes && (READS.has(command) || onlyReads(command, rest)), escapes };
}

function onlyReads(command: string, rest: readonly string[]): boolean {
  const words = READS_WITH[command];
  if (words === undefined || !rest.every((word) => words.test(word))) return false;
  if (command === "stash" || command === "worktree") return rest.length === 1;
  // `git config name value` writes; `git config name` and `git config --get name` read.
  return command !== "config" || rest.filter((word) => word.includes(".")).length <= 1;
}
