/**
 * Commands that need no rule in the sandbox: they only show files in the allowed folders. The list is shorter than that
 * of read-only programs. Excluded are programs whose arguments can name further files (`awk`, `jq`) and programs that
 * show more than files (`ps`, `printenv`, `git config`).
 */
import type { ShellAnalysis, ShellCommand } from "./analyse.ts";
import { hasOption } from "./option-scan.ts";

const PROGRAMS = new Set(
  (
    "ls cat head tail wc grep egrep fgrep rg find tree stat du df pwd cd echo printf true false : test [ basename dirname " +
    "realpath readlink file which type diff cmp comm cut tr nl od hexdump strings sort uniq tac rev column fold paste sed " +
    "md5sum sha1sum sha256sum sha512sum cksum date uname whoami id seq"
  ).split(" "),
);

const GIT = new Set(
  (
    "status diff log show blame shortlog describe grep ls-files ls-tree cat-file rev-parse rev-list merge-base name-rev " +
    "show-ref for-each-ref diff-tree diff-index diff-files branch tag remote stash reflog worktree version count-objects"
  ).split(" "),
);

/** Options that follow links out of the allowed folders, or read file names from a file. */
const WANDERING: Readonly<Record<string, { readonly long?: readonly string[]; readonly short?: string }>> = {
  grep: { long: ["--dereference-recursive"], short: "R" },
  egrep: { long: ["--dereference-recursive"], short: "R" },
  fgrep: { long: ["--dereference-recursive"], short: "R" },
  rg: { long: ["--follow", "--ignore-file"], short: "L" },
  find: { short: "L" },
  tree: { long: ["--fromfile", "--fromtabfile"], short: "l" },
  du: { long: ["--files0-from", "--dereference"], short: "L" },
  diff: { long: ["--recursive", "--from-file", "--to-file"], short: "r" },
  wc: { long: ["--files0-from"] },
  sort: { long: ["--files0-from"] },
  file: { long: ["--files-from"], short: "f" },
  date: { long: ["--file"], short: "f" },
  md5sum: { long: ["--check"], short: "c" },
  sha1sum: { long: ["--check"], short: "c" },
  sha256sum: { long: ["--check"], short: "c" },
  sha512sum: { long: ["--check"], short: "c" },
  cksum: { long: ["--check"], short: "c" },
};
const WANDERING_WORDS = new Set(["-follow", "-files0-from", "--no-index"]);

/** Returns true when every command is one of these and its words describe it completely. */
export function onlyShowsFiles({ plain, commands, hidden }: ShellAnalysis): boolean {
  return plain && !hidden && commands.length > 0 && commands.every(shows);
}

/** Returns true when one of its commands is git. */
export const usesGit = ({ commands }: Pick<ShellAnalysis, "commands">): boolean =>
  commands.some(({ words }) => words[0] === "git");

function shows({ words, readOnly, certain, escapes }: ShellCommand): boolean {
  const [program = "", ...args] = words;
  if (!readOnly || !certain || escapes) return false;
  if (args.some((word) => WANDERING_WORDS.has(word))) return false;
  if (program === "git") return GIT.has(args.find((word) => !word.startsWith("-")) ?? "version");
  return PROGRAMS.has(program) && !hasOption(args, WANDERING[program] ?? {});
}
