/**
 * Puts a command into bubblewrap. What it can touch there is decided in `sandbox-profile.ts`; here is decided whether
 * it runs there at all, and how it is started.
 */
import { existsSync, lstatSync, readFileSync, readlinkSync, realpathSync, statSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { type Disk, nodeDisk, replaceFile } from "../../lib/node/disk.ts";
import { ToolError } from "../tool.ts";
import { MountPoints } from "./mount-points.ts";
import { type NetworkBridge, openNetworkBridge, sweepNetworkPipes } from "./network-bridge.ts";
import type { ProxyOptions } from "./network-proxy.ts";
import { hostRules } from "./network-rules.ts";
import { sandboxMounts } from "./sandbox-profile.ts";
import { seccompFilter } from "./seccomp.ts";

export type SandboxMode = "auto" | "required" | "off";

export interface AllowedHosts extends Pick<ProxyOptions, "resolve" | "dial" | "localNetwork"> {
  readonly allowedHosts: readonly string[];
}

export interface SandboxOptions {
  readonly mode: SandboxMode;
  /** The folder with troupe's own state: hidden from commands, and where the sandbox keeps what it needs. */
  readonly stateRoot: string;
  /** All of it, none, or only these hosts, through a proxy; see `network-rules.ts`. */
  readonly network?: boolean | AllowedHosts;
  /** Whether commands may read `.env` files. */
  readonly environmentFiles?: boolean;
  /** Further folders that commands may change, such as the cache of a build tool. */
  readonly writable?: readonly string[];
  /** Further files and folders that commands cannot even read. */
  readonly denied?: readonly string[];
  /** `strict` hides the home folder but for the workspace and where tools lie; `open` only credentials. */
  readonly profile?: "open" | "strict";
  readonly home?: string;
  readonly disk?: Disk;
  /** Who uses which mount point. Sandboxes with one state root in one process must share it. */
  readonly mountPoints?: MountPoints;
  /** Where bubblewrap may be; only tests give other places. */
  readonly candidates?: readonly string[];
}

interface SandboxRequest {
  /** Real paths; what the command may change. */
  readonly workspace: readonly string[];
  readonly cwd: string;
  readonly ownTerminal: boolean;
  readonly detached: boolean;
  /** A person has agreed to this one without a sandbox. */
  readonly unsandboxed?: boolean;
  /** Real paths that this one may change too. */
  readonly writable?: readonly string[];
  /** For a work tree of an agent: what it may touch of its repository, as mounts, instead of the usual. */
  readonly gitMounts?: readonly string[];
  /** Something people should see while it runs: a refused connection. */
  onWarning?(message: string): void;
}

export type Prepared =
  | {
      readonly kind: "sandboxed";
      /** Stands before the command. */
      readonly launcher: readonly string[];
      readonly environment: Readonly<Record<string, string>>;
      /** To be called when the command has ended; says what it had to undo. */
      release(): Promise<string | undefined>;
      /** To be called instead for a command that outlives us. */
      handOver(pid: number): Promise<void>;
    }
  | { readonly kind: "plain"; readonly warning?: string };

/** One per process. */
export interface Sandbox {
  /** Whether it works here, and if not, why. Looked up once. */
  probe(): Promise<Probe>;
  /** Throws a `ToolError` when the command must not run without a sandbox and there is none. */
  prepare(request: SandboxRequest): Promise<Prepared>;
  close(): Promise<void>;
}

type Probe =
  | { readonly available: true; readonly program: string }
  | { readonly available: false; readonly reason: string };

/** Never from PATH: a workspace could put its own program there. */
const SYSTEM_PLACES = ["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"];
const PROBE_TIMEOUT_MS = 2000;
const LAUNCHER_ENVIRONMENT = { PATH: "/usr/bin:/bin:/usr/sbin:/sbin" };
/** The filter comes in on a descriptor that has to be opened anew for every start. */
const OPEN_FILTER = 'exec 9<"$1"; shift; exec "$@"';
/** The pipes of the network beside it. */
const OPEN_PIPES = 'exec 9<"$1" 7<"$2" 8>"$3"; shift 3; exec "$@"';

export function createSandbox(options: SandboxOptions): Sandbox {
  const { mode, disk = nodeDisk } = options;
  const folder = join(options.stateRoot, "sandbox");
  const mountPoints = options.mountPoints ?? new MountPoints(folder, disk);
  const told = new Set<string>();
  let probed: Promise<Probe> | undefined;
  let ready: Promise<SupportFiles> | undefined;
  const probe = (): Promise<Probe> => {
    probed ??= probeSystem(options.candidates ?? SYSTEM_PLACES);
    return probed;
  };
  return {
    probe,
    async prepare(request) {
      if (mode === "off") return { kind: "plain" };
      if (request.unsandboxed) return leave(mode);
      const result = await probe();
      const reason = result.available ? unfit(request.workspace) : result.reason;
      if (!result.available || reason !== undefined) return withoutSandbox(mode, reason ?? "");
      ready ??= prepareFolder(folder, { mountPoints, disk });
      const { program } = result;
      return enter({ request, options, mountPoints, disk, program, files: await ready, told });
    },
    close: () => mountPoints.close(),
  };
}

async function prepareFolder(
  folder: string,
  { mountPoints, disk }: { mountPoints: MountPoints; disk: Disk },
): Promise<SupportFiles> {
  await mountPoints.sweep();
  await sweepNetworkPipes(folder, disk);
  return supportFiles(folder, disk);
}

async function enter(what: {
  request: SandboxRequest;
  options: SandboxOptions;
  mountPoints: MountPoints;
  disk: Disk;
  program: string;
  files: SupportFiles;
  /** Workspaces of which people know that they are too large. */
  told: Set<string>;
}): Promise<Prepared> {
  const { request, options, mountPoints, disk } = what;
  await mountPoints.settled();
  const mounts = sandboxMounts({
    ...request,
    workspace: request.workspace.map((path) => realpathSync(path)),
    home: options.home ?? homedir(),
    stateRoot: options.stateRoot,
    temporaryFolders: [tmpdir(), "/tmp", "/var/tmp"],
    writable: [...(options.writable ?? []), ...(request.writable ?? [])]
      .filter((path) => existsSync(path))
      .map((path) => realpathSync(path)),
    denied: (options.denied ?? []).filter((path) => existsSync(path)).map((path) => realpathSync(path)),
    homeView: options.profile === "strict" ? { kind: "strict", searchPath: process.env.PATH ?? "" } : { kind: "open" },
    network: options.network === true,
    environmentFiles: options.environmentFiles ?? false,
    placeholders: mountPoints.placeholders(),
    emptyFile: what.files.empty,
  });
  for (const folder of mounts.unseen.filter((path) => !what.told.has(path))) {
    what.told.add(folder);
    request.onWarning?.(
      `${folder} is too large to be searched whole before a command: .env files deep in it may be readable. ` +
        "Name what must stay hidden in sandbox.deniedPaths of your settings.",
    );
  }
  const held = mountPoints.hold(mounts.mountPoints);
  await held.recorded;
  for (const path of mounts.made) if (!existsSync(path)) await disk.mkdir(path);
  const redirected = redirectableRepositories(request.workspace);
  const links = mounts.links.map((path) => ({ path, was: meaningOf(path) }));
  const bridge = await bridgeOf(what);
  return {
    kind: "sandboxed",
    launcher: [
      ...["/bin/sh", "-c", bridge ? OPEN_PIPES : OPEN_FILTER, "sh", what.files.filter, ...(bridge?.pipes ?? [])],
      what.program,
      ...mounts.arguments,
      ...(bridge ? ["--ro-bind", process.execPath, process.execPath] : []),
      ...["--seccomp", "9", "--"],
      ...(bridge?.inside ?? []),
    ],
    // The home folder cannot be written, and most tools keep their caches there.
    environment: { XDG_CACHE_HOME: "/tmp/.cache", TMPDIR: "/tmp", ...bridge?.environment },
    async release() {
      await bridge?.close();
      await held.release();
      const undone = [await undoRedirection(redirected, disk), await undoReplacement(links, disk)];
      return undone.filter((one) => one !== undefined).join(" ") || undefined;
    },
    handOver: (pid) => held.handOver(pid),
  };
}

/** Only where some hosts are allowed; otherwise there is nothing in the sandbox that leads out. */
async function bridgeOf(what: {
  request: SandboxRequest;
  options: SandboxOptions;
  disk: Disk;
}): Promise<NetworkBridge | undefined> {
  const { network, stateRoot } = what.options;
  if (typeof network !== "object" || network.allowedHosts.length === 0) return undefined;
  const { allowedHosts, ...more } = network;
  return openNetworkBridge({
    ...more,
    rules: hostRules(allowedHosts),
    folder: join(stateRoot, "sandbox"),
    disk: what.disk,
    onWarning: (message) => what.request.onWarning?.(message),
  });
}

/** What must run in a sandbox stays in it, whoever agrees to something else. */
function leave(mode: SandboxMode): Prepared {
  if (mode !== "required") return { kind: "plain" };
  throw new ToolError("Commands must run in a sandbox here; no command can leave it. Nothing was run.", {
    code: "denied",
  });
}

function withoutSandbox(mode: SandboxMode, reason: string): Prepared {
  if (mode === "required") {
    throw new ToolError(
      `sandbox.unavailable: commands must run in a sandbox here, and there is none: ${reason} Nothing was run.`,
      { code: "denied" },
    );
  }
  return { kind: "plain", warning: `Commands run without a sandbox: ${reason}` };
}

/** Why these folders cannot be a workspace of the sandbox. */
function unfit(workspace: readonly string[]): string | undefined {
  for (const path of workspace) {
    const real = realpathSync(path);
    // A writable root would undo every protection that was mounted before it.
    if (real === "/") return "the workspace is the whole machine. Start in a folder of its own.";
    // Inside, root has no more rights than others, and could not even read it.
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

/** Only what nobody but the administrator can have put there. */
function isSystemProgram(path: string): boolean {
  try {
    const stat = statSync(realpathSync(path));
    return stat.isFile() && stat.uid === 0 && (stat.mode & 0o022) === 0 && (stat.mode & 0o111) !== 0;
  } catch {
    return false;
  }
}

interface SupportFiles {
  readonly filter: string;
  readonly empty: string;
}

async function supportFiles(folder: string, disk: Disk): Promise<SupportFiles> {
  const filter = join(folder, `seccomp-${process.arch}.bpf`);
  const empty = join(folder, "empty");
  await disk.mkdir(folder);
  await ensure(filter, seccompFilter(process.arch) ?? Buffer.alloc(0), disk);
  await ensure(empty, Buffer.alloc(0), disk);
  return { filter, empty };
}

async function ensure(path: string, content: Buffer, disk: Disk): Promise<void> {
  const isCurrent = existsSync(path) && readFileSync(path).equals(content);
  if (!isCurrent) await replaceFile(disk, path, content);
}

/**
 * A file named commondir in `.git` would make git take its configuration from elsewhere. It cannot be masked, because
 * git trips over an empty one; so one that appears during a command is taken away after it.
 */
function redirectableRepositories(workspace: readonly string[]): string[] {
  return workspace
    .filter((path) => existsSync(join(path, ".git", "HEAD")))
    .map((path) => join(path, ".git", "commondir"))
    .filter((path) => !existsSync(path));
}

async function undoRedirection(paths: readonly string[], disk: Disk): Promise<string | undefined> {
  const made = paths.filter((path) => existsSync(path));
  for (const path of made) await disk.unlink(path).catch(() => undefined);
  return made.length === 0 ? undefined : `Removed ${made.join(", ")}: it redirects git to a foreign configuration.`;
}

/** What a link says, and what stands at its end. */
function meaningOf(path: string): string | undefined {
  try {
    const end = statSync(path, { throwIfNoEntry: false });
    return `${readlinkSync(path)}\n${end === undefined ? "nothing" : `${end.dev}:${end.ino}`}`;
  } catch {
    return undefined; // no link
  }
}

/** A protected name that a repository made a link can be replaced, or its end be made: then the name is taken away. */
async function undoReplacement(
  links: readonly { readonly path: string; readonly was: string | undefined }[],
  disk: Disk,
): Promise<string | undefined> {
  const replaced = links.filter(({ path, was }) => isSomething(path) && meaningOf(path) !== was);
  const moved: string[] = [];
  for (const { path } of replaced) {
    const aside = `${path}.replaced-${Math.random().toString(36).slice(2, 8)}`;
    await disk.rename(path, aside).then(
      () => moved.push(`${path} to ${aside}`),
      () => undefined,
    );
  }
  return moved.length === 0 ? undefined : `Moved ${moved.join(", ")}: a command has changed where it leads.`;
}

function isSomething(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}
