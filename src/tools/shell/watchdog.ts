/**
 * Outlives us by a moment to end what we leave behind. One small process per session holds the reading end of a pipe;
 * when the pipe closes, because the session ended or because troupe was killed, it kills every process that is marked
 * as the session's, that holds the session's folder open, or that is in a group it was told of.
 */
import type { ChildProcess } from "node:child_process";
import { MARK_NAME } from "./family.ts";

export interface Watchdog {
  /** A group to kill when we are gone. */
  watch(pid: number): void;
  unwatch(pid: number): void;
  /** Lets it look through once more and end, on its own time. */
  close(): void;
}

/**
 * $1 is the mark without its last part, $2 the folder. Looks until it has found nothing several times in a row, because
 * a process that was just being started shows its mark only when it runs. Not every sh takes "kill -KILL --".
 */
const SCRIPT = `
trap '' HUP INT TERM
groups=' '
while IFS= read -r line; do
  case $line in
    +*) groups="$groups\${line#+} " ;;
    -*) case $groups in *" \${line#-} "*) groups="\${groups%% \${line#-} *} \${groups#* \${line#-} }" ;; esac ;;
  esac
done
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
  sleep 0.1
done
`;

export async function startWatchdog({ mark, folder }: { mark: string; folder: string }): Promise<Watchdog> {
  const { spawn } = await import("node:child_process");
  const child = spawn("/bin/sh", ["-c", SCRIPT, "troupe-watchdog", mark, folder.replace(/[*?[\]\\]/g, "\\$&")], {
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
    watch: (pid) => void child.stdin?.write(`+${pid}\n`),
    unwatch: (pid) => void child.stdin?.write(`-${pid}\n`),
    close: () => void child.stdin?.end(),
  };
}

/** Neither the process nor the pipe to it may keep us from ending. */
function unrefPipe(child: ChildProcess): void {
  const pipe: unknown = child.stdin;
  if (pipe instanceof Object && "unref" in pipe && typeof pipe.unref === "function") pipe.unref();
}
