/**
 * Cleans up after a killed troupe. A small process holds the reading end of a pipe from troupe. When the pipe closes,
 * it kills the processes that are provably left over:
 *
 * - those in a process group that was registered,
 * - those with the mark in their environment,
 * - those that hold the guard folder open on the descriptor that only our shells use for it.
 *
 * It never kills the process that started it while that process lives. Afterwards it undoes what the sandboxed commands
 * among them must not leave in the workspace.
 */
import type { ChildProcess } from "node:child_process";
import { CLEAN_UP_PROGRAM } from "../sandbox/left-behind.ts";
import type { LeftBehind } from "../sandbox/leftovers.ts";
import { recordName } from "../sandbox/mount-points.ts";
import { GUARD_DESCRIPTOR, MARK_NAME } from "./family.ts";
import { startOf } from "./processes.ts";

export interface Watchdog {
  /** Registers a group to kill when this process is gone. */
  watch(pid: number): void;
  unwatch(pid: number): void;
  /**
   * Registers what to undo when this process is gone. Call it before the command starts. Returns a function to call
   * when all of it has been undone.
   */
  keep(left: LeftBehind): () => void;
  /** Makes it search for marked processes once more and exit, without waiting for it. */
  close(): void;
  /**
   * Ends it without a search, unless it still watches a group or has something to undo. For a caller that has ended its
   * processes itself.
   */
  dismiss(): void;
}

/**
 * $1 is the mark without its last part, $2 the guard folder. $3 to $6 are Node.js, the clean-up program, the folder of
 * the records, and the record of the watched process; $7 and $8 its pid and start time.
 * Input lines: "+pid" adds a group and "-pid" removes it; "=number json" adds something to undo, "~number" removes it
 * and "^number" adds it again; "." means that nothing else is left, and "!" that the watched process lives on.
 * Otherwise a closed pipe means that it is ending. A killed process closes its files a moment before it counts as ended,
 * and as long as it lives its record protects its mount points. So the clean-up waits for the end.
 * Searches until it has found nothing several times in a row, because a process that is just starting shows its mark
 * only when it runs. Not every sh accepts "kill -KILL --".
 */
const SCRIPT = `
trap '' HUP INT TERM
clean_up() {
  while [ -z "$closed" ] && [ $waited -lt 100 ] && owner_lives "$@"; do waited=$((waited + 1)); sleep 0.1; done
  if [ -n "$lefts" ] || [ -e "$5/$6" ]; then printf '%s\\n' "$lefts" | "$3" -e "$4" "$5"; fi
  lefts=
}
owner_lives() {
  read -r stat 2>/dev/null < "/proc/$7/stat" || return 1
  set -- "$8" \${stat##*) }
  [ "$1" = "\${21}" ] && [ "$2" != Z ] && [ "$2" != X ]
}
groups=' '
kept=' '
dismissed=
closed=
waited=0
while IFS= read -r line; do
  case $line in
    +*) groups="$groups\${line#+} " ;;
    -*) case $groups in *" \${line#-} "*) groups="\${groups%% \${line#-} *} \${groups#* \${line#-} }" ;; esac ;;
    =*) key=\${line%% *}; key=\${key#=}; eval "left_$key=\\\${line#* }"; kept="$kept$key " ;;
    ^*) kept="$kept\${line#?} " ;;
    ~*) case $kept in *" \${line#?} "*) kept="\${kept%% \${line#?} *} \${kept#* \${line#?} }" ;; esac ;;
    .) dismissed=1 ;;
    !) closed=1 ;;
  esac
done
[ -n "$dismissed" ] && [ "$groups$kept" = '  ' ] && exit
lefts=$(for key in $kept; do eval "printf '%s\\n' \\"\\\${left_$key-}\\""; done)
quiet=0
round=0
while [ $quiet -lt 6 ] && [ $round -lt 45 ]; do
  for group in $groups; do kill -s KILL -- "-$group" 2>/dev/null; done
  groups=
  if [ -d /proc/self ]; then
    found=$(
      grep -alF -e "${MARK_NAME}=$1." /proc/[0-9]*/environ 2>/dev/null
      find /proc/[0-9]*/fd/${GUARD_DESCRIPTOR} -maxdepth 0 -lname "$2*" 2>/dev/null
    )
    pids=$(printf '%s\\n' "$found" | sed -n 's|^/proc/\\([0-9]*\\)/.*|\\1|p')
  else
    pids=$(ps -axEwwo pid=,command= 2>/dev/null | grep -F "${MARK_NAME}=$1." | sed 's/^ *\\([0-9]*\\).*/\\1/')
  fi
  alive=
  for pid in $pids; do
    if [ "$pid" = "$7" ] && owner_lives "$@"; then continue; fi
    [ "$pid" != $$ ] && kill -KILL "$pid" 2>/dev/null && alive=1
  done
  if [ -n "$alive" ]; then quiet=0; else quiet=$((quiet + 1)); fi
  round=$((round + 1))
  if [ $quiet = 2 ]; then clean_up "$@"; fi
  sleep 0.1
done
[ -z "$lefts" ] || clean_up "$@"
`;

