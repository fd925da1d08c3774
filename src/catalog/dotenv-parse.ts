/** Parses `NAME=value` lines with quotes. Nothing is expanded or run. */

export interface DotenvText {
  /** The last value of a name wins. */
  readonly values: ReadonlyMap<string, { readonly value: string; readonly line: number }>;
  readonly problems: readonly { readonly line: number; readonly message: string }[];
}

const MAX_NAMES = 500;
const MAX_NAME_LENGTH = 128;
const MAX_VALUE_LENGTH = 32_768;

/** Names never set from a file, in any case: they decide which code runs, where it connects, or what troupe does. */
const REFUSED_NAMES = new Set(
  `PATH HOME SHELL USER LOGNAME TMPDIR TMP TEMP PWD OLDPWD IFS ENV BASH_ENV SHELLOPTS BASHOPTS CDPATH FPATH GLOBIGNORE
  PS1 PS2 PS3 PS4 PROMPT_COMMAND ZDOTDIR EDITOR VISUAL PAGER MANPAGER LESSOPEN LESSCLOSE BROWSER VIMINIT EXINIT
  CLASSPATH JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS JAVA_HOME MAVEN_OPTS GRADLE_OPTS SBT_OPTS GOFLAGS GOROOT
  GOPROXY CC CXX LD AR MAKEFLAGS MFLAGS MAKEFILES PHPRC PHP_INI_SCAN_DIR LUA_INIT AWKPATH AWKLIBPATH TCLLIBPATH
  R_PROFILE R_PROFILE_USER R_ENVIRON GCONV_PATH LOCPATH NLSPATH HOSTALIASES LOCALDOMAIN RES_OPTIONS RESOLV_HOST_CONF
  MALLOC_TRACE TERMINFO TERMINFO_DIRS TERMCAP KUBECONFIG DOCKER_HOST DOCKER_CONFIG CURL_HOME CURL_CA_BUNDLE WGETRC
  REQUESTS_CA_BUNDLE SSLKEYLOGFILE PROXY
  __PROTO__ CONSTRUCTOR PROTOTYPE`.split(/\s+/),
);
const REFUSED_BEGINNINGS =
  /^(TROUPE_|COPILOT_|NODE_|LD_|DYLD_|GIT_|SSH_|GPG_|XDG_|BASH_|PYTHON|PIP_|UV_|VIRTUAL_ENV|CONDA|RUBY|GEM_|BUNDLE_|PERL|NPM_|YARN_|PNPM_|BUN_|DENO_|COREPACK_|CARGO_|RUSTC|RUSTFLAGS|RUSTUP_|DOTNET_|COR_|CORECLR_|ERL_|ELIXIR_|JULIA_|OPENSSL_|SSL_CERT|LUA_PATH|LUA_CPATH|GLIBC_|SUDO_)/;
const REFUSED_ENDINGS = /(_PROXY|_BASE_URL)$/;

export function isRefusedName(name: string): boolean {
  const upper = name.toUpperCase();
  return REFUSED_NAMES.has(upper) || REFUSED_BEGINNINGS.test(upper) || REFUSED_ENDINGS.test(upper);
}

export function parseDotenv(text: string): DotenvText {
  const values = new Map<string, { value: string; line: number }>();
  const problems: { line: number; message: string }[] = [];
  let position = 0;
  let line = 1;
  while (position < text.length) {
    const entry = readEntry(text, position);
    if (entry.kind === "problem") problems.push({ line, message: entry.message });
    if (entry.kind === "value") {
      if (values.size >= MAX_NAMES && !values.has(entry.name)) {
        problems.push({ line, message: `the rest is ignored: more than ${MAX_NAMES} names.` });
        break;
      }
      values.set(entry.name, { value: entry.value, line });
    }
    line += text.slice(position, entry.end).split("\n").length - 1;
    position = entry.end;
  }
  return { values, problems };
}

type Entry = { readonly end: number } & (
  | { readonly kind: "nothing" }
  | { readonly kind: "problem"; readonly message: string }
  | { readonly kind: "value"; readonly name: string; readonly value: string }
);

/** Parses one entry, up to the start of the next line. A quoted value may span several lines. */
function readEntry(text: string, start: number): Entry {
  const end = lineEnd(text, start);
  const row = text.slice(start, end);
  if (/^\s*(#|$)/.test(row)) return { kind: "nothing", end };
  const [head = "", name = ""] = /^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*/.exec(row) ?? [];
  if (name === "" || name.length > MAX_NAME_LENGTH) {
    return { kind: "problem", message: "is ignored: it does not have the form NAME=value.", end };
  }
  const from = start + head.length;
  const quote = text[from];
  if (quote !== '"' && quote !== "'") return entryOf(name, plainValue(text.slice(from, end)), end);
  const close = closingQuote(text, from, quote);
  if (close === undefined) {
    return {
      kind: "problem",
      message: `the rest is ignored: the quote after ${name} is not closed.`,
      end: text.length,
    };
  }
  const after = lineEnd(text, close);
  if (!/^\s*(#.*)?$/.test(text.slice(close + 1, after).trimEnd())) {
    return { kind: "problem", message: `${name} is ignored: there is text after its closing quote.`, end: after };
  }
  const inner = text.slice(from + 1, close);
  return entryOf(name, quote === '"' ? unescaped(inner) : inner, after);
}

function entryOf(name: string, value: string, end: number): Entry {
  if (value.includes("\0"))
    return { kind: "problem", message: `${name} is ignored: it contains a NUL character.`, end };
  if (value.length <= MAX_VALUE_LENGTH) return { kind: "value", name, value, end };
  return { kind: "problem", message: `${name} is ignored: it is longer than ${MAX_VALUE_LENGTH} characters.`, end };
}

function plainValue(rest: string): string {
  return rest.replace(/(^|\s)#.*$/s, "").trim();
}

function closingQuote(text: string, open: number, quote: string): number | undefined {
  for (let at = open + 1; at < text.length; at++) {
    if (text[at] === quote) return at;
    if (quote === '"' && text[at] === "\\") at++;
  }
  return undefined;
}

function unescaped(text: string): string {
  const meaning: Record<string, string> = { n: "\n", r: "\r", t: "\t", '"': '"', "\\": "\\", $: "$" };
  return text.replace(/\\([nrt"\\$])/g, (_, letter: string) => meaning[letter] ?? letter);
}

/** Returns the position after the line break, or the end of the text. */
function lineEnd(text: string, from: number): number {
  const found = text.indexOf("\n", from);
  return found === -1 ? text.length : found + 1;
}
