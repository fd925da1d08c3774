/** Starts one command in bubblewrap, and undoes what it must not leave behind. */

import { existsSync, realpathSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { defined } from "../../../lib/defined.ts";
import type { Disk } from "../../../lib/node/disk.ts";
import { isInside } from "../../../lib/node/paths.ts";
import { smallText } from "../../../lib/node/small-file.ts";
import { ToolError } from "../../tool-error.ts";
import { type NetworkBridge, openNetworkBridge } from "../network/network-bridge.ts";
import { hostRules } from "../network/network-rules.ts";
import { namesIn, startOf } from "../process/processes.ts";
import { secondNames } from "../second-names.ts";
import type { ExistingNames } from "./existing-names.ts";
import { cleanUpHere } from "./left-behind.ts";
import type { LeftBehind } from "./leftovers.ts";
import type { LinkedSecrets } from "./linked-secrets.ts";
import type { Mount } from "./mount.ts";
import { mountCheck } from "./mount-check.ts";
import type { MountPoints } from "./mount-points.ts";
import { realPath, Unprotectable } from "./path-kinds.ts";
import type { PreparedSandbox, SandboxOptions, SandboxRequest, SupportFiles } from "./sandbox.ts";
import { type MountPlan, planMounts, type SandboxProfile } from "./sandbox-profile.ts";
import { type Found, TooLarge, type WorkspaceScanner } from "./sandbox-scan.ts";

/** The filter is passed on a descriptor that must be opened again for every start. */
const OPEN_FILTER = 'exec 9<"$1"; shift; exec "$@"';
/** Also opens the pipes of the network. */
const OPEN_PIPES = 'exec 9<"$1" 7<"$2" 8>"$3"; shift 3; exec "$@"';
const FILTER_DESCRIPTOR = 9;
/** How often the mounts are planned again when the workspace changes meanwhile. */
const MAX_PLANS = 4;
const WATCH_MS = 1000;

export interface SandboxEntry {
  readonly request: SandboxRequest;
  readonly options: SandboxOptions;
  readonly mountPoints: MountPoints;
  readonly disk: Disk;
  readonly program: string;
  readonly files: SupportFiles;
  readonly scanner: WorkspaceScanner;
  readonly credentials: ExistingNames;
  readonly linkedSecrets: LinkedSecrets;
  /** See `hasInheritable`. */
  readonly inheritsDescriptors: boolean;
}

export async function enterSandbox(entry: SandboxEntry): Promise<PreparedSandbox> {
  const { request, options } = entry;
  const roots = workspaceRoots(request, options.stateRoot);
  const { plan, held } = await hold(entry, roots);
  const left: LeftBehind = { points: plan.points, links: plan.links, trees: held.known };
  const bridge = await bridgeOf(entry).catch(async (error: unknown) => {
    await held.release(left);
    throw error;
  });
  const before = launcherOf(entry, plan, bridge);
  const script = firstScript(entry, plan, bridge);
  // The mount check must not run a program found through PATH.
  const checked = script === "" ? [] : [SANDBOX_BASH, "--noprofile", "--norc", "-c", `${script}exec "$@"`, "bash"];
  /** Returns the dangerous entries that exist now, or undefined when there are too many to search. */
  const entriesNow = async (): Promise<LeftBehind["now"]> => {
    const searches = plan.trees.map(async ({ root }) => ({
      root,
      ...(await entry.scanner.scan(root)),
    }));
    return Promise.all(searches).catch(() => undefined);
  };
  const stopWatching = watch(left, entriesNow, (message) => request.onWarning?.(message));
  return {
    kind: "sandboxed",
    launcher: [
      ...["/bin/sh", "-c", bridge ? OPEN_PIPES : OPEN_FILTER, "sh", entry.files.filter, ...(bridge?.pipes ?? [])],
      ...[...before(FILTER_DESCRIPTOR), ...checked, ...(bridge?.inside ?? [])],
    ],
    ...(!bridge && { direct: { filter: entry.files.filter, launcher: before, script } }),
    // The home folder is read-only, and most tools store their caches there.
    environment: { XDG_CACHE_HOME: "/tmp/.cache", TMPDIR: "/tmp", ...bridge?.environment },
    left,
    async release() {
      stopWatching();
      await bridge?.close();
      const now = await entriesNow();
      const notes = await held.release({ ...left, ...defined({ now }) });
      return notes.join(" ") || undefined;
    },
    async handOver(pid) {
      await held.handOver(pid, left);
      // Its keeper searches too, but rarely. While this process lives, it searches as often as for other commands.
      const started = startOf(pid);
      stopWatching.when(() => startOf(pid) !== started);
    },
  };
}

function homeOf({ home = homedir() }: SandboxOptions): string {
  return existsSync(home) ? realpathSync.native(home) : home;
}

/** Plans the mounts and creates their mount points. Plans again when the workspace changes in between. */
async function hold(
  entry: SandboxEntry,
  roots: WorkspaceRoots,
): Promise<{ plan: MountPlan; held: ReturnType<MountPoints["hold"]> }> {
  const { options, mountPoints } = entry;
  for (let attempt = 1; ; attempt++) {
    const workspace = await Promise.all(
      roots.guarded.map(async (root) => ({ root, found: await search(entry, root) })),
    );
    const alsoHidden = await furtherSecrets(entry, roots, workspace);
    await mountPoints.settled();
    const plan = planOrThrow(entry, { ...roots, workspace, alsoHidden });
    const held = mountPoints.hold(plan);
    try {
      await held.make();
      return { plan, held };
    } catch (error) {
      await held.release({ points: plan.points, links: [], trees: [] });
      if (attempt < MAX_PLANS) continue;
      const reason = error instanceof Error ? error.message : String(error);
      throw new ToolError(
        `The sandbox could not be set up: ${reason} Nothing was run. Check that ${options.stateRoot} and the workspace can be written.`,
      );
    }
  }
}

/** Returns paths that show the same as a `.env` file, and files that a `.env` link led to before. */
async function furtherSecrets(
  { request, options, linkedSecrets }: SandboxEntry,
  roots: WorkspaceRoots,
  workspace: SandboxProfile["workspace"],
): Promise<string[]> {
  if (options.environmentFiles) return [];
  try {
    const before: string[] = [];
    for (const { root, found } of workspace)
      before.push(...(await linkedSecrets.remember(root, found.environmentTargets)));
    for (const path of before) request.onWarning?.(staysHidden(path, linkedSecrets.path));
    const secrets = [...workspace.flatMap(({ found }) => found.environmentFiles), ...before];
    return [...before, ...(await secondNames(secrets, [...roots.guarded, ...roots.own]))];
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ToolError(`The sandbox cannot protect this workspace: ${reason} Nothing was run.`);
  }
}

const staysHidden = (path: string, list: string): string =>
  `${path} stays hidden from commands, because a .env link led to it. To show it to them, remove its line from ${list}.`;

async function search({ scanner, options }: SandboxEntry, root: string): Promise<Found> {
  try {
    const found = await scanner.scan(root);
    const [odd] = found.unnameable;
    const [link] = options.environmentFiles ? [] : found.oddLinks;
    if (odd === undefined && link === undefined) return found;
    const what = odd ? `A name in ${odd.folder} is` : `${link} leads to a name that is`;
    throw new ToolError(
      `${what} not valid UTF-8, so the sandbox cannot protect what lies there. Nothing was run. Rename it.`,
    );
  } catch (error) {
    if (!(error instanceof TooLarge)) throw error;
    throw new ToolError(
      `${error.message} The sandbox cannot search so many for .env files and nested repositories. Nothing was run. ` +
        "Start troupe in a smaller folder.",
    );
  }
}

function planOrThrow(
  { request, options, mountPoints, credentials }: SandboxEntry,
  roots: WorkspaceRoots & { workspace: SandboxProfile["workspace"]; alsoHidden: readonly string[] },
): MountPlan {
  const real = (paths: readonly string[]): string[] =>
    paths.map((path) => realPath(path)).filter((path) => path !== undefined);
  const home = homeOf(options);
  try {
    return planMounts({
      workspace: roots.workspace,
      writable: [...roots.own, ...real([...(options.writable ?? []), ...(request.writable ?? [])])],
      readable: real(request.readable ?? []),
      denied: real([...(options.denied ?? []), ...(request.denied ?? []), ...roots.alsoHidden]),
      readOnlyWorkspace: request.readOnlyWorkspace ?? false,
      home,
      credentials: credentials.in(home),
      stateRoot: options.stateRoot,
      temporaryFolders: [tmpdir(), "/tmp", "/var/tmp"],
      homeView:
        options.profile === "strict" ? { kind: "strict", searchPath: process.env.PATH ?? "" } : { kind: "open" },
      environmentFiles: options.environmentFiles ?? false,
      placeholders: mountPoints.placeholders(),
      isFixed: mountPoints.fixedPaths(),
      heldLinks: mountPoints.heldLinks(),
      gitMounts: request.gitMounts,
    });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const advice = error instanceof Unprotectable ? "" : " Check the rights of the folders in it.";
    throw new ToolError(`The sandbox cannot protect this workspace: ${reason} Nothing was run.${advice}`);
  }
}

interface WorkspaceRoots {
  /** Searched and protected. */
  readonly guarded: readonly string[];
  /** Folders of troupe's own state that the command may write; they are never opened as a project. */
  readonly own: readonly string[];
}

function workspaceRoots({ workspace, cwd }: SandboxRequest, stateRoot: string): WorkspaceRoots {
  const all = [...new Set(workspace.map((path) => realpathSync.native(path)))];
  const tops = all.filter((path) => !all.some((other) => other !== path && isInside(path, [other])));
  const state = existsSync(stateRoot) ? realpathSync.native(stateRoot) : stateRoot;
  const isOwn = (path: string): boolean => isInside(path, [state]) && !isInside(cwd, [path]);
  return { guarded: tops.filter((path) => !isOwn(path)), own: tops.filter(isOwn) };
}

/** Returns bubblewrap and its arguments; the seccomp filter is on the given descriptor. */
function launcherOf(
  { request, options, program }: SandboxEntry,
  plan: MountPlan,
  bridge: NetworkBridge | undefined,
): (filterDescriptor: number) => string[] {
  return (filterDescriptor) => [
    program,
    ...["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"],
    ...["--ro-bind-try", "/proc/sysrq-trigger", "/proc/sysrq-trigger"],
    ...plan.mounts.flatMap(mountArguments),
    ...["--unshare-all", "--unshare-user", ...(options.network === true ? ["--share-net"] : []), "--cap-drop", "ALL"],
    ...(request.detached ? [] : ["--die-with-parent"]),
    ...(request.ownTerminal ? [] : ["--new-session"]),
    ...["--chdir", request.cwd],
    ...(bridge ? ["--ro-bind", process.execPath, process.execPath] : []),
    ...["--seccomp", String(filterDescriptor), "--"],
  ];
}

/** Returns lines of bash that must run before the command, or an empty text. */
function firstScript(
  { request, mountPoints, inheritsDescriptors }: SandboxEntry,
  plan: MountPlan,
  bridge: NetworkBridge | undefined,
): string {
  const kept = [0, 1, 2, ...(request.detached || request.ownTerminal ? [] : [3]), ...(bridge ? [7, 8] : [])];
  // Without another command nothing can be swapped, and names at the top cannot be swapped by one.
  const check = plan.isMovable || mountPoints.isShared() ? mountCheck(plan.mounts, ["/dev", "/proc"]) : "";
  return (inheritsDescriptors ? closeOthers(kept) : "") + check;
}

/**
 * Returns lines of bash that close every descriptor but these. The parent of troupe may have left others open, and an
 * open folder outside leads out of the sandbox.
 */
const closeOthers = (kept: readonly number[]): string => `
for __troupe_fd in /proc/self/fd/*; do
  __troupe_fd=\${__troupe_fd##*/}
  case $__troupe_fd in ${kept.join("|")}) ;; *) exec {__troupe_fd}>&- ;; esac
done
unset __troupe_fd
`;

const CLOSE_ON_EXEC = 0o2000000;

/**
 * Returns whether this process has a descriptor that a child would inherit, besides stdin, stdout and stderr. Node
 * opens none, so the answer never changes.
 */
export function hasInheritable(): boolean {
  return namesIn("/proc/self/fdinfo").some((fd) => {
    const [, flags] =
      Number(fd) > 2 ? (/^flags:\s+(\d+)/m.exec(smallText(`/proc/self/fdinfo/${fd}`, 4096) ?? "") ?? []) : [];
    return flags !== undefined && (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0;
  });
}

export const SANDBOX_BASH = existsSync("/bin/bash") ? "/bin/bash" : "bash";

function mountArguments({ kind, path }: Mount): string[] {
  switch (kind) {
    case "bind":
      return ["--bind", path, path];
    case "ro-bind":
      return ["--ro-bind", path, path];
    case "scratch":
      return ["--tmpfs", path];
    case "empty folder":
      // It cannot be written, and it is several times cheaper than a read-only mount.
      return ["--perms", "0555", "--tmpfs", path];
    case "empty file":
      return ["--ro-bind", "/dev/null", path];
  }
}

/**
 * Searches repeatedly while a command runs, so that a long one leaves nothing dangerous in place for long. A search
 * takes at most a twentieth of the time. Returns a function that stops it, now or `when` a condition is true.
 */
function watch(
  left: LeftBehind,
  entriesNow: () => Promise<LeftBehind["now"]>,
  onWarning: (message: string) => void,
): (() => void) & { when(isOver: () => boolean): void } {
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  let isOver = (): boolean => false;
  const look = async (): Promise<void> => {
    if (isOver()) return;
    const begun = performance.now();
    const now = await entriesNow();
    if (stopped) return;
    for (const note of now === undefined ? [] : cleanUpHere({ ...left, points: [], now })) onWarning(note);
    schedule(Math.max(WATCH_MS, (performance.now() - begun) * 20));
  };
  const schedule = (delay: number): void => {
    timer = setTimeout(() => void look(), delay).unref();
  };
  if (left.trees.length > 0 || left.links.length > 0) schedule(WATCH_MS);
  const stop = (): void => {
    stopped = true;
    clearTimeout(timer);
  };
  const when = (condition: () => boolean): void => {
    isOver = condition;
  };
  return Object.assign(stop, { when });
}

/** Opens a bridge only when some hosts are allowed; otherwise nothing in the sandbox leads out. */
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
