/**
 * What a sandboxed command sees, as arguments of bubblewrap. The order counts: later mounts lie over earlier ones. The
 * machine is readable, temp and credential folders are empty, the workspace is writable, and in the workspace nothing
 * that runs by itself later (hooks, editor tasks, our own settings) can be changed, not even by creating it.
 */
import { existsSync, lstatSync, readFileSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve, sep } from "node:path";
import { hiddenHome } from "./sandbox-home.ts";
import { entriesOf, scanWorkspace } from "./sandbox-scan.ts";

interface SandboxProfile {
  /** Real paths; what the command may change. */
  readonly workspace: readonly string[];
  readonly cwd: string;
  readonly home: string;
  /** The folder with troupe's own state, out of sight. */
  readonly stateRoot: string;
  readonly temporaryFolders: readonly string[];
  /** Real paths outside the workspace that may be changed too. */
  readonly writable: readonly string[];
  /** Further paths that cannot even be read, wherever they lie. */
  readonly denied: readonly string[];
  /** What of the home folder can be read: everything but credentials, or only tools found by this PATH. */
  readonly homeView: { readonly kind: "open" } | { readonly kind: "strict"; readonly searchPath: string };
  readonly network: boolean;
  /** Whether `.env` files may be read. */
  readonly environmentFiles: boolean;
  /** A terminal made for this command alone; anyone else's must be out of its reach. */
  readonly ownTerminal: boolean;
  /** Whether it may outlive us. */
  readonly detached: boolean;
  /** Empty things on the disk that only serve as mount points of running commands: they count as missing. */
  readonly placeholders: ReadonlySet<string>;
  /** An empty file to lay over missing ones; a device cannot be opened inside. */
  readonly emptyFile: string;
  /** What a linked work tree may touch of its repository, decided by whoever made it. */
  readonly gitMounts?: readonly string[];
}

interface Mounts {
  readonly arguments: string[];
  /** Names that bubblewrap will create on the disk to mount on them; parents before children. */
  readonly mountPoints: readonly MountPoint[];
  /** Protected names that are links: nothing can be mounted on them, so they have to be looked at afterwards. */
  readonly links: readonly string[];
  /** Mount points that must be there before bubblewrap starts, because what is mounted on them is themselves. */
  readonly made: readonly string[];
  /** Workspaces that are too large to be searched whole. */
  readonly unseen: readonly string[];
}

export interface MountPoint {
  readonly path: string;
  readonly kind: "file" | "folder";
}

interface Plan {
  readonly points: MountPoint[];
  readonly links: string[];
  readonly made: string[];
  readonly unseen: string[];
  readonly placeholders: ReadonlySet<string>;
  readonly emptyFile: string;
  readonly gitMounts?: readonly string[] | undefined;
}

const PROTECTED_FOLDERS = [".troupe", ".vscode", ".idea"];
const PROTECTED_FILES = [".mcp.json", ".envrc", ".gitmodules"];
/** What we would run or obey ourselves; what else lies beside it can be changed. */
const PROTECTED_PARTS: Readonly<Record<string, readonly string[]>> = {
  ".github": ["hooks", "copilot", "mcp.json"],
  ".claude": ["hooks", "settings.json", "settings.local.json"],
};
const HOME_FILES = [
  ".bashrc",
  ".bash_profile",
  ".bash_login",
  ".profile",
  ".zshrc",
  ".zshenv",
  ".zprofile",
  ".gitconfig",
];
const CREDENTIALS = [
  ".ssh",
  ".aws",
  ".config/gh",
  ".gnupg",
  ".kube",
  ".azure",
  ".docker",
  ".config/gcloud",
  ".config/git/credentials",
  ".git-credentials",
  ".netrc",
  ".npmrc",
  ".pypirc",
  ".cargo/credentials.toml",
];
const MAX_MODULE_DEPTH = 3;

