/**
 * Determines what a command may reach beyond the paths and addresses in its words. Only known programs are trusted to
 * use nothing else. A script, an interpreter, a pattern or a recursive search may read and change anything.
 */
import { baseName } from "../case-fold.ts";
import type { ShellAnalysis, ShellCommand } from "./analyse.ts";
import { hasOption } from "./option-scan.ts";

/** Show no file content, whatever their operands. */
const NO_CONTENT = new Set(
  (
    "echo printf pwd true false : test [ whoami id uname which type basename dirname realpath readlink ls stat du df sleep " +
    "seq date hostname mkdir rmdir touch chmod chown chgrp rm unlink truncate tee cd pushd popd find tree tty nproc arch " +
    "uptime free ps printenv locale getconf who users groups lsblk command timeout nice nohup stdbuf"
  ).split(" "),
);
/** Show the content of the files they are given, and of no others. */
const ONLY_NAMED = new Set(
  (
    "cat head tail wc grep egrep fgrep cut tr paste nl od hexdump strings cmp comm sort uniq md5sum sha1sum sha224sum " +
    "sha256sum sha384sum sha512sum b2sum cksum jq column fold fmt expand unexpand tac rev base64 base32 file xxd sed awk " +
    "gawk mawk"
  ).split(" "),
);
/** Git sub-commands that show and write no file content. */
const GIT_WITHOUT_CONTENT = new Set(
  (
    "status add commit push fetch branch tag remote rev-parse rev-list ls-files ls-tree merge-base describe shortlog log " +
    "init version name-rev for-each-ref show-ref count-objects check-ignore check-attr reflog worktree config"
  ).split(" "),
);
const NAMED_WRITERS = new Set("mkdir rmdir touch chmod chown chgrp tee truncate rm unlink".split(" "));
/** Options that read file names from a file, or search folders recursively. */
const UNNAMED_READS = {
  long: ["--files0-from", "--recursive", "--dereference-recursive", "--directories"],
  short: "rRd",
};
const GIT_CONTENT = { long: ["--patch", "--unified", "--full-diff", "--cc", "--patch-with-stat"], short: "puULGScv" };

/** Returns true when it may read files that its words do not name. */
export function readsUnnamed(analysis: ShellAnalysis): boolean {
  return !isFollowed(analysis) || analysis.commands.some((command) => !staysWithNames(command));
}

/** Returns true when it shows the content of any file. */
export function showsContent(analysis: ShellAnalysis): boolean {
  return readsUnnamed(analysis) || analysis.commands.some(({ words }) => ONLY_NAMED.has(baseName(words[0] ?? "")));
}

/** Returns true when it may change files that its words do not name. */
export function writesUnnamed(analysis: ShellAnalysis): boolean {
  return !isFollowed(analysis) || analysis.commands.some((command) => !writesOnlyNamed(command));
}

/** Returns true when one of its programs is known to change the files it is given. */
export function writesNamed({ commands }: ShellAnalysis): boolean {
  return commands.some(({ words, readOnly }) => !readOnly && NAMED_WRITERS.has(baseName(words[0] ?? "")));
}

/** Returns true when it may connect to addresses that its words do not name. */
export function connectsUnnamed(analysis: ShellAnalysis): boolean {
  const stays = ({ words, readOnly, transparent }: ShellCommand): boolean =>
    readOnly || transparent || NAMED_WRITERS.has(baseName(words[0] ?? ""));
  return !isFollowed(analysis) || !analysis.commands.every(stays);
}

/** Returns true when it may show content stored by git: git has other names for other versions of a file. */
export function mayShowHistory(analysis: ShellAnalysis): boolean {
  if (analysis.hidden || analysis.strays.has("git")) return true;
  return analysis.commands.some(({ words }) => baseName(words[0] ?? "") === "git" && !isWithoutContent(words));
}

function isFollowed(analysis: ShellAnalysis): boolean {
  return analysis.plain && !analysis.hidden && analysis.commands.every(({ certain }) => certain);
}

function staysWithNames({ words, escapes, transparent }: ShellCommand): boolean {
  const [program = "", ...args] = words;
  if (escapes || (program.includes("/") && !/^\/(?:usr\/)?bin\//.test(program))) return false;
  const name = baseName(program);
  if (transparent || NO_CONTENT.has(name)) return true;
  if (name === "git") return isWithoutContent(words);
  return ONLY_NAMED.has(name) && !hasOption(args, UNNAMED_READS);
}

function isWithoutContent([, ...args]: readonly string[]): boolean {
  const start = args.findIndex((word) => !word.startsWith("-"));
  const command = args[start] ?? "version";
  return GIT_WITHOUT_CONTENT.has(command) && !hasOption(args.slice(start + 1), GIT_CONTENT);
}

function writesOnlyNamed({ words, readOnly, escapes, transparent }: ShellCommand): boolean {
  if (readOnly || transparent) return true;
  const [program = "", ...args] = words;
  return NAMED_WRITERS.has(program) && !escapes && !hasOption(args, { long: ["--recursive"], short: "rR" });
}
