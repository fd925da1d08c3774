/**
 * Commands that outlive troupe. Their records are files, so that a later session can read and stop them: `<name>.log`
 * has the output, `<name>.pid` the identity of the process, `<name>.exit` the exit code. Commands must not be able to
 * write the folder of the records: a forged record would decide what is read and killed.
 */
import * as fs from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { type Disk, writeNewFile } from "../../lib/node/disk.ts";
import { endFamily, familyOf, hasMark, provesMark } from "./process/family.ts";
import { tidy } from "./process/output.ts";
import { namesIn, startOf } from "./process/processes.ts";
import { CLEAN_UP_PROGRAM } from "./sandbox/left-behind.ts";

const MAX_LOG_BYTES = 64 * 1024 * 1024;
const MAX_READ_BYTES = 256 * 1024;
const MAX_RECORD_BYTES = 1024 * 1024;
const CLEAN_EVERY_SECONDS = 30;
const KEEPER_PATH = "/usr/bin:/bin:/usr/sbin:/sbin";
/** Without /bin/bash it is found through `KEEPER_PATH`. */
const KEEPER_BASH = fs.existsSync("/bin/bash") ? "/bin/bash" : "bash";
const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0, O_NOCTTY = 0 } = fs.constants;

const PidFile = z.object({
  shellId: z.string(),
  command: z.string(),
  pid: z.int().min(2),
  started: z.string(),
  mark: z.string().min(1),
});

export interface DetachedShell extends z.infer<typeof PidFile> {
  readonly log: string;
  /** Undefined while it runs, and when it was killed. */
  readonly exitCode: number | undefined;
  readonly running: boolean;
}

/**
 * Cuts the log at its limit without disturbing the command, undoes what a sandboxed command must not leave behind, and
 * stores the exit code. Descriptor 3 is the file for it. $1 is Node.js, $2 the clean-up program, $3 the folder with the
 * records of mount points, or empty without a sandbox; $4 is the PATH of the command, and the other arguments are the
 * command. It runs outside the sandbox, so its own programs must not come from the PATH of the command, which may lead
 * into the workspace.
 */
const KEEPER = `
__node=$1 __program=$2 __folder=$3 __path=$4
shift 4
__record=$__folder/mounts-$$.json
__clean() { [ -z "$__left" ] || printf '%s\\n' "$__left" | "$__node" -e "$__program" "$__folder"; }
if [ -n "$__folder" ]; then
  # The record of this process keeps the mount points in use, and says what to undo. If troupe is killed before it has
  # written the record, nothing runs.
  for ((__round = 0; __round < 1000; __round++)); do [ -e "$__record" ] && break; sleep 0.02; done
  [ -e "$__record" ] || exit 125
  (
    trap 'kill "$__sleep"; exit' TERM
    while sleep ${CLEAN_EVERY_SECONDS} & __sleep=$!; wait "$__sleep"; do __left=$(cat "$__record") && __clean; done
  ) </dev/null >/dev/null 2>&1 3>&- &
  __watcher=$!
fi
PATH=$__path "$@" 2>&1 </dev/null 3>&- | { head -c ${MAX_LOG_BYTES}; exec cat >/dev/null; } 3>&-
__code=\${PIPESTATUS[0]}
if [ -n "$__folder" ]; then
  kill "$__watcher"
  __left=$(cat "$__record") && rm -f "$__record"
  __clean
fi >/dev/null 2>&1 3>&-
printf '%s' "$__code" >&3
`;

