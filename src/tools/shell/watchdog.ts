/**
 * Ends and undoes what a killed troupe leaves behind. One small process per session holds the reading end of a pipe. When
 * the pipe closes, because the session ended or because troupe was killed, it kills every process that is marked as the
 * session's, that holds the session's folder open, or that is in a group it was told of. Then it undoes what the
 * sandboxed commands among them must not leave in the workspace.
 */
import type { ChildProcess } from "node:child_process";
import { MARK_NAME } from "./family.ts";
import { CLEAN_UP_PROGRAM, type LeftBehind } from "./left-behind.ts";
import { recordName } from "./mount-points.ts";

export interface Watchdog {
  /** A group to kill when this process is gone, and what to undo after it. */
  watch(pid: number, left?: LeftBehind): void;
  unwatch(pid: number): void;
  /** Lets it look through once more and end, on its own time. */
  close(): void;
}

/**
 * $1 is the mark without its last part, $2 the folder, $3 to $6 Node.js, the program that undoes what is left,
 * the folder of the records, and the record of the watched process.
 * A line "+pid json" adds a group and what to undo after it, "-pid" removes both. Looks until it has found nothing
 * several times in a row, because a process that was just being started shows its mark only when it runs. Not every sh
 * takes "kill -KILL --".
 */
const SCRIPT = `
trap '' HUP INT TERM
clean_up() {
  if [ -n "$lefts" ] || [ -e "$5/$6" ]; then printf '%s\\n' "$lefts" | "$3" -e "$4" "$5"; fi
  lefts=
}
groups=' '
while IFS= read -r line; do
  case $line in
    +*[!0-9]*) pid=\${line%% *}; pid=\${pid#+}; eval "left_$pid=\\\${line#* }"; groups="$groups$pid " ;;
    +*) groups="$groups\${line#+} " ;;
    -*)
      case $groups in *" \${line#-} "*) groups="\${groups%% \${line#-} *} \${groups#* \${line#-} }" ;; esac
      unset "left_\${line#-}"
      ;;
  esac
done
lefts=$(for group in $groups; do eval "printf '%s\\n' \\"\\\${left_$group-}\\""; done)
quiet=0
round=0
while [ $quiet -lt 6 ] && [ $round -lt 45 ]; do
  for group in $groups; do kill -s KILL -- "-$group" 2>/dev/null; done
  groups=
  if [ -d /proc/self ]; then
    found=$(
      grep -alF -e "${MARK_NAME}=$1." /proc/[0-9]*/environ 2>/dev/null
      find /proc/[0-9]*/fd -maxdepth 1 -lname "$2*" 2>/dev/null
    )
    pids=$(printf '%s\\n' "$found" | sed -n 's|^/proc/\\([0-9]*\\)/.*|\\1|p')
  else
    pids=$(ps -axEwwo pid=,command= 2>/dev/null | grep -F "${MARK_NAME}=$1." | sed 's/^ *\\([0-9]*\\).*/\\1/')
  fi
  alive=
  for pid in $pids; do
    [ "$pid" != $$ ] && kill -KILL "$pid" 2>/dev/null && alive=1
  done
  if [ -n "$alive" ]; then quiet=0; else quiet=$((quiet + 1)); fi
  round=$((round + 1))
  if [ $quiet = 2 ]; then clean_up "$@"; fi
  sleep 0.1
done
[ -z "$lefts" ] || clean_up "$@"
`;

/** `records`: the folder in which processes record their mount points, for those that watch sandboxed commands. */
export async function startWatchdog(options: { mark: string; folder: string; records?: string }): Promise<Watchdog> {
  const { spawn } = await import("node:child_process");
  const folder = options.folder.replace(/[*?[\]\\]/g, "\\$&");
  const cleanUp = [process.execPath, CLEAN_UP_PROGRAM, options.records ?? "", recordName(process.pid)];
  const child = spawn("/bin/sh", ["-c", SCRIPT, "troupe-watchdog", options.mark, folder, ...cleanUp], {
    cwd: "/",
    env: { PATH: "/usr/bin:/bin:/usr/sbin:/sbin" },
    stdio: ["pipe", "ignore", "ignore"],
    // Its own session: what ends our terminal or our group does not end it.
    detached: true,
  });
  child.on("error", () => undefined);
  child.stdin?.on("error", () => undefined);
  child.unref();
  unrefPipe(child);
  return {
    watch: (pid, left) => void child.stdin?.write(`+${pid}${left ? ` ${JSON.stringify(left)}` : ""}\n`),
    unwatch: (pid) => void child.stdin?.write(`-${pid}\n`),
    close: () => void child.stdin?.end(),
  };
}

/** Neither the process nor the pipe to it may keep us from ending. */
function unrefPipe(child: ChildProcess): void {
  const pipe: unknown = child.stdin;
  if (pipe instanceof Object && "unref" in pipe && typeof pipe.unref === "function") pipe.unref();
}
