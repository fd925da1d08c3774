/**
 * Commands that outlive us. What is known of them lies in files, so that a later session can read and stop them:
 * `<name>.log` with the output, `<name>.pid` with what identifies the process, `<name>.exit` with the exit code.
 */
import { closeSync, openSync, readFileSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { type Disk, writeNewFile } from "../../lib/node/disk.ts";
import { endFamily, familyOf } from "./family.ts";
import { tidy } from "./output.ts";
import { namesIn, startOf } from "./processes.ts";

const MAX_LOG_BYTES = 64 * 1024 * 1024;
const MAX_READ_BYTES = 256 * 1024;

const PidFile = z.object({
  shellId: z.string(),
  command: z.string(),
  pid: z.int().positive(),
  started: z.string(),
  mark: z.string(),
});

export interface DetachedShell extends z.infer<typeof PidFile> {
  readonly log: string;
  /** Undefined while it runs, and when it was killed. */
  readonly exitCode: number | undefined;
  readonly running: boolean;
}

/**
 * Cuts the log at its limit without disturbing the command, and notes the exit code. Descriptor 3 is the file for it;
 * the arguments are the command.
 */
const KEEPER = `
"$@" 2>&1 </dev/null 3>&- | { head -c ${MAX_LOG_BYTES}; exec cat >/dev/null; } 3>&-
printf '%s' "\${PIPESTATUS[0]}" >&3
`;

export async function startDetached(what: {
  readonly shellId: string;
  readonly command: string;
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly mark: string;
  readonly folder: string;
  readonly now: number;
  readonly disk: Disk;
  /** Called when it ends while we live. */
  onEnd(): void;
}): Promise<DetachedShell> {
  const { disk, shellId, command, mark } = what;
  const { spawn } = await import("node:child_process");
  const base = join(what.folder, `shell-detached-${shellId}-${what.now}`);
  const log = await disk.openExclusive(`${base}.log`);
  const exit = await disk.openExclusive(`${base}.exit`);
  try {
    const child = spawn("bash", ["--noprofile", "--norc", "-c", KEEPER, "bash", ...what.argv], {
      cwd: what.cwd,
      env: { ...what.environment },
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

export function stopDetached(shell: DetachedShell): Promise<void> {
  return shell.running ? endFamily(familyOf(shell.pid, shell.mark)) : Promise.resolve();
}

/** The log from `offset` on, of a long piece the end. */
export function readDetachedLog(log: string, offset: number): { text: string; next: number } {
  const size = detachedLogSize(log);
  const from = Math.max(offset, size - MAX_READ_BYTES);
  const bytes = Buffer.alloc(Math.max(0, size - from));
  const fd = openSync(log, "r");
  try {
    const length = readSync(fd, bytes, 0, bytes.length, from);
    const skipped = from > offset ? `[${from - offset} bytes left out here. All of it is in ${log}]\n` : "";
    return { text: skipped + tidy(bytes.toString("utf8", 0, length)), next: from + length };
  } finally {
    closeSync(fd);
  }
}

export function detachedLogSize(log: string): number {
  return statSync(log, { throwIfNoEntry: false })?.size ?? 0;
}

function readDetached(base: string): DetachedShell | undefined {
  try {
    const file = PidFile.parse(JSON.parse(readFileSync(`${base}.pid`, "utf8")));
    const exit = Number.parseInt(readFileSync(`${base}.exit`, "utf8"), 10);
    const exitCode = Number.isNaN(exit) ? undefined : exit;
    const running = exitCode === undefined && startOf(file.pid) === file.started && isAlive(file.pid);
    return { ...file, log: `${base}.log`, exitCode, running };
  } catch {
    return undefined;
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