export async function startDetached(what: {
  readonly shellId: string;
  readonly command: string;
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly mark: string;
  readonly folder: string;
  /** The folder with the records of mount points, for a sandboxed command. */
  readonly mountRecords?: string | undefined;
  readonly now: number;
  readonly disk: Disk;
  /** Throws if it may not start any more. */
  assertMayStart(): void;
  /** Called when it ends during this process. */
  onEnd(): void;
}): Promise<DetachedShell> {
  const { disk, shellId, command, mark } = what;
  const { spawn } = await import("node:child_process");
  const base = join(what.folder, `shell-detached-${shellId}-${what.now}`);
  const log = await disk.openExclusive(`${base}.log`);
  const exit = await disk.openExclusive(`${base}.exit`);
  try {
    const { PATH = KEEPER_PATH, ...environment } = what.environment;
    const given = [process.execPath, CLEAN_UP_PROGRAM, what.mountRecords ?? "", PATH, ...what.argv];
    what.assertMayStart();
    const child = spawn(KEEPER_BASH, ["--noprofile", "--norc", "-c", KEEPER, "bash", ...given], {
      cwd: what.cwd,
      env: { ...environment, PATH: KEEPER_PATH },
      stdio: ["ignore", log, log, exit],
      detached: true,
    });
    const pid = await new Promise<number>((resolve, reject) => {
      child.once("spawn", () => resolve(child.pid ?? 0));
      child.once("error", reject);
    });
    child.once("exit", () => what.onEnd());
    child.unref();
    const file = { shellId, command, pid, started: startOf(pid), mark };
    await writeNewFile(disk, `${base}.pid`, [Buffer.from(JSON.stringify(file))]);
    return { ...file, log: `${base}.log`, exitCode: undefined, running: true };
  } finally {
    await disk.close(log);
    await disk.close(exit);
  }
}

export function listDetached(folder: string): DetachedShell[] {
  return namesIn(folder)
    .filter((name) => name.startsWith("shell-detached-") && name.endsWith(".pid"))
    .map((name) => readDetached(join(folder, name.slice(0, -".pid".length))))
    .filter((shell) => shell !== undefined);
}

/**
 * Ends the command and everything it started. Returns false, and ends nothing, if the process with the recorded pid
 * does not have the mark of this command: it is then another program.
 */
export async function stopDetached(shell: DetachedShell): Promise<boolean> {
  if (!shell.running || !(await provesMark(shell.pid, shell.mark))) return false;
  await endFamily(familyOf(shell.pid, shell.mark));
  return true;
}

/** Returns the log from `offset`; only the end of a long piece. */
export function readDetachedLog(log: string, offset: number): { text: string; next: number } {
  return withRecord(log, { text: "", next: offset }, (fd, size) => {
    const from = Math.max(offset, size - MAX_READ_BYTES);
    const bytes = Buffer.alloc(Math.max(0, size - from));
    const length = fs.readSync(fd, bytes, 0, bytes.length, from);
    const skipped = from > offset ? `[${from - offset} bytes left out here. All of it is in ${log}]\n` : "";
    return { text: skipped + tidy(bytes.toString("utf8", 0, length)), next: from + length };
  });
}

export function detachedLogSize(log: string): number {
  return withRecord(log, 0, (_, size) => size);
}

function readDetached(base: string): DetachedShell | undefined {
  try {
    const file = PidFile.parse(JSON.parse(readRecord(`${base}.pid`)));
    const exit = Number.parseInt(readRecord(`${base}.exit`), 10);
    const exitCode = Number.isNaN(exit) ? undefined : exit;
    return { ...file, log: `${base}.log`, exitCode, running: exitCode === undefined && isRunning(file) };
  } catch {
    return undefined;
  }
}

/** A pid is reused after its process has ended; start time and mark are not. */
function isRunning({ pid, started, mark }: z.infer<typeof PidFile>): boolean {
  if (startOf(pid) !== started || !isAlive(pid)) return false;
  return process.platform !== "linux" || hasMark(pid, mark);
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

function readRecord(path: string): string {
  return withRecord(path, "", (fd, size) => {
    const bytes = Buffer.alloc(Math.min(size, MAX_RECORD_BYTES));
    return bytes.toString("utf8", 0, fs.readSync(fd, bytes, 0, bytes.length, 0));
  });
}

/** Only a regular file with one name is a record. Anything else counts as missing, and never blocks. */
function withRecord<T>(path: string, missing: T, use: (fd: number, size: number) => T): T {
  let fd: number;
  try {
    fd = fs.openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  } catch {
    return missing;
  }
  try {
    const stat = fs.fstatSync(fd);
    return stat.isFile() && stat.nlink === 1 ? use(fd, stat.size) : missing;
  } finally {
    fs.closeSync(fd);
  }
}
