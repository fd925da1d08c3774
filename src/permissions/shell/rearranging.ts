/**
 * Commands that change where paths lead. Paths of later commands in the chain cannot be checked before these have run.
 */
import { baseName } from "../case-fold.ts";
import type { NamedPath } from "../shell-paths.ts";
import type { ShellAnalysis, ShellCommand } from "./analyse.ts";
import { hasOption } from "./option-scan.ts";
import { changesItsOperands } from "./programs.ts";

const ALWAYS = new Set("ln mv tar bsdtar unzip cpio rsync mount umount patch 7z busybox symlink link".split(" "));
const GIT = new Set(
  "checkout switch restore reset merge pull rebase stash cherry-pick revert clone am apply".split(" "),
);

/**
 * Returns true when something is written after a command that may create a link, move a folder or unpack an archive.
 */
export function rearranges({ commands, redirections }: ShellAnalysis, paths: readonly NamedPath[]): boolean {
  const first = commands.findIndex(makesLinks);
  if (first < 0) return false;
  // The order of redirections and commands is not known here, so any redirection counts.
  const isWritten = redirections.some(({ write, target }) => write && paths.some(({ text }) => text === target));
  return (
    isWritten || commands.slice(first + 1).some(({ words, readOnly }) => !readOnly && changesItsOperands(nameOf(words)))
  );
}

function makesLinks({ words }: ShellCommand): boolean {
  const name = nameOf(words);
  if (name === "cp")
    return hasOption(words, {
      long: ["--archive", "--recursive", "--no-dereference", "--symbolic-link"],
      short: "adPRrs",
    });
  if (name === "git") return words.some((word) => GIT.has(word));
  return ALWAYS.has(name);
}

const nameOf = ([program = ""]: readonly string[]): string => baseName(program);
