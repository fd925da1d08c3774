/** Shell commands from a seed: ordinary ones, dressed up in everything that has fooled a permission check before. */
export type Random = () => number;

export function random(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function generateCommand(next: Random): string {
  const chance = next();
  if (chance < 0.3) return soup(next);
  if (chance < 0.55) return tidy(next);
  return chain(next, 3);
}

function pick<T>(next: Random, items: readonly T[]): T {
  const item = items[Math.floor(next() * items.length)];
  if (item === undefined) throw new Error("nothing to pick from");
  return item;
}

const PROGRAMS = [
  "git",
  "grep",
  "npm",
  "ls",
  "cat",
  "curl",
  "rm",
  "make",
  "node",
  "foo",
  "tail",
  "wget",
  "head",
  "sort",
];
const ARGUMENTS = [
  "status",
  "log",
  "push",
  "test",
  "-n",
  "README",
  "a.b",
  "x=y",
  "--flag=1",
  "curl",
  "rm",
  "é",
  "-C",
  "if",
];
const QUOTED = [
  "'a b'",
  '"a b"',
  "'$(curl)'",
  '"; curl"',
  "''",
  '""',
  "'#'",
  '"it\'s"',
  "'a\nb'",
  "'*'",
  '"{a,b}"',
  "'!'",
];
const SEPARATORS = [" ; ", ";", " && ", "&&", " | ", "|", "\n", " & ", " || ", " |& ", " ;\n"];
const SPACES = [" ", " ", " ", "  ", "     ", "\t", "\u00a0", "\u200b ", " \\\n", "\r", "\u3000"];

const ORDINARY = ["git status", "git log -n 3", "npm test", "grep -n me README", "echo done", "grep 'a b' README"];

function simple(next: Random): string {
  if (next() < 0.2) return pick(next, ORDINARY);
  const words = [pick(next, PROGRAMS)];
  while (next() < 0.6) words.push(pick(next, next() < 0.7 ? ARGUMENTS : QUOTED));
  return words.join(" ");
}

/** Mostly plain: quotes, chains, redirections and wrappers, nothing that expands. */
function tidy(next: Random): string {
  let text = tidyPart(next);
  while (next() < 0.4) text += `${pick(next, SEPARATORS)}${tidyPart(next)}`;
  return text;
}

function tidyPart(next: Random): string {
  const redirection = pick(next, [
    " > out.txt",
    " 2>&1",
    " < README",
    " >> out.txt 2>&1",
    " 2>/dev/null",
    " # curl",
    "",
  ]);
  const inner = next() < 0.15 ? `sh -c '${simple(next).replaceAll("'", "")}'` : simple(next);
  const wrapper = next() < 0.3 ? pick(next, WRAPPERS) : "";
  return `${wrapper}${inner}${next() < 0.3 ? redirection : ""}`;
}

const WRAPPERS = [
  "env ",
  "env A=1 ",
  "env -u A ",
  "timeout 5 ",
  "timeout -k 1 5 ",
  "timeout --signal=TERM 5 ",
  "nice ",
  "nice -n 5 ",
  "nice -n5 ",
  "nohup ",
  "stdbuf -oL ",
  "setsid -w ",
  "command ",
  "xargs ",
  "xargs -n 1 ",
  "nice env timeout 5 ",
];

function chain(next: Random, depth: number): string {
  let text = part(next, depth);
  while (next() < 0.35) text += `${pick(next, SEPARATORS)}${part(next, depth)}`;
  return text;
}

/** One command in one of many disguises. */
function part(next: Random, depth: number): string {
  if (depth === 0) return disguised(next);
  const inner = (): string => chain(next, depth - 1);
  const forms: (() => string)[] = [
    () => disguised(next),
    () => simple(next),
    () => `${pick(next, WRAPPERS)}${disguised(next)}`,
    () => `echo $(${inner()})`,
    () => `echo \`${simple(next)}\``,
    () => `echo "x $(${simple(next)}) y"`,
    () => `cat <(${simple(next)})`,
    () => `cat <<EOF\n$(${simple(next)})\nEOF\n`,
    () => `cat <<'EOF'\n$(curl)\nEOF\n`,
    () => `bash <<'EOF'\n${simple(next)}\nEOF\n`,
    () => `cat <<< "$(${simple(next)})"`,
    () => `bash -c ${quote(inner())}`,
    () => `sh -c ${quote(simple(next))}`,
    () => `bash --norc -c ${quote(simple(next))} name arg`,
    () => `eval ${quote(inner())}`,
    () => `eval ${simple(next)}`,
    () => `( ${inner()} )`,
    () => `{ ${inner()}\n}`,
    () => `if true; then ${inner()}\nfi`,
    () => `for i in a b; do ${inner()}\ndone`,
    () => `! ${simple(next)}`,
    () => `time ${simple(next)}`,
    () => `f() { ${inner()}\n}; f`,
    () => `A=1 B=${pick(next, PROGRAMS)} ${simple(next)}`,
    () => `find . -maxdepth 0 -exec ${pick(next, PROGRAMS)} {} \\;`,
    () => `find . -maxdepth 0 -exec sh -c ${quote(simple(next))} {} +`,
    () => `echo ${pick(next, PROGRAMS)} | xargs -I{} {} x`,
    () => `echo ${pick(next, PROGRAMS)} | xargs env`,
    () => `echo ${quote(simple(next))} | bash`,
    () => `c=${pick(next, PROGRAMS)}; $c x`,
    () => `c=cu; d=rl; \${c}\${d} x`,
    () => `\${X:-${pick(next, PROGRAMS)}} x`,
    () => `trap ${quote(simple(next))} EXIT`,
    () => `coproc ${simple(next)}`,
    () => `exec ${simple(next)}`,
    () => `x='a[$(${pick(next, PROGRAMS)})]'; (( x ))`,
    () => `[[ -v 'a[$(${pick(next, PROGRAMS)})]' ]]`,
    () => `test -v 'a[$(${pick(next, PROGRAMS)})]'`,
    () => `v='$(${pick(next, PROGRAMS)})'; echo "\${v@P}"`,
    () => `echo ${quote(simple(next))} > s.sh; bash s.sh`,
    () => `case a in a) ${simple(next)};; esac`,
    () => `{${pick(next, PROGRAMS)},x}`,
    () => `set -- ${pick(next, PROGRAMS)} x; "$@"`,
    () => `shopt -s expand_aliases\nalias z=${pick(next, PROGRAMS)}\nz x`,
    () => `mapfile -c 1 -C ${pick(next, PROGRAMS)} < README`,
    () => `PS4='$(${pick(next, PROGRAMS)})'; set -x; :`,
    () => `read c <<< ${pick(next, PROGRAMS)}; $c`,
    () => `printf -v c %s ${pick(next, PROGRAMS)}; $c`,
    () => `command -v ${pick(next, PROGRAMS)}`,
    () => `$(type -P ${pick(next, PROGRAMS)}) x`,
    () => `while ${simple(next)}; do break; done`,
    () => `env -S ${quote(simple(next))}`,
    () => `${simple(next)} ${pick(next, ["> out", "2>&1", "< README", ">& out", "&> out", "<> README"])}`,
    () => `true ${"&& true ".repeat(Math.floor(next() * 60))}&& ${simple(next)}`,
  ];
  return pick(next, forms)();
}

/** The program's name in a spelling that bash still understands. */
function disguised(next: Random): string {
  const [program = "", ...rest] = simple(next).split(" ");
  const cut = 1 + Math.floor(next() * (program.length - 1));
  const spelled = pick(next, [
    program,
    `${program.slice(0, cut)}''${program.slice(cut)}`,
    `"${program.slice(0, cut)}"${program.slice(cut)}`,
    `'${program}'`,
    `${program.slice(0, cut)}\\${program.slice(cut)}`,
    `\\${program}`,
    `$'${program}'`,
    `$'\\x${(program.codePointAt(0) ?? 0).toString(16)}'${program.slice(1)}`,
    `../programs/${program}`,
    `../programs/${program.slice(0, cut)}?${program.slice(cut + 1)}`,
    `${program.slice(0, cut)}\${EMPTY}${program.slice(cut)}`,
    `${program.slice(0, cut)}$@${program.slice(cut)}`,
    `${program.slice(0, cut)}\\\n${program.slice(cut)}`,
    `$"${program}"`,
  ]);
  return [spelled, ...rest].join(pick(next, SPACES));
}

const PIECES = [
  ...[
    "git",
    "curl",
    "foo",
    "ls",
    "rm",
    "a",
    "-n",
    "x=1",
    "if",
    "then",
    "time",
    "!",
    "{",
    "}",
    "(",
    ")",
    "[[",
    "]]",
    "in",
  ],
  ...[
    "'",
    '"',
    "'a'",
    '"b c"',
    "\\",
    "\\\\",
    "$",
    "$x",
    `\${x}`,
    "`",
    "$(",
    "#",
    "#c",
    "~",
    "*",
    "?",
    "[a]",
    "{a,b}",
    "=",
    "é",
  ],
  ...[
    ";",
    "&",
    "&&",
    "|",
    "||",
    "|&",
    ">",
    ">>",
    "<",
    "<<",
    "2>",
    "&>",
    ">&",
    "\n",
    "\t",
    "\r",
    " ",
    " ",
    " ",
    " ",
    " ",
    " ",
  ],
  ...[
    "do",
    "done",
    "fi",
    "coproc",
    "function",
    "select",
    "\u00a0",
    "\u2028",
    "\u200b",
    ";;",
    "((",
    "))",
    "%",
    "@",
    "^",
    ":",
    ",",
  ],
];

/** Pieces in any order: where a parser and bash disagree, they disagree here. */
function soup(next: Random): string {
  let text = next() < 0.8 ? pick(next, PROGRAMS) : "";
  const length = 1 + Math.floor(next() * 9);
  for (let count = 0; count < length; count++) text += pick(next, PIECES) + (next() < 0.4 ? " " : "");
  return text;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
