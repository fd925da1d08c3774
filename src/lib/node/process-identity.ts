import { readFileSync, readlinkSync } from "node:fs";

/**
 * When a process began, in the words of the operating system: with the pid it names a process for all time.
 * Undefined when there is no such process, empty when the system does not say.
 */
export async function startTime(pid: number): Promise<string | undefined> {
  if (!exists(pid)) return undefined;
  if (process.platform === "linux") return startTicks(pid);
  if (process.platform === "win32") return "";
  return listedStart(pid);
}

export async function isSameProcess(pid: number, started: string): Promise<boolean> {
  const now = await startTime(pid);
  return now !== undefined && (now === "" || started === "" || now === started);
}

/** Differs after every start of the machine; empty where the system does not say. */
export function bootId(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return "";
  }
}

/** The pid name space of this process: a pid means nothing in another one. Empty where the system does not say. */
export function pidNamespace(): string {
  try {
    return readlinkSync("/proc/self/ns/pid");
  } catch {
    return "";
  }
}

/**
 * The same for Linux, at once; elsewhere no process is found. Field 22 of /proc/<pid>/stat, where the name in field 2
 * may hold spaces and brackets. A zombie no longer runs.
 */
export function startTicks(pid: number): string | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" || fields[0] === "X" ? undefined : (fields[19] ?? "");
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "ENOENT" ? undefined : "";
  }
}

function exists(pid: number): boolean {
  if (!Number.isSafeInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

async function listedStart(pid: number): Promise<string | undefined> {
  const { execFile } = await import("node:child_process");
  const options = { timeout: 2000, env: { ...process.env, LC_ALL: "C" } };
  return new Promise((resolve) => {
    execFile("ps", ["-o", "lstart=", "-p", String(pid)], options, (error, output) => {
      if (error) resolve(error.code === 1 ? undefined : "");
      else resolve(output.trim());
    });
  });
}
