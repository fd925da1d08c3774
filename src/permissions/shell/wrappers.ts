/**
 * Programs that run their arguments as a command. Unwrapping is exact or reports that it is not. An unknown option
 * leaves open which word is the command; such a command is never allowed.
 */
import { baseName, caseFold } from "../case-fold.ts";
import type { ShellWord } from "./words.ts";

export interface Unwrapped {
  /** Commands that would run, as words. */
  readonly inner: readonly (readonly ShellWord[])[];
  /** Shell source that would run. */
  readonly scripts: readonly string[];
  /** True when more could run than is listed here. */
  readonly hidden: boolean;
  /** True when the wrapper adds nothing of its own: a rule for the inner command is enough. */
  readonly transparent: boolean;
  /** True when arguments that are not in the text are added to the inner command. */
  readonly openEnded: boolean;
  /** Variables that are set for the inner command. */
  readonly variables: readonly string[];
}

interface Wrapper {
  /** Short options without a value, and with one. */
  readonly flags?: string;
  readonly valued?: string;
  readonly longFlags?: readonly string[];
  readonly longValued?: readonly string[];
  /** Number of words before the command, such as a duration. */
  readonly operands?: number;
  readonly assignments?: boolean;
  readonly transparent?: boolean;
  readonly openEnded?: boolean;
  /** Options whose value is shell source. */
  readonly scriptOptions?: readonly string[];
  /** Options with which nothing is run. */
  readonly inert?: string;
  readonly numericOption?: boolean;
  /** The words are joined and passed to a shell. */
  readonly joined?: boolean;
}

const WRAPPERS: Readonly<Record<string, Wrapper>> = {
  env: {
    flags: "i0v",
    valued: "uCS",
    longFlags: ["--ignore-environment", "--null", "--debug"],
    longValued: ["--unset", "--chdir", "--split-string"],
    assignments: true,
    scriptOptions: ["S", "--split-string"],
  },
  command: { flags: "p", inert: "vV", transparent: true },
  builtin: {},
  exec: { flags: "cl", valued: "a" },
  nice: { valued: "n", longValued: ["--adjustment"], numericOption: true, transparent: true },
  nohup: { transparent: true },
  setsid: { flags: "cfw", longFlags: ["--ctty", "--fork", "--wait"] },
  timeout: {
    flags: "v",
    valued: "ks",
    longFlags: ["--foreground", "--preserve-status", "--verbose"],
    longValued: ["--kill-after", "--signal"],
    operands: 1,
    transparent: true,
  },
  time: {
    flags: "pvaq",
    valued: "fo",
    longValued: ["--format", "--output"],
    longFlags: ["--portability", "--verbose"],
  },
  stdbuf: { valued: "ioe", longValued: ["--input", "--output", "--error"], transparent: true },
  xargs: {
    flags: "0rtpxoei",
    valued: "adEILnPs",
    longFlags: ["--null", "--no-run-if-empty", "--verbose", "--interactive", "--exit", "--open-tty"],
    longValued: ["--arg-file", "--delimiter", "--max-args", "--max-procs", "--max-chars"],
    openEnded: true,
  },
  sudo: {
    flags: "AbEHnPSkB",
    valued: "CgpRrTtuUDh",
    longFlags: ["--preserve-env", "--non-interactive", "--background", "--set-home", "--stdin"],
    longValued: ["--user", "--group", "--chdir", "--host", "--prompt"],
    assignments: true,
  },
  doas: { flags: "nL", valued: "uCa" },
  busybox: {},
  ionice: { flags: "t", valued: "cn", longFlags: ["--ignore"], longValued: ["--class", "--classdata"], inert: "pPu" },
  chroot: { longValued: ["--userspec", "--groups"], longFlags: ["--skip-chdir"], operands: 1 },
  watch: {
    flags: "bcdegtrwxC",
    valued: "nq",
    longFlags: ["--beep", "--color", "--differences", "--errexit", "--chgexit", "--no-title", "--exec", "--no-wrap"],
    longValued: ["--interval", "--equexit"],
    joined: true,
  },
  script: {
    flags: "aefqt",
    valued: "cEIoOBTm",
    scriptOptions: ["c", "--command"],
    longValued: ["--command"],
    operands: 1,
  },
};