export function sandboxMounts(profile: SandboxProfile): Mounts {
  const { placeholders, emptyFile, gitMounts } = profile;
  const plan: Plan = { points: [], links: [], made: [], unseen: [], placeholders, emptyFile, gitMounts };
  const workspaces = [...profile.workspace, ...profile.writable];
  const hidden = profile.homeView.kind === "strict" ? hiddenHome(profile.home, profile.homeView.searchPath) : undefined;
  const isGone = (path: string): boolean =>
    hidden !== undefined && isInside(path, profile.home) && !hidden.visible.some((folder) => isInside(path, folder));
  const masked = [profile.stateRoot, ...CREDENTIALS.map((name) => join(profile.home, name)), ...profile.denied];
  const masks = (within?: string): string[] =>
    masked.filter((path) => (within === undefined ? !isGone(path) : isInside(path, within))).flatMap(mask);
  return {
    mountPoints: plan.points,
    links: plan.links,
    made: plan.made,
    unseen: plan.unseen,
    arguments: [
      ...["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"],
      ...["--ro-bind-try", "/proc/sysrq-trigger", "/proc/sysrq-trigger", "--ro-bind-try", "/proc/irq", "/proc/irq"],
      ...folders([...profile.temporaryFolders, "/run"]).flatMap((path) => ["--tmpfs", path]),
      ...(hidden?.arguments ?? []),
      ...masks(),
      ...workspaces.flatMap((path) => ["--bind", path, path, ...masks(path)]),
      ...profile.workspace.flatMap((path) => protect(path, profile, plan)),
      ...(profile.gitMounts ?? []),
      ...["--unshare-all", "--unshare-user", ...(profile.network ? ["--share-net"] : []), "--cap-drop", "ALL"],
      ...(profile.detached ? [] : ["--die-with-parent"]),
      ...(profile.ownTerminal ? [] : ["--new-session"]),
      ...["--chdir", profile.cwd],
    ],
  };
}

function protect(workspace: string, profile: SandboxProfile, plan: Plan): string[] {
  const found = scanWorkspace(workspace, profile.home);
  if (!found.complete) plan.unseen.push(workspace);
  const rcFiles = isInside(profile.home, workspace) ? HOME_FILES.map((name) => join(profile.home, name)) : [];
  return [
    ...[workspace, ...found.repositories].flatMap((folder) => protectRepository(join(folder, ".git"), plan)),
    ...PROTECTED_FOLDERS.flatMap((name) => readOnly(join(workspace, name), "folder", plan)),
    // Git stumbles over a device and would add an empty file; of an empty folder it takes no notice.
    ...PROTECTED_FILES.flatMap((name) => readOnly(join(workspace, name), "folder", plan)),
    ...Object.entries(PROTECTED_PARTS).flatMap(([name, parts]) => protectParts(join(workspace, name), parts, plan)),
    ...found.protectedNames.flatMap((path) => readOnly(path, "folder", plan)),
    ...rcFiles.flatMap((path) => readOnly(path, "file", plan)),
    ...(profile.environmentFiles ? [] : found.environmentFiles.flatMap((path) => ["--ro-bind", "/dev/null", path])),
  ];
}

/** The folder itself is a mount too, so that it cannot be moved out of the way. */
function protectParts(folder: string, parts: readonly string[], plan: Plan): string[] {
  const kind = kindIn(plan, folder);
  if (kind === "file") return readOnly(folder, "file", plan);
  if (kind === "missing") makeFolder(folder, plan);
  if (kind === "link") plan.links.push(folder);
  const real = kind === "link" ? realPath(folder) : folder;
  if (real === undefined || (kind === "link" && kindOf(real) !== "folder")) return [];
  return [
    ...["--bind", real, real],
    // Of an empty folder git takes no notice, and neither do we where a file is expected.
    ...parts.flatMap((name) => readOnly(join(real, name), "folder", plan)),
  ];
}

/**
 * Commits work: objects, refs, index and logs stay writable. What makes git run something does not: hooks, config,
 * attributes. Folders on the way to them are mounts of their own, because a mount cannot be moved out of the way.
 */
function protectRepository(git: string, plan: Plan): string[] {
  const kind = kindIn(plan, git);
  if (kind === "missing") return readOnly(git, "folder", plan);
  if (kind !== "folder") return [...readOnly(git, "file", plan), ...protectLinkedRepository(dirname(git), plan)];
  const modules = moduleFolders(join(git, "modules"), MAX_MODULE_DEPTH);
  const worktrees = join(git, "worktrees");
  return [
    ...["--bind", git, git],
    ...protectGitFolder(git, plan),
    ...modules.way.flatMap((folder) => ["--bind", folder, folder]),
    ...modules.repositories.flatMap((folder) => protectGitFolder(folder, plan)),
    ...(kindOf(worktrees) === "folder" ? readOnly(worktrees, "folder", plan) : []),
  ];
}

