/** A table of programs and their arguments: which uses only read, and which write elsewhere or run something else. */
import { escapesByOption } from "./escaping-options.ts";
import { gitUse } from "./git-use.ts";
import { hasOption, type ProgramUse } from "./option-scan.ts";

interface Program {
  /** Options that make it write elsewhere or run something else. */
  readonly long?: readonly string[];
  readonly short?: string;
  /** The same, for words that are compared as a whole. */
  readonly words?: readonly string[];
  /** Operands beyond this number are outputs. */
  readonly maxOperands?: number;
  /** Returns false when these arguments do more than read. */
  readonly check?: (args: readonly string[]) => boolean;
  readonly writes?: boolean;
}

const READERS =
  "cat head tail ls wc grep egrep fgrep cut tr paste nl od hexdump strings cmp comm diff stat du df pwd whoami id uname " +
  "which type true false : echo basename dirname realpath readlink md5sum sha1sum sha224sum sha256sum sha384sum " +
  "sha512sum b2sum cksum seq sleep jq column fold fmt expand unexpand tac rev groups users who uptime free nproc arch " +
  "lsblk ps printenv locale getconf tty base64 base32 cd";

/** Change files and run nothing. Programs that could give another program a new name are not included. */
const WRITERS = "mkdir rmdir touch chmod chown chgrp tee truncate rm unlink";

const SPECIAL: Readonly<Record<string, Program>> = {
  find: {
    words: ["-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"],
  },
  rg: { long: ["--pre", "--pre-glob", "--hostname-bin", "--search-zip"], short: "z" },
  sort: { long: ["--output", "--compress-program", "--temporary-directory"], short: "oT" },
  uniq: { maxOperands: 1 },
  xxd: { short: "r", maxOperands: 1 },
  file: { long: ["--compile"], short: "Cm" },
  tree: { short: "oR" },
  printf: { short: "v" },
  test: { words: ["-v", "-R"] },
  "[": { words: ["-v", "-R"] },
  date: { long: ["--set"], short: "s", check: dateOnlyShows },
  hostname: { check: (args) => args.every((word) => /^-[fisIdA]$/.test(word)) },
  man: { long: ["--pager", "--html", "--gxditview", "--config-file", "--preprocessor"], short: "PHCpX" },
  tar: {
    long: [
      "--to-command",
      "--use-compress-program",
      "--checkpoint-action",
      "--info-script",
      "--new-volume-script",
      "--rsh-command",
      "--rmt-command",
    ],
    short: "IF",
    check: (args) => /^-?[a-zA-Z]*t[a-zA-Z]*$/.test(args[0] ?? "") && !/[xcruA]/.test(args[0] ?? ""),
  },
  sed: { long: ["--in-place", "--file"], short: "if", check: sedOnlyShows },
  awk: { check: awkOnlyShows },
  gawk: { check: awkOnlyShows },
  mawk: { check: awkOnlyShows },
};

/** The first word of these programs is a sub-command and belongs to the identifier. */
const WITH_SUBCOMMANDS = new Set(
  (
    "git gh npm pnpm yarn bun deno docker podman kubectl helm cargo rustup go pip pip3 uv poetry conda dotnet composer " +
    "bundle apt apt-get brew dnf yum systemctl terraform svn hg"
  ).split(" "),
);

const PROGRAMS: ReadonlyMap<string, Program> = new Map([
  ...READERS.split(" ").map((name): [string, Program] => [name, {}]),
  ...WRITERS.split(" ").map((name): [string, Program] => [name, { writes: true }]),
  ...Object.entries(SPECIAL),
]);

const UNKNOWN: ProgramUse = { known: false, readOnly: false, escapes: false };

/** Returns the unit of an approval of this command: `git push`, `npm`, `./build.sh`. */
export function identifierOf(words: readonly string[]): string {
  const [program = "", first = ""] = words;
  return WITH_SUBCOMMANDS.has(program) && /^[a-z][a-z0-9:_-]*$/i.test(first) ? `${program} ${first}` : program;
}

export function programUse(words: readonly string[]): ProgramUse {
  const [name = "", ...args] = words;
  if (name === "git") return gitUse(args);
  const program = PROGRAMS.get(name);
  if (program === undefined) return { ...UNKNOWN, escapes: escapesByOption(name, args) };
  const escapes = hasOption(args, program) || args.some((word) => program.words?.includes(word) ?? false);
  if (escapes) return { known: false, readOnly: false, escapes };
  const operands = args.filter((word) => !word.startsWith("-")).length;
  const reads = operands <= (program.maxOperands ?? Number.POSITIVE_INFINITY) && (program.check?.(args) ?? true);
  // The script of a text program could not be followed, so it may do anything.
  const unclear = !reads && (program.check === sedOnlyShows || program.check === awkOnlyShows);
  return { known: !unclear, readOnly: reads && program.writes !== true, escapes: unclear };
}

/** Returns true for programs of this table, and other common ones, that change the files they are given. */
export function changesItsOperands(program: string): boolean {
  return (
    PROGRAMS.get(program)?.writes === true ||
    /^(?:cp|mv|ln|install|dd|rsync|sed|patch|shred|tar|bsdtar|unzip|cpio|curl|wget|mount)$/.test(program)
  );
}

function dateOnlyShows(args: readonly string[]): boolean {
  return args.every(
    (word, index) => /^[-+]/.test(word) || /^(?:-d|-r|--date|--reference)$/.test(args[index - 1] ?? ""),
  );
}

/** Returns true for a script of addresses with p, d, q or =, or one plain substitution. */
function sedOnlyShows(args: readonly string[]): boolean {
  const scripts: string[] = [];
  let operandSeen = false;
  for (let index = 0; index < args.length; index++) {
    const word = args[index] ?? "";
    if (/^-[nErszu]+$/.test(word) || /^--(?:quiet|silent|regexp-extended|null-data|separate|posix)$/.test(word))
      continue;
    if (word === "-e" || word === "--expression") scripts.push(args[++index] ?? "");
    else if (word.startsWith("--expression=")) scripts.push(word.slice("--expression=".length));
    else if (word.startsWith("-") && word !== "-") return false;
    else if (!operandSeen && scripts.length === 0) {
      operandSeen = true;
      scripts.push(word);
    }
  }
  return scripts.every((script) => isPrint(script) || isSubstitution(script));
}

function isPrint(script: string): boolean {
  const one = /^\s*(?:(?:\d+|\$)(?:,(?:\d+|\$|\+\d+))?|\/[^/\n]*\/)?\s*[pdq=]?\s*$/;
  return script.split(";").every((part) => one.test(part));
}

function isSubstitution(script: string): boolean {
  return /^s([/|#,:@%])(?:(?!\1)[^\n])*\1(?:(?!\1)[^\n])*\1[gpIi0-9]*$/.test(script);
}

function awkOnlyShows(args: readonly string[]): boolean {
  const text = args.join("\n");
  if (/system|getline|[|>@]/.test(text)) return false;
  return args.every((word) => !word.startsWith("-") || /^-(?:F.*|v)$/.test(word));
}