const SHELLS = new Set(["sh", "bash", "zsh", "dash", "ksh", "ash", "rbash", "mksh"]);
const FIND_COMMANDS = new Set(["-exec", "-execdir", "-ok", "-okdir"]);

/** Returns undefined when the program is not a wrapper. */
export function unwrap(words: readonly ShellWord[]): Unwrapped | undefined {
  const name = caseFold(baseName(words[0]?.value ?? ""));
  const args = words.slice(1);
  if (SHELLS.has(name)) return unwrapShell(args);
  if (name === "find") return unwrapFind(args);
  if (name === "eval") return source(args);
  if (name === "trap" || name === "alias") return unwrapStored(name, args);
  if (name === "parallel") return { ...source(args.slice(0, args.findIndex(isInputMark) >>> 0)), hidden: true };
  const wrapper = Object.hasOwn(WRAPPERS, name) ? WRAPPERS[name] : undefined;
  return wrapper && unwrapOptions(wrapper, args);
}

/** Returns an `Unwrapped` that runs nothing. */
function nothing(hidden = false): Unwrapped {
  return { inner: [], scripts: [], hidden, transparent: false, openEnded: false, variables: [] };
}

function source(args: readonly ShellWord[]): Unwrapped {
  const text = args.map((word) => word.value).join(" ");
  return { ...nothing(args.some((word) => !word.literal)), scripts: text === "" ? [] : [text] };
}

