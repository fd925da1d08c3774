/**
 * Decides whether a command runs in bubblewrap. This folder contains the sandbox: `sandbox-entry.ts` starts the command
 * in it, and `sandbox-profile.ts` plans what it can access.
 */
import { existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { type Disk, nodeDisk, replaceFile } from "../../../lib/node/disk.ts";
import { smallText } from "../../../lib/node/small-file.ts";
import { ToolError } from "../../tool-error.ts";
import { sweepNetworkPipes } from "../network/network-bridge.ts";
import type { ProxyOptions } from "../network/network-proxy.ts";
import { namesIn } from "../process/processes.ts";
import { ExistingNames } from "./existing-names.ts";
import type { LeftBehind } from "./leftovers.ts";
import { LinkedSecrets } from "./linked-secrets.ts";
import { MountPoints } from "./mount-points.ts";
import { enterSandbox, hasInheritable } from "./sandbox-entry.ts";
import { HIDDEN_IN_HOME } from "./sandbox-hidden.ts";
import { WorkspaceScanner } from "./sandbox-scan.ts";
import { seccompFilter } from "./seccomp.ts";

export type SandboxMode = "auto" | "required" | "off";

export interface AllowedHosts extends Pick<ProxyOptions, "resolve" | "dial" | "localNetwork"> {
  readonly allowedHosts: readonly string[];
}

export interface SandboxOptions {
  readonly mode: SandboxMode;
  /** The folder with troupe's own state: hidden from commands, and used by the sandbox for its own files. */
  readonly stateRoot: string;
  /** Full network, none, or only these hosts through a proxy; see `network-rules.ts`. */
  readonly network?: boolean | AllowedHosts;
  /** True when commands may read `.env` files. */
  readonly environmentFiles?: boolean;
  /** Further folders that commands may change, such as the cache of a build tool. */
  readonly writable?: readonly string[];
  /** Further files and folders that commands cannot even read. */
  readonly denied?: readonly string[];
  /**
   * `strict` hides the home folder except for the workspace and the folders of tools; `open` hides only credentials.
   */
  readonly profile?: "open" | "strict";
  readonly home?: string;
  readonly disk?: Disk;
  /** Tracks which commands use which mount points. Sandboxes with the same state root in one process must share it. */
  readonly mountPoints?: MountPoints;
  /** Possible paths of bubblewrap; replaced only in tests. */
  readonly candidates?: readonly string[];
}

export interface SandboxRequest {
  /** Folders that the command may change, as real paths. Missing ones are left out. */
  readonly workspace: readonly string[];
  readonly cwd: string;
  readonly ownTerminal: boolean;
  readonly detached: boolean;
  /** True when the user agreed to run this command without a sandbox. */
  readonly unsandboxed?: boolean;
  /** True for a read-only workspace. */
  readonly readOnlyWorkspace?: boolean;
  /** True: it runs in a sandbox or not at all, whatever the mode. */
  readonly required?: boolean;
  /** Further real paths that this command may change. */
  readonly writable?: readonly string[];
  /** Paths in troupe's own state or in a temporary folder that this command can read. */
  readonly readable?: readonly string[];
  /** Further paths that this command cannot read. */
  readonly denied?: readonly string[];
  /** For a worktree of an agent: its access to the repository, as mounts, instead of the default. */
  readonly gitMounts?: readonly string[];
  /** Called with warnings for the user while it runs: a refused connection. */
  onWarning?(message: string): void;
}

export type PreparedSandbox =
  | {
      readonly kind: "sandboxed";
      /** Prefix of the command. */
      readonly launcher: readonly string[];
      /**
       * An alternative for a caller that passes the file `filter` as a descriptor itself and starts bash, which saves
       * two processes. Its bash must be `SANDBOX_BASH` and run the lines of `script` first.
       */
      readonly direct?: {
        readonly filter: string;
        launcher(filterDescriptor: number): readonly string[];
        readonly script: string;
      };
      readonly environment: Readonly<Record<string, string>>;
      /** Must be undone if this process is killed before `release`. */
      readonly left: LeftBehind;
      /** Call when the command has ended. Returns a text about what it had to undo. */
      release(): Promise<string | undefined>;
      /** Call instead for a command that outlives this process. */
      handOver(pid: number): Promise<void>;
    }
  | { readonly kind: "plain"; readonly warning?: string };

/** One per process. */
export interface Sandbox {
  /** The folder in which processes record the mount points of their commands. */
  readonly records: string;
  /** Returns whether the sandbox works here, and if not, why. Determined once. */
  probe(): Promise<Probe>;
  /** Throws a `ToolError` when the command must not run without a sandbox and there is none. */
  prepare(request: SandboxRequest): Promise<PreparedSandbox>;
  /** Cleans up after commands whose process was killed. Returns one sentence for each change it undid. */
  sweep(): Promise<string[]>;
  close(): Promise<void>;
}

type Probe =
  | { readonly available: true; readonly program: string }
  | { readonly available: false; readonly reason: string };

/** Never from PATH: a workspace could put its own program there. */
const SYSTEM_PLACES = ["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"];
/** Long, because a busy machine must not count as one without a sandbox. */
const PROBE_TIMEOUT_MS = 20_000;
const LAUNCHER_ENVIRONMENT = { PATH: "/usr/bin:/bin:/usr/sbin:/sbin" };
const MAX_REPORT_BYTES = 64 * 1024;

export function createSandbox(options: SandboxOptions): Sandbox {
  const { mode, disk = nodeDisk } = options;
  const folder = join(options.stateRoot, "sandbox");
  const mountPoints = options.mountPoints ?? new MountPoints(folder, disk);
  const scanner = new WorkspaceScanner();
  const credentials = new ExistingNames(HIDDEN_IN_HOME);
  const linkedSecrets = new LinkedSecrets(folder, disk);
  let probed: Promise<Probe> | undefined;
  let ready: Promise<SupportFiles> | undefined;
  let inheritsDescriptors: boolean | undefined;
  const probe = (): Promise<Probe> => {
    probed ??= probeSystem(options.candidates ?? SYSTEM_PLACES);
    return probed;
  };
  return {
    records: mountPoints.folder,
    probe,
    async prepare(given) {
      // A folder of the session may have been removed since. There is nothing to open then.
      const request = { ...given, workspace: given.workspace.filter((path) => existsSync(path)) };
      const needed = request.required ? "required" : mode;
      if (needed === "off") return { kind: "plain" };
      if (request.unsandboxed) return leave(needed);
      const result = await probe();
      const reason = result.available ? unfit(request.workspace) : result.reason;
      if (!result.available || reason !== undefined) return withoutSandbox(needed, reason ?? "");
      ready ??= prepareFolder(folder, { mountPoints, disk, onWarning: (message) => request.onWarning?.(message) });
      // The state folder may have been cleaned meanwhile.
      const files = existsSync((await ready).filter) ? await ready : await supportFiles(folder, disk);
      inheritsDescriptors ??= hasInheritable();
      const { program } = result;
      const parts = { mountPoints, disk, program, files, scanner, credentials, linkedSecrets, inheritsDescriptors };
      return enterSandbox({ request, options, ...parts });
    },
    sweep: async () => [...(await mountPoints.sweep()), ...(await takeReports(folder, disk))],
    close: () => mountPoints.close(),
  };
}

async function prepareFolder(
  folder: string,
  parts: { mountPoints: MountPoints; disk: Disk; onWarning(message: string): void },
): Promise<SupportFiles> {
  const { mountPoints, disk } = parts;
  for (const note of await mountPoints.sweep()) parts.onWarning(note);
  await sweepNetworkPipes(folder, disk);
  for (const note of await takeReports(folder, disk)) parts.onWarning(note);
  return supportFiles(folder, disk);
}

/** Returns notes of a watchdog or a detached command that had to undo something while no troupe was running. */
async function takeReports(folder: string, disk: Disk): Promise<string[]> {
  const notes: string[] = [];
  for (const name of namesIn(folder).filter((entry) => /^report-[\d-]+\.txt$/.test(entry))) {
    notes.push(smallText(join(folder, name), MAX_REPORT_BYTES)?.trim() ?? "");
    await disk.unlink(join(folder, name)).catch(() => undefined);
  }
  return notes.filter(Boolean);
}

/** Throws in mode `required`: commands must stay in the sandbox, even if the user agrees to leave it. */
function leave(mode: SandboxMode): PreparedSandbox {
  if (mode !== "required") return { kind: "plain" };
  throw new ToolError("Commands must run in a sandbox here; no command can leave it. Nothing was run.", {
    code: "denied",
  });
}

function withoutSandbox(mode: SandboxMode, reason: string): PreparedSandbox {
  if (mode === "required") {
    throw new ToolError(
      `sandbox.unavailable: commands must run in a sandbox here, and there is none: ${reason} Nothing was run.`,
      { code: "denied" },
    );
  }
  return { kind: "plain", warning: `Commands run without a sandbox: ${reason}` };
}

/** Returns why these folders cannot be a workspace of the sandbox. */
function unfit(workspace: readonly string[]): string | undefined {
  for (const path of workspace) {
    const real = realpathSync.native(path);
    // A writable root would undo every protection mounted before it.
    if (real === "/") return "the workspace is the whole machine. Start in a folder of its own.";
    // Inside, root has no additional rights and could not even read it.
    const { uid } = statSync(real);
    if (process.getuid?.() === 0 && uid !== 0)
      return `${real} belongs to user ${uid}. Start as that user, not as root.`;
  }
  return undefined;
}

async function probeSystem(candidates: readonly string[]): Promise<Probe> {
  if (process.platform !== "linux") return unavailable(`bubblewrap does not exist for ${process.platform}.`);
  if (seccompFilter(process.arch) === undefined) return unavailable(`there is no filter for ${process.arch} machines.`);
  const program = candidates.find(isSystemProgram);
  if (program === undefined) return unavailable("bubblewrap is not installed. Install the package bubblewrap (bwrap).");
  const { execFile } = await import("node:child_process");
  const basics = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-all", "--unshare-user"];
  return new Promise((resolve) => {
    execFile(
      program,
      [...basics, "--cap-drop", "ALL", "--die-with-parent", "--new-session", "true"],
      { timeout: PROBE_TIMEOUT_MS, killSignal: "SIGKILL", env: LAUNCHER_ENVIRONMENT },
      (error, _, errorText) => {
        if (!error) return resolve({ available: true, program });
        const said = error.killed ? "it did not answer in time" : errorText.trim().slice(0, 300) || error.message;
        resolve(unavailable(`bubblewrap does not work here (${said}). User namespaces may be switched off.`));
      },
    );
  });
}

const unavailable = (reason: string): Probe => ({ available: false, reason });

/** Accepts only programs that only the administrator can have installed. */
function isSystemProgram(path: string): boolean {
  try {
    const stat = statSync(realpathSync(path));
    return stat.isFile() && stat.uid === 0 && (stat.mode & 0o022) === 0 && (stat.mode & 0o111) !== 0;
  } catch {
    return false;
  }
}

export interface SupportFiles {
  /** The seccomp filter. */
  readonly filter: string;
}

async function supportFiles(folder: string, disk: Disk): Promise<SupportFiles> {
  const filter = join(folder, `seccomp-${process.arch}.bpf`);
  await disk.mkdir(folder);
  await ensure(filter, seccompFilter(process.arch) ?? Buffer.alloc(0), disk);
  return { filter };
}

async function ensure(path: string, content: Buffer, disk: Disk): Promise<void> {
  const isCurrent = existsSync(path) && readFileSync(path).equals(content);
  if (!isCurrent) await replaceFile(disk, path, content);
}