interface WatchdogOptions {
  /** Prefix of the marks of the processes; a dot follows. */
  readonly mark: string;
  /** Prefix of a `find -lname` pattern for the guard folders. */
  readonly folder: string;
  /** The folder in which processes record their mount points, for a watchdog of sandboxed commands. */
  readonly records?: string;
}

export async function startWatchdog(options: WatchdogOptions): Promise<Watchdog> {
  const { spawn } = await import("node:child_process");
  const cleanUp = [process.execPath, CLEAN_UP_PROGRAM, options.records ?? "", recordName(process.pid)];
  const owner = [String(process.pid), startOf(process.pid)];
  const child = spawn(
    "/bin/sh",
    ["-c", SCRIPT, "troupe-watchdog", options.mark, options.folder, ...cleanUp, ...owner],
    {
      cwd: "/",
      env: { PATH: "/usr/bin:/bin:/usr/sbin:/sbin" },
      stdio: ["pipe", "ignore", "ignore"],
      // Its own session: a signal to our terminal or group does not end it.
      detached: true,
    },
  );
  child.on("error", () => undefined);
  child.stdin?.on("error", () => undefined);
  child.unref();
  unrefPipe(child);
  const keep = keepFunction((line) => void child.stdin?.write(line));
  return {
    watch: (pid) => void child.stdin?.write(`+${pid}\n`),
    keep,
    unwatch: (pid) => void child.stdin?.write(`-${pid}\n`),
    close: () => void child.stdin?.end("!\n"),
    dismiss: () => void child.stdin?.end(".\n"),
  };
}

const MAX_KNOWN = 4;

/**
 * Returns `keep`. A shell reads its input byte by byte, and most commands must undo the same as the one before. So a text
 * that the watchdog already has is added again by its number.
 */
function keepFunction(send: (line: string) => void): Watchdog["keep"] {
  /** Texts that the watchdog has and that are not kept at the moment, the oldest first. */
  const known = new Map<string, number>();
  const free: number[] = [];
  let count = 0;
  const forget = (text: string, number: number): void => {
    if (known.has(text)) free.push(number);
    else known.set(text, number);
    const [oldest] = known;
    if (oldest === undefined || known.size <= MAX_KNOWN) return;
    known.delete(oldest[0]);
    free.push(oldest[1]);
  };
  return (left) => {
    const text = JSON.stringify(left);
    const again = known.get(text);
    known.delete(text);
    const number = again ?? free.pop() ?? ++count;
    send(again === undefined ? `=${number} ${text}\n` : `^${number}\n`);
    let isKept = true;
    return () => {
      if (!isKept) return;
      isKept = false;
      send(`~${number}\n`);
      forget(text, number);
    };
  };
}

/** Prefix of the marks of all shells of this process, so that one watchdog serves every session. */
export const PROCESS_MARK = crypto.randomUUID();

const shared = new Map<string, { readonly watchdog: Promise<Watchdog>; users: number }>();

/**
 * Returns the watchdog shared by all shells of this process that record mount points in this folder. The last release
 * ends it.
 */
export async function shareWatchdog(records: string): Promise<Watchdog & { release(): void }> {
  const folder = `*/${guardFolderName("")}`;
  const one = shared.get(records) ?? { watchdog: startWatchdog({ mark: PROCESS_MARK, folder, records }), users: 0 };
  shared.set(records, one);
  one.users++;
  const drop = (): boolean => {
    if (--one.users === 0 && shared.get(records) === one) shared.delete(records);
    return one.users === 0;
  };
  const watchdog = await one.watchdog.catch((error: unknown) => {
    drop();
    throw error;
  });
  return { ...watchdog, release: () => void (drop() && watchdog.dismiss()) };
}

/** Returns the name of a session's guard folder, which also holds its pipes. */
export const guardFolderName = (session: string): string => `shells-${PROCESS_MARK}${session}`;

/** Prevents the process and its pipe from keeping us alive. */
function unrefPipe(child: ChildProcess): void {
  const pipe: unknown = child.stdin;
  if (pipe instanceof Object && "unref" in pipe && typeof pipe.unref === "function") pipe.unref();
}
