/**
 * Determines what a command may delete or overwrite, by its text alone. The default is anything. Only programs listed
 * here, and plain commands with their targets in their words, are less than that.
 */

import { baseName, caseFold } from "../case-fold.ts";
import { isSink } from "../devices.ts";
import type { ShellAnalysis, ShellCommand } from "./analyse.ts";

/** `whole`: the path and everything below it. Otherwise only a file or a link of that name is in danger. */
export interface EndangeredPath {
  readonly path: string;
  readonly whole: boolean;
}

export type DestructiveUse =
  | { readonly kind: "none" }
  /** Only these paths, as written. */
  | { readonly kind: "paths"; readonly paths: readonly EndangeredPath[] }
  /** Anything it can reach, including these paths. */
  | { readonly kind: "anything"; readonly paths: readonly EndangeredPath[] };

/** Delete and overwrite nothing, whatever their arguments. */
const DELETES_NOTHING = new Set(
  (
    "cat head tail ls wc grep egrep fgrep cut tr paste nl od hexdump strings cmp comm diff stat du df pwd whoami id " +
    "uname which type true false : echo printf test [ [[ basename dirname realpath readlink md5sum sha1sum sha256sum " +
    "sha512sum cksum seq sleep jq column fold fmt tac rev groups who uptime free nproc arch lsblk ps printenv locale " +
    "getconf tty base64 cd pushd popd mkdir touch chmod chown chgrp export set unset local declare read wait umask " +
    "ulimit shift return exit break continue jobs kill pgrep lsof"
  ).split(" "),
);
/** Subcommands of git that delete and overwrite no file. */
const SAFE_GIT_COMMANDS = new Set(
  "add commit fetch push tag init config show-ref notes remote blame log diff show".split(" "),
);
/** Delete or overwrite their operands. */
const OPERANDS = new Set("rm rmdir unlink truncate shred tee sed".split(" "));
/** Move or copy all operands but the last to the last. */
const MOVERS = new Set("mv cp ln install".split(" "));
const RECURSIVE = /^-[A-Za-z]*[rRa]|^--(?:recursive|archive)$/;

export function destructiveUse(analysis: ShellAnalysis): DestructiveUse {
  const written = analysis.redirections.filter(({ target, write }) => write && !isSink(target));
  const effects = analysis.commands.map(effectOf);
  const paths = [
    ...written.map(({ target }): EndangeredPath => ({ path: target, whole: false })),
    ...effects.flatMap((effect) => (effect === "anything" ? [] : effect)),
  ];
  const unknown =
    analysis.hidden ||
    analysis.exceeded !== undefined ||
    analysis.dangerousVariables.length > 0 ||
    effects.includes("anything");
  if (unknown) return { kind: "anything", paths };
  if (paths.length === 0) return { kind: "none" };
  // A word that is only known at run time, or a change of folder, makes every path uncertain.
  return { kind: analysis.plain && analysis.directories.length === 0 ? "paths" : "anything", paths };
}

function effectOf(command: ShellCommand): "anything" | readonly EndangeredPath[] {
  const [program = "", ...args] = command.words;
  const name = caseFold(baseName(program));
  // A transparent wrapper's inner command is in the list as well.
  if (command.readOnly || command.transparent) return [];
  // A program outside the system folders can have any name.
  if (program.includes("/") && !/^\/(?:usr\/)?bin\//.test(program)) return "anything";
  if (DELETES_NOTHING.has(name)) return [];
  if (name === "git") return isSafeGit(args) ? [] : "anything";
  if (!command.certain) return "anything";
  const operands = operandsOf(args);
  if (OPERANDS.has(name)) return operands.map((path) => ({ path, whole: true }));
  if (MOVERS.has(name)) return pathsMoved(name, args, operands);
  return "anything";
}

function isSafeGit([command = "", ...args]: readonly string[]): boolean {
  if (!SAFE_GIT_COMMANDS.has(command)) return false;
  return !args.some((word) =>
    /^(?:-[dDfM]|--delete|--force|--mirror|--prune|--output.*|remove|rename|prune)$/.test(word),
  );
}

function operandsOf(args: readonly string[]): string[] {
  const end = args.indexOf("--");
  const before = (end < 0 ? args : args.slice(0, end)).filter((word) => !word.startsWith("-"));
  return [...before, ...(end < 0 ? [] : args.slice(end + 1))];
}

function pathsMoved(name: string, args: readonly string[], operands: readonly string[]): "anything" | EndangeredPath[] {
  if (args.some((word) => /^-[A-Za-z]*[tS]|^--(?:target-directory|suffix)/.test(word))) return "anything";
  const target = operands.at(-1);
  if (target === undefined) return [];
  const sources = operands.slice(0, -1);
  const whole = name === "mv" || args.some((word) => RECURSIVE.test(word));
  return [
    { path: target, whole: false },
    ...sources.map((source) => ({ path: `${target.replace(/\/+$/, "")}/${baseName(source)}`, whole })),
    ...(name === "mv" ? sources.map((path) => ({ path, whole: true })) : []),
  ];
}
