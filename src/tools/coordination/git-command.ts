/**
 * Accepts shell commands that only read a repository. A command may use only characters that mean the same in every
 * shell; everything else is refused. An accepted command is rebuilt with its words quoted where needed.
 */
export type GitCommand =
  | { readonly ok: true; readonly command: string }
  | { readonly ok: false; readonly reason: string };

/** Allowed sub-commands by tool group. */
const SUBCOMMANDS: Readonly<Record<string, readonly string[]>> = {
  diff: ["status", "diff", "show"],
  git: [
    "status",
    "diff",
    "show",
    "log",
    "blame",
    "branch",
    "tag",
    "remote",
    "ls-files",
    "ls-tree",
    "rev-parse",
    "describe",
    "merge-base",
  ],
};

export function gitSubcommands(groups: readonly string[]): readonly string[] {
  return [...new Set(groups.flatMap((group) => (Object.hasOwn(SUBCOMMANDS, group) ? (SUBCOMMANDS[group] ?? []) : [])))];
}

export function readingGitCommand(command: string, allowed: readonly string[]): GitCommand {
  const words = wordsOf(command);
  if (words === undefined) return refusal("use one plain git command: no pipes, redirections, variables or lists");
  const [program, ...rest] = words;
  if (program !== "git") return refusal("only git commands can be run");
  const [subcommand = "", ...given] = rest[0] === "--no-pager" ? rest.slice(1) : rest;
  if (!allowed.includes(subcommand)) return refusal(`only these can be run: git ${allowed.join(", git ")}`);
  const unsafe = given.find(isUnsafe);
  if (unsafe !== undefined) return refusal(`${JSON.stringify(unsafe)} is not allowed here`);
  if (LISTING[subcommand]?.(given) === false) return refusal(`git ${subcommand} can only list here`);
  const hardened = NEEDS_HARDENING.has(subcommand) ? ["--no-ext-diff", "--no-textconv"] : [];
  return { ok: true, command: ["git", subcommand, ...hardened, ...given].map(quotedWord).join(" ") };
}

function refusal(reason: string): GitCommand {
  return { ok: false, reason };
}

const WORD = /^(?:[A-Za-z0-9_./:@^~=,+%-]+|'[^'\n\r]*'|"[^"$`\\!\n\r]*")+/;
const MAX_COMMAND_CHARACTERS = 2000;

function wordsOf(command: string): string[] | undefined {
  if (command.length > MAX_COMMAND_CHARACTERS) return undefined;
  const words: string[] = [];
  let rest = command.trim();
  while (rest !== "") {
    const word = WORD.exec(rest)?.[0];
    if (word === undefined || word.startsWith("~")) return undefined;
    rest = rest.slice(word.length);
    if (rest !== "" && !/^[ \t]/.test(rest)) return undefined;
    rest = rest.replace(/^[ \t]+/, "");
    words.push(word.replace(/'([^']*)'|"([^"]*)"/g, (_, single?: string, double?: string) => single ?? double ?? ""));
  }
  return words;
}

/**
 * Options that write, run programs, wait for input or read beyond the repository. Git accepts any unambiguous prefix.
 */
const UNSAFE_OPTIONS = [
  ...["output", "ext-diff", "textconv", "no-index", "filters", "exec-path", "help", "paginate", "show-signature"],
  ...["contents", "ignore-revs-file", "exclude-from", "exclude-per-directory", "parseopt", "sq-quote", "stdin"],
  ...[
    "git-dir",
    "work-tree",
    "resolve-git-dir",
    "recurse-submodules",
    "edit-description",
    "set-upstream-to",
    "orderfile",
  ],
];

function isUnsafe(word: string): boolean {
  const name = /^--([^=]+)/.exec(word)?.[1];
  if (name !== undefined && UNSAFE_OPTIONS.some((unsafe) => unsafe.startsWith(name))) return true;
  // Files that order or exclude, attached paths, formats that run a program to check signatures, other folders.
  return /^-(?:[OX]|[A-Za-z]\/)|%G|^\/|^--[^=]*=\/|(?:^|[/:=])\.\.(?:\/|$)/.test(word);
}

const LIST_FLAGS =
  /^(?:-[alrv]{1,4}|--(?:list|all|remotes|show-current|merged|no-merged|contains|no-contains|points-at|sort=.*|format=.*|column|no-column)|-n\d*)$/;
const FILTERS = /^(?:-[arv]*l[arv]*|--(?:list|merged|no-merged|contains|no-contains|points-at))$/;

/** Commands that change something unless they are used to list. */
const LISTING: Readonly<Record<string, (words: readonly string[]) => boolean>> = {
  branch: onlyLists,
  tag: onlyLists,
  remote: (words) => words.every((word) => word === "-v" || word === "--verbose"),
};

function onlyLists(words: readonly string[]): boolean {
  const options = words.filter((word) => word.startsWith("-"));
  if (!options.every((word) => LIST_FLAGS.test(word))) return false;
  return options.length === words.length || options.some((word) => FILTERS.test(word));
}

const NEEDS_HARDENING: ReadonlySet<string> = new Set(["diff", "show", "log", "blame"]);

function quotedWord(word: string): string {
  return /^[A-Za-z0-9_./:@^=,+%-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
