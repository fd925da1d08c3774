/**
 * The bash scripts that run commands. A fresh command gets its own bash and ends with it. A named shell is a bash that
 * runs one command after the other, so that its folder and variables persist. It prints a mark with exit code and
 * folder after each command.
 */

import { GUARD_DESCRIPTOR } from "./family.ts";

/** Ignores profile and rc files, whatever the environment. */
const OPTIONS = ["--noprofile", "--norc", "-c"] as const;

/** $1 is a folder to hold open so that the watchdog finds the process, or empty; $2 is the command. */
const FRESH = `
[ -n "$1" ] && exec ${GUARD_DESCRIPTOR}<"$1"
exec 2>&1
__troupe_command=$2
set --
eval "$__troupe_command"
`;

/**
 * $1 as above. $2 is "pipe" (commands come on descriptor 3) or "terminal" (commands come on the input, while nothing
 * else reads it). Each command has three NUL-terminated fields: mark, "input" or "none", text.
 */
const NAMED = `
[ -n "$1" ] && exec ${GUARD_DESCRIPTOR}<"$1"
__troupe_kind=$2
set --
exec 2>&1 199>&1
[ "$__troupe_kind" = terminal ] && exec 3<&0 && stty raw -echo && printf '\\036ready\\036'
while IFS= read -r -d '' -u 3 __troupe_mark && IFS= read -r -d '' -u 3 __troupe_input && IFS= read -r -d '' -u 3 __troupe_command; do
  [ "$__troupe_kind" = terminal ] && stty sane -onlcr && printf '\\036%s>\\036' "$__troupe_mark"
  if [ "$__troupe_input" = none ]; then
    eval "$__troupe_command" 3<&- 199>&- </dev/null
  else
    eval "$__troupe_command" 3<&- 199>&-
  fi
  __troupe_code=$?
  exec >&199 2>&1
  if [ "$__troupe_kind" = terminal ]; then
    stty raw -echo
    while IFS= read -r -t 0.01 -N 4096 -u 3 __troupe_command; do :; done
  fi
  printf '\\036%s:%d:%s\\036' "$__troupe_mark" "$__troupe_code" "$PWD"
done
`;

/** Setup before the first command. */
interface ShellSetup {
  /** A folder to hold open, or empty. */
  readonly guardFolder: string;
  /** Lines of bash that run first; see `limits.ts`. */
  readonly first: string;
  /** The program that runs them. */
  readonly bash: string;
}

export function freshArguments(command: string, { guardFolder, first, bash }: ShellSetup): string[] {
  return [bash, ...OPTIONS, first + FRESH, "bash", guardFolder, command];
}

export function namedArguments(kind: "pipe" | "terminal", { guardFolder, first, bash }: ShellSetup): string[] {
  return [bash, ...OPTIONS, first + NAMED, "bash", guardFolder, kind];
}

/**
 * The arguments of a bash that is chosen before its command is known: the rest comes in variables. The last of them is set
 * last, so that a list of variables that was cut off runs nothing.
 */
export const laterArguments = (bash: string): string[] => [bash, ...OPTIONS, LATER, "bash"];

const LATER = `
[ "$troupe_later_end" = 1 ] || exit 126
__troupe_script=$troupe_later_script
set -- "$troupe_later_guard" "$troupe_later_command"
unset troupe_later_script troupe_later_guard troupe_later_command troupe_later_end
eval "unset __troupe_script; $__troupe_script"
`;

/** Returns the variables for `laterArguments`, in their order, that make it the bash of `freshArguments`. */
export const laterVariables = (
  command: string,
  { guardFolder, first }: ShellSetup,
): [name: string, value: string][] => [
  ["troupe_later_script", first + FRESH],
  ["troupe_later_guard", guardFolder],
  ["troupe_later_command", command],
  ["troupe_later_end", "1"],
];

/** Printed by a terminal shell when it accepts its first command. */
export const READY_MARK = "\u001eready\u001e";

export function commandMessage(what: { mark: string; command: string; input: boolean }): string {
  return `${what.mark}\0${what.input ? "input" : "none"}\0${what.command}\0`;
}

interface CommandEnd {
  readonly exitCode: number;
  readonly cwd: string;
}

const MAX_MARK_BYTES = 8 * 1024;

/** Printed by a terminal shell before a command; input can be typed only after it. */
export const beginMark = (mark: string): string => `\u001e${mark}>\u001e`;

/**
 * Separates the output of a command from the mark after it. `onBytes` gets everything before the mark. The rest of a
 * chunk is dropped: nothing relevant is printed between two commands.
 */
export class MarkScanner {
  readonly #start: Buffer;
  #held: Buffer = Buffer.alloc(0);

  constructor(mark: string) {
    this.#start = Buffer.from(`\u001e${mark}:`);
  }

  push(chunk: Buffer, onBytes: (bytes: Buffer) => void): CommandEnd | undefined {
    const bytes = this.#held.length > 0 ? Buffer.concat([this.#held, chunk]) : chunk;
    const at = bytes.indexOf(this.#start);
    if (at < 0) {
      const keep = this.#startedAtEnd(bytes);
      onBytes(bytes.subarray(0, bytes.length - keep));
      this.#held = Buffer.from(bytes.subarray(bytes.length - keep));
      return undefined;
    }
    const close = bytes.indexOf(0x1e, at + this.#start.length);
    onBytes(bytes.subarray(0, at));
    if (close < 0 && bytes.length - at < MAX_MARK_BYTES) {
      this.#held = Buffer.from(bytes.subarray(at));
      return undefined;
    }
    const [code = "", ...cwd] = bytes.toString("utf8", at + this.#start.length, close).split(":");
    return { exitCode: Number.parseInt(code, 10) || 0, cwd: cwd.join(":") };
  }

  /** Returns bytes that were held back as a possible start of the mark; call it at the end. */
  rest(): Buffer {
    return this.#held;
  }

  #startedAtEnd(bytes: Buffer): number {
    const begin = bytes.lastIndexOf(0x1e);
    if (begin < 0 || bytes.length - begin >= this.#start.length) return 0;
    return this.#start.subarray(0, bytes.length - begin).equals(bytes.subarray(begin)) ? bytes.length - begin : 0;
  }
}
