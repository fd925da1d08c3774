import { readFileSync, readlinkSync } from "node:fs";

/**
 * Returns the start time of a process, in the operating system's format. With the pid it identifies a process forever.
 * Returns undefined if there is no such process, and an empty text if the system does not report it.
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

/** Returns an id that changes with every boot; empty if the system does not report it. */
export function bootId(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return "";
  }
}

/** Returns the pid namespace of this process: a pid is valid only within it. Empty if the system does not report it. */
export function pidNamespace(): string {
  try {
    return readlinkSync("/proc/self/ns/pid");
  } catch {
    return "";
  }
}

/**
 * Like `startTime`, synchronously and for Linux only; elsewhere no process is found. Reads field 22 of
 * /proc/<pid>/stat; the name in field 2 may contain spaces and brackets. A zombie counts as ended.
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