function unwrapShell(args: readonly ShellWord[]): Unwrapped {
  let command = false;
  let hidden = false;
  for (let index = 0; index < args.length; index++) {
    const word = args[index];
    if (word === undefined) break;
    if (!word.literal) return { ...source(command ? [word] : []), hidden: true };
    const isOption = /^[-+]./.test(word.value) && word.value !== "--";
    if (!isOption) {
      const operand = word.value === "--" || word.value === "-" ? args[index + 1] : word;
      if (operand === undefined) break;
      if (command) return { ...source([operand]), hidden: hidden || !operand.literal };
      return nothing(hidden || !operand.literal || /^\/(?:dev|proc)\//.test(operand.value));
    }
    if (word.value.startsWith("--")) hidden ||= /^--(?:rcfile|init-file)/.test(word.value);
    else if (word.value.includes("c")) command = true;
    const takesValue = /^[-+][a-zA-Z]*[oO]$/.test(word.value) || /^--(?:rcfile|init-file)$/.test(word.value);
    if (takesValue) index++;
  }
  // Without a script or a file it reads commands from its input.
  return nothing(true);
}

function unwrapFind(args: readonly ShellWord[]): Unwrapped | undefined {
  const inner: ShellWord[][] = [];
  for (let index = 0; index < args.length; index++) {
    if (!FIND_COMMANDS.has(args[index]?.value ?? "")) continue;
    const end = args.findIndex((word, at) => at > index && (word.value === ";" || word.value === "+"));
    inner.push(args.slice(index + 1, end === -1 ? undefined : end).map((word) => withReplacement(word, "{}")));
    if (end !== -1) index = end;
  }
  if (inner.length === 0) return undefined;
  return { ...nothing(), inner, openEnded: true };
}

/** Shell source that is stored and run later. */
function unwrapStored(name: string, args: readonly ShellWord[]): Unwrapped {
  const stored = name === "trap" ? args.filter((word) => !/^-[lp]*$/.test(word.value)).slice(0, 1) : args;
  const scripts = stored.map((word) => (name === "alias" ? word.value.slice(word.value.indexOf("=") + 1) : word.value));
  return { ...nothing(args.some((word) => !word.literal)), scripts };
}

function unwrapOptions(wrapper: Wrapper, args: readonly ShellWord[]): Unwrapped {
  const found = { scripts: [] as string[], hidden: false, replacement: undefined as string | undefined, inert: false };
  let index = 0;
  for (; index < args.length; index++) {
    const word = args[index];
    const text = word?.value ?? "";
    if (word === undefined || !/^-./.test(text)) break;
    found.hidden ||= !word.literal;
    if (text === "--") {
      index++;
      break;
    }
    if (wrapper.numericOption && /^-\d+$/.test(text)) continue;
    if (takeOption(wrapper, { text, next: args[index + 1] }, found)) index++;
  }
  if (found.inert) return nothing();
  const variables: string[] = [];
  for (; wrapper.assignments && /^[A-Za-z_]\w*=/.test(args[index]?.value ?? ""); index++) {
    variables.push((args[index]?.value ?? "").split("=", 1)[0] ?? "");
  }
  const operands = args.slice(index, index + (wrapper.operands ?? 0));
  const rest = args.slice(index + operands.length).map((word) => withReplacement(word, found.replacement));
  const hidden =
    found.hidden ||
    operands.some((word) => !word.literal) ||
    (rest.length === 0 && wrapper.openEnded === true && found.replacement !== undefined);
  const scripts = wrapper.joined && rest.length > 0 ? [...found.scripts, ...source(rest).scripts] : found.scripts;
  return {
    inner: rest.length > 0 && !wrapper.joined ? [rest] : [],
    scripts,
    hidden: hidden || (wrapper.joined === true && rest.some((word) => !word.literal)),
    transparent: (wrapper.transparent ?? false) && !hidden,
    openEnded: wrapper.openEnded ?? false,
    variables,
  };
}

interface OptionsFound {
  scripts: string[];
  hidden: boolean;
  replacement: string | undefined;
  inert: boolean;
}

/** Returns true when the option takes the next word as its value. */
function takeOption(
  wrapper: Wrapper,
  option: { text: string; next: ShellWord | undefined },
  found: OptionsFound,
): boolean {
  const { text, next } = option;
  const give = (name: string, value: string): void => {
    if (wrapper.scriptOptions?.includes(name)) found.scripts.push(value);
    if (wrapper.openEnded && name === "I") found.replacement = value;
  };
  if (text.startsWith("--")) {
    const [name = "", ...value] = text.split("=");
    if (value.length > 0) give(name, value.join("="));
    if (wrapper.longFlags?.includes(name)) return false;
    if (!wrapper.longValued?.includes(name)) found.hidden = true;
    const takesNext = value.length === 0 && (wrapper.longValued?.includes(name) ?? false);
    if (takesNext) give(name, next?.value ?? "");
    found.hidden ||= takesNext && next?.literal === false;
    return takesNext;
  }
  for (let at = 1; at < text.length; at++) {
    const letter = text[at] ?? "";
    if (wrapper.inert?.includes(letter)) found.inert = true;
    else if (wrapper.valued?.includes(letter)) {
      const attached = text.slice(at + 1);
      give(letter, attached === "" ? (next?.value ?? "") : attached);
      found.hidden ||= attached === "" && next?.literal === false;
      return attached === "";
    } else if (wrapper.openEnded && (letter === "i" || letter === "e" || letter === "l")) {
      if (letter === "i") found.replacement = text.slice(at + 1) || "{}";
      return false;
    } else if (!wrapper.flags?.includes(letter)) found.hidden = true;
  }
  return false;
}

/** Marks a word that is filled in at run time as unknown. */
function withReplacement(word: ShellWord, mark: string | undefined): ShellWord {
  return mark !== undefined && mark !== "" && word.value.includes(mark) ? { ...word, literal: false } : word;
}

function isInputMark(word: ShellWord): boolean {
  return /^:::/.test(word.value);
}
