/**
 * Resource limits of one command. The kernel enforces most of them: the shell that starts the command sets them as soft
 * and hard limits, with or without a sandbox. For the time limit see `ShellsOptions.maxRunMs`.
 */
import { readFileSync } from "node:fs";
import { availableParallelism, release } from "node:os";
import { killFamily, membersOf, type ProcessFamily } from "./family.ts";

export interface CommandLimits {
  /** Processes and threads at once. */
  readonly processes: number;
  /** Size of one written file. */
  readonly fileBytes: number;
  readonly openFiles: number;
  /**
   * Per process (default: unlimited, because runtimes with WebAssembly or a garbage collector reserve far more than
   * they use).
   */
  readonly addressSpaceBytes?: number;
}

const PROCESSES = 512;
const PROCESSES_PER_PROCESSOR = 64;
const FILE_BYTES = 4 * 1024 * 1024 * 1024;
const OPEN_FILES = 16_384;
/** The shell itself uses descriptors up to 199. */
const LEAST_OPEN_FILES = 256;
const GUARD_INTERVAL_MS = 200;
/** Looks at the whole machine before the processes of the command are counted in any case. */
const LOOKS_PER_COUNT = 10;
const KIBIBYTE = 1024;
/** The size of a block in POSIX. */
const BLOCK = 512;

export function commandLimits(wanted: Partial<CommandLimits> = {}): CommandLimits {
  const { openFiles = OPEN_FILES, ...rest } = wanted;
  return {
    processes: Math.max(PROCESSES, PROCESSES_PER_PROCESSOR * availableParallelism()),
    fileBytes: FILE_BYTES,
    openFiles: Math.max(openFiles, LEAST_OPEN_FILES),
    ...rest,
  };
}

/**
 * Returns lines for the start of a script that runs inside the sandbox, if there is one. A limit that cannot be set is
 * already lower. `bash` and the system's `sh` differ in units and in the letter for processes.
 */
export function limitLines(limits: CommandLimits, where: { shell: "bash" | "sh"; sandboxed: boolean }): string {
  const { fileBytes, openFiles, addressSpaceBytes } = limits;
  const processes = processCeiling(limits, where.sandboxed);
  const letters = where.shell === "bash" ? ["u"] : ["u", "p"];
  const settings = [
    "ulimit -c 0",
    `ulimit -f ${Math.ceil(fileBytes / (where.shell === "bash" ? KIBIBYTE : BLOCK))}`,
    `ulimit -n ${openFiles}`,
    ...(addressSpaceBytes === undefined ? [] : [`ulimit -v ${Math.ceil(addressSpaceBytes / KIBIBYTE)}`]),
    ...(processes === undefined ? [] : [letters.map((letter) => `ulimit -${letter} ${processes}`).join(" || ")]),
  ];
  return `{ ${settings.join("; ")}; } 2>/dev/null\n`;
}

/** Returns the prefix of a program that is started without a shell; it goes after the launcher of a sandbox. */
export function limitedProgram(limits: CommandLimits, sandboxed: boolean): readonly string[] {
  return ["/bin/sh", "-c", `${limitLines(limits, { shell: "sh", sandboxed })}exec "$@"`, "sh"];
}

/**
 * The kernel counts all processes of a user; in a user namespace only those inside it (since Linux 5.14). When it
 * counts all, the currently running ones are added, up to the number of tasks on the machine.
 */
function processCeiling({ processes }: CommandLimits, sandboxed: boolean): number | undefined {
  if (process.platform !== "linux") return undefined;
  return sandboxed && countsByNamespace(release()) ? processes : processes + runningTasks();
}

function countsByNamespace(kernel: string): boolean {
  const [major = 0, minor = 0] = kernel.split(".").map((part) => Number.parseInt(part, 10));
  return major > 5 || (major === 5 && minor >= 14);
}

/** "0.1 0.1 0.1 2/345 6789": the second number of the fourth word. */
function runningTasks(): number {
  try {
    return Number(/ \d+\/(\d+) /.exec(readFileSync("/proc/loadavg", "latin1"))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

/**
 * Counts processes when running as root, for whom the kernel does not enforce the limit. Kills everything when there
 * are too many. Returns a function that stops counting.
 */
export function guardProcesses(family: ProcessFamily, limits: CommandLimits, onExceeded: () => void): () => void {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return () => undefined;
  const before = runningTasks();
  let looking = false;
  let looks = 0;
  const look = async (): Promise<void> => {
    if (looking) return;
    // A cheap check that is nearly always sufficient. Processes of others that end hide those of the command from it.
    if (runningTasks() - before <= limits.processes && ++looks < LOOKS_PER_COUNT) return;
    looks = 0;
    looking = true;
    if ((await membersOf(family)).length > limits.processes) {
      clearInterval(timer);
      onExceeded();
      await killFamily(family);
    }
    looking = false;
  };
  const timer = setInterval(() => void look(), GUARD_INTERVAL_MS);
  timer.unref();
  return () => clearInterval(timer);
}
