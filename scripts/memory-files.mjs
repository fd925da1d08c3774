// Temporary files of test runs in memory. The tests create several hundred thousand small files, each of which takes
// about ten times as long on a disk.
import { spawnSync } from "node:child_process";
import { freemem } from "node:os";

const LEAST_FREE = 4 * 2 ** 30;
const MOST = 8 * 2 ** 30;
const SCRIPT = `mount -t tmpfs -o mode=1777,size=$2 troupe-test "$1" && export TMPDIR="$1" && shift 2 && exec "$@"`;

/**
 * Returns the words of a command that runs this one with its temporary files in memory, at this folder. The mount is in
 * a namespace of its own: it ends with the last process that sees it, whichever way that ends. Returns the command
 * unchanged where only the disk can be used: not root, no Linux, or little free memory.
 */
export function withFilesInMemory(folder, command) {
  if (process.platform !== "linux" || process.getuid() !== 0 || freemem() < LEAST_FREE) return command;
  const size = String(Math.min(MOST, Math.floor(freemem() / 2)));
  const wrapped = (words) => [
    "unshare",
    "--mount",
    "--propagation",
    "private",
    "sh",
    "-c",
    SCRIPT,
    "sh",
    folder,
    size,
    ...words,
  ];
  const [program, ...args] = wrapped(["true"]);
  const { status } = spawnSync(program, args, { stdio: "ignore", timeout: 10_000 });
  return status === 0 ? wrapped(command) : command;
}