/** A linked worktree commits into the repository it belongs to. */
function protectLinkedRepository(worktree: string, plan: Plan): string[] {
  const linked = plan.gitMounts ? undefined : linkedRepository(worktree);
  if (linked === undefined) return [];
  const { common, own } = linked;
  return [
    ...["--bind", common, common],
    ...protectGitFolder(common, plan),
    ...readOnly(join(common, "worktrees"), "folder", plan),
    ...["--bind", own, own],
    ...["commondir", "gitdir", "config.worktree"].flatMap((name) => readOnly(join(own, name), "file", plan)),
  ];
}

function protectGitFolder(git: string, plan: Plan): string[] {
  const info = join(git, "info");
  if (kindIn(plan, info) === "missing") makeFolder(info, plan);
  return [
    ...readOnly(join(git, "hooks"), "folder", plan),
    ...readOnly(join(git, "config"), "file", plan),
    ...readOnly(join(git, "config.worktree"), "file", plan),
    ...["--bind", info, info],
    ...readOnly(join(info, "attributes"), "file", plan),
  ];
}

/** Read-only if it is there; if not, an empty thing of that kind which cannot be written takes its place. */
function readOnly(path: string, kind: MountPoint["kind"], plan: Plan): string[] {
  switch (kindIn(plan, path)) {
    case "missing":
      plan.points.push({ path, kind });
      return kind === "folder" ? ["--tmpfs", path, "--remount-ro", path] : ["--ro-bind", plan.emptyFile, path];
    case "link": {
      plan.links.push(path);
      const target = realPath(path);
      return target === undefined ? [] : ["--ro-bind", target, target];
    }
    default:
      return ["--ro-bind", path, path];
  }
}

function makeFolder(path: string, plan: Plan): void {
  plan.points.push({ path, kind: "folder" });
  plan.made.push(path);
}

/** Hides something outside the workspace, if it is there. */
function mask(path: string): string[] {
  const target = realPath(path);
  if (target === undefined) return [];
  return kindOf(target) === "folder" ? ["--tmpfs", target] : ["--ro-bind", "/dev/null", target];
}

function folders(paths: readonly string[]): string[] {
  const real = paths.map(realPath).filter((path) => path !== undefined && kindOf(path) === "folder");
  return [...new Set(real)].filter((path): path is string => path !== undefined && path !== sep);
}

/** Repositories of submodules, and every folder on the way to them. */
function moduleFolders(folder: string, depth: number): { way: string[]; repositories: string[] } {
  if (depth < 0 || kindOf(folder) !== "folder") return { way: [], repositories: [] };
  const isRepository = existsSync(join(folder, "HEAD"));
  const inner = entriesOf(folder)
    .filter((entry) => entry.isDirectory() && (!isRepository || entry.name === "modules"))
    .map((entry) => moduleFolders(join(folder, entry.name), depth - 1));
  return {
    way: [folder, ...inner.flatMap(({ way }) => way)],
    repositories: [...(isRepository ? [folder] : []), ...inner.flatMap(({ repositories }) => repositories)],
  };
}

type Kind = "missing" | "folder" | "file" | "link";

function kindIn(plan: Plan, path: string): Kind {
  return plan.placeholders.has(path) ? "missing" : kindOf(path);
}

function kindOf(path: string): Kind {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return "missing";
  if (stat.isSymbolicLink()) return "link";
  return stat.isDirectory() ? "folder" : "file";
}

function realPath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

function isInside(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

/**
 * Where the `.git` file of a linked worktree points to, if the repository there confirms it: anyone can write such a
 * file, only the repository itself knows its worktrees.
 */
function linkedRepository(worktree: string): { common: string; own: string } | undefined {
  try {
    const gitFile = join(worktree, ".git");
    const [, target] = /^gitdir: (.+)$/m.exec(readFileSync(gitFile, "utf8")) ?? [];
    if (target === undefined) return undefined;
    const own = realpathSync(resolve(worktree, target.trim()));
    const back = realpathSync(resolve(own, readFileSync(join(own, "gitdir"), "utf8").trim()));
    const common = realpathSync(resolve(own, readFileSync(join(own, "commondir"), "utf8").trim()));
    const isKnown = back === realpathSync(gitFile) && own.startsWith(join(common, "worktrees") + sep);
    return isKnown && basename(common) === ".git" ? { common, own } : undefined;
  } catch {
    return undefined;
  }
}
