/**
 * What one command may use. The kernel holds most of it, set as soft and hard limits by the shell that starts the
 * command, so they hold in a sandbox and without one. Time is not among them: see `ShellsOptions.maxRunMs`.
 */
import { readFileSync } from "node:fs";
import { availableParallelism, release } from "node:os";
import { type Family, killFamily, membersOf } from "./family.ts";

export interface CommandLimits {
  /** Processes and threads at once. */
  readonly processes: number;
  /** Of one file that is written. */
  readonly fileBytes: number;
  readonly openFiles: number;
  /**
   * Of each process. Not limited unless told: runtimes with WebAssembly or a collector reserve far more than they use.
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
const KIBIBYTE = 1024;
/** What POSIX calls a block. */
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
 * Lines for the beginning of a script that runs inside the sandbox, if there is one. A limit that cannot be set is
 * lower already. `bash` and the `sh` of the system disagree about units and about the letter for processes.
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

/** Stands before a program that is started without a shell; to be put behind the launcher of a sandbox. */
export function limitedProgram(limits: CommandLimits, sandboxed: boolean): readonly string[] {
  return ["/bin/sh", "-c", `${limitLines(limits, { shell: "sh", sandboxed })}exec "$@"`, "sh"];
}

/**
 * The kernel counts all of a user's processes, in a user namespace only those in it (since Linux 5.14). Where it counts
 * everything, what runs already comes on top: that is never more than the whole machine runs.
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
 * No limit on processes holds for root, so for root someone has to count. Ends everything when there are too many.
 * Returns how to stop counting.
 */
export function guardProcesses(family: Family, limits: CommandLimits, onExceeded: () => void): () => void {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return () => undefined;
  const before = runningTasks();
  let looking = false;
  const look = async (): Promise<void> => {
    // Cheap, and nearly always the answer.
    if (looking || runningTasks() - before <= limits.processes) return;
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
