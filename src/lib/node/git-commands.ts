/**
 * The git commands that the runtime itself may run: read-only ones, each with the flags that keep git from starting
 * programs.
 */

interface GitCommand {
  /** Inserted after the name of the command. */
  readonly flags?: readonly string[];
  /** The allowed first arguments of a command that can also change things. */
  readonly only?: readonly string[];
}

const NO_PROGRAMS = ["--no-ext-diff", "--no-textconv", "--no-color"];
const NO_SUBMODULES = ["--ignore-submodules=all"];

export const gitCommands: Readonly<Record<string, GitCommand>> = {
  branch: { only: ["--show-current", "--list"] },
  "cat-file": {},
  "check-ignore": {},
  describe: {},
  diff: { flags: [...NO_PROGRAMS, ...NO_SUBMODULES, "--submodule=short"] },
  "diff-tree": { flags: [...NO_PROGRAMS, ...NO_SUBMODULES, "--submodule=short"] },
  "for-each-ref": {},
  log: { flags: [...NO_PROGRAMS, ...NO_SUBMODULES, "--submodule=short", "--no-show-signature"] },
  "ls-files": {},
  "ls-tree": {},
  "merge-base": {},
  remote: { only: ["-v", "get-url"] },
  "rev-list": {},
  "rev-parse": {},
  show: { flags: [...NO_PROGRAMS, ...NO_SUBMODULES, "--submodule=short", "--no-show-signature"] },
  stash: { only: ["list"] },
  status: { flags: NO_SUBMODULES },
  tag: { only: ["--list"] },
  worktree: { only: ["list"] },
};

/** Flags that start a program, write a file, read outside of the repository or enter another one. */
const REFUSED: readonly string[] = [
  ...["--output", "--ext-diff", "--textconv", "--filters", "--no-index", "--exec", "--upload-pack", "--verbose"],
  ...["--open-files-in-pager", "--recurse-submodules", "--submodule", "--ignore-submodules", "--show-signature"],
  ...["--edit", "--delete", "--move", "--copy", "--force", "--dirty", "--broken", "--resolve-git-dir"],
];
const ALSO_FLAGS = new Set(["--text", "--no"]);

/** Returns the complete arguments for git, or an error sentence. */
export function gitArguments(given: readonly string[]): { ok: true; args: string[] } | { ok: false; error: string } {
  const [name = "", ...rest] = given;
  const command = Object.hasOwn(gitCommands, name) ? gitCommands[name] : undefined;
  if (!command) return { ok: false, error: `git ${name} is not among the commands that only read` };
  if (command.only && !command.only.includes(rest[0] ?? "")) {
    return { ok: false, error: `git ${name} is limited to: ${command.only.join(", ")}` };
  }
  const end = rest.indexOf("--");
  const flags = (end < 0 ? rest : rest.slice(0, end)).filter((word) => word.startsWith("-"));
  const refused = flags.find((flag) => !command.only?.includes(flag) && isRefused(flag, command));
  if (refused !== undefined) return { ok: false, error: `git ${name} with ${refused} could do more than read` };
  if (given.some((word) => word.includes("\0"))) return { ok: false, error: "an argument contains a null character" };
  const own = command.flags ?? [];
  return { ok: true, args: ["--no-pager", "--no-optional-locks", name, ...own, ...rest] };
}

/** Git accepts a prefix of a long flag. */
function isRefused(flag: string, command: GitCommand): boolean {
  const [name = ""] = flag.split("=");
  if (!name.startsWith("--")) return /^-(?:O|v)/.test(name) || (command.only !== undefined && name !== "-z");
  return !ALSO_FLAGS.has(name) && name.length > 3 && REFUSED.some((refused) => refused.startsWith(name));
}
