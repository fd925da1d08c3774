/**
 * Plans the mounts of a sandboxed command. Later mounts cover earlier ones: the machine is readable, the workspace is
 * writable, protected names in it are not. Hidden paths come last, so that no mount before them can uncover one.
 *
 * A mount source or target is never a symbolic link: links that lead out of the workspace get no mount at all, because
 * the rest of the machine is read-only anyway. A running command can still swap a folder for a link while bubblewrap
 * starts the next one. The mount table is therefore compared with the plan before the command runs (`mount-check.ts`).
 */
import { basename, dirname, join, sep } from "node:path";
import { isInside } from "../../../lib/node/paths.ts";
import { GIT_INTERNALS, PROTECTED_FILES, PROTECTED_FOLDERS, PROTECTED_PARTS } from "../../../lib/protected-names.ts";
import type { KnownTree, MountPoint, ProtectedLink } from "./leftovers.ts";
import { gitFolderBehind, linkedRepository } from "./linked-git.ts";
import { bind, gitMounts, type Mount, scratch } from "./mount.ts";
import { folders, identityOf, type Kind, kindOf, linkText, realPath, Unprotectable } from "./path-kinds.ts";
import { HIDDEN_FROM_ROOT, STARTUP_FILES, STARTUP_FOLDERS } from "./sandbox-hidden.ts";
import { hiddenHome } from "./sandbox-home.ts";
import { entriesOf, type Found } from "./sandbox-scan.ts";

export interface SandboxProfile {
  /** Real paths of the folders that the command may change, with the entries that were found in each. */
  readonly workspace: readonly { readonly root: string; readonly found: Found }[];
  /** Further writable real paths with nothing to protect. */
  readonly writable: readonly string[];
  /** Real paths that are readable although they are in a hidden or temporary folder. */
  readonly readable: readonly string[];
  /** Real paths that cannot even be read, wherever they are. */
  readonly denied: readonly string[];
  /** True when nothing in the workspace can be changed. */
  readonly readOnlyWorkspace: boolean;
  readonly home: string;
  /** Paths of the credentials in the home folder that may exist. */
  readonly credentials: readonly string[];
  /** The folder with troupe's own state. */
  readonly stateRoot: string;
  readonly temporaryFolders: readonly string[];
  /** The whole home folder except credentials, or only tools found through this PATH. */
  readonly homeView: { readonly kind: "open" } | { readonly kind: "strict"; readonly searchPath: string };
  /** True when `.env` files may be read. */
  readonly environmentFiles: boolean;
  /** Mount points of running commands. They count as missing. */
  readonly placeholders: ReadonlySet<string>;
  /**
   * False for a path that a running command could swap for a link while the mounts are made. A writable mount there could
   * land outside the workspace, and bubblewrap would create missing mount points in it.
   */
  isFixed(path: string): boolean;
  /** Protected links as running commands found them. Their targets stay read-only, wherever the links lead now. */
  readonly heldLinks: readonly ProtectedLink[];
  /** Access of a worktree to its repository, chosen by the caller. */
  readonly gitMounts?: readonly string[] | undefined;
}

export interface MountPlan {
  readonly mounts: readonly Mount[];
  /** True when a concurrent command could misdirect one of the mounts by renaming something. */
  readonly isMovable: boolean;
  /** Must exist before bubblewrap starts, parents before children. */
  readonly points: readonly MountPoint[];
  readonly links: readonly ProtectedLink[];
  readonly trees: readonly KnownTree[];
}

/** Every sandbox mounts the names in these folders, so that no command can rename them. */
const FIXED_FOLDERS = [".git", join(".git", "info"), ...Object.keys(PROTECTED_PARTS)];
const MAX_MODULE_DEPTH = 4;
/** Bubblewrap reads the mount table again for each mount, so a thousand mounts take seconds. */
const MAX_MOUNTS = 1000;

export function planMounts(profile: SandboxProfile): MountPlan {
  const strict = profile.homeView.kind === "strict" ? hiddenHome(profile.home, profile.homeView.searchPath) : undefined;
  const isGone = (path: string): boolean =>
    strict !== undefined && isInside(path, [profile.home]) && !isInside(path, strict);
  const roots = profile.workspace.map(({ root }) => root);
  const hidden = hiddenPaths(profile, [...roots, ...profile.writable]).filter((path) => !isGone(path));
  const isBehind = (path: string): boolean => isInside(path, hidden);
  const plan = new Plan(profile, hidden);
  const temporary = folders([...profile.temporaryFolders, "/run"]);
  plan.add(...temporary.map((path) => scratch(path)));
  // Programs may be installed there. Only a path that nothing else opens or hides needs a mount.
  const isInstalled = (path: string): boolean => isInside(path, temporary) && !isBehind(path) && !isInside(path, roots);
  plan.add(
    ...profile.readable.filter(isInstalled).map((path): Mount => ({ ...bind("ro-bind", path), unchecked: true })),
  );
  if (strict !== undefined) {
    const tools = strict.map((path): Mount => ({ kind: "ro-bind", path, unchecked: true }));
    plan.add({ ...scratch(profile.home), unchecked: true }, ...tools);
  }
  // A folder inside the workspace is opened with it: its own mount would uncover protected entries.
  const binds = [...profile.writable.filter((path) => isBehind(path) || !isInside(path, roots)), ...roots];
  const outer = binds.filter((path) => !isBehind(path));
  const inner = binds.filter(isBehind);
  for (const path of outer) plan.open(path);
  for (const path of hidden) if (!isInside(path, inner)) plan.hide(path);
  for (const path of inner) plan.open(path);
  plan.add(...profile.readable.filter(isBehind).map((path) => bind("ro-bind", path)));
  for (const path of hidden.filter((one) => isInside(one, inner))) plan.hide(path);
  for (const mount of gitMounts(profile.gitMounts ?? []))
    plan.add(profile.readOnlyWorkspace ? bind("ro-bind", mount.path) : mount);
  const fixed = new Set([...roots, ...roots.flatMap((root) => FIXED_FOLDERS.map((name) => join(root, name)))]);
  plan.isMovable =
    plan.links.length > 0 ||
    profile.gitMounts !== undefined ||
    plan.mounts.some(({ path, kind }) =>
      isInside(path, roots)
        ? !roots.includes(path) && !fixed.has(dirname(path))
        : kind === "bind" && !binds.includes(path),
    );
  if (plan.mounts.length > MAX_MOUNTS)
    throw new Unprotectable(
      `it has too many .env files and nested repositories: ${plan.mounts.length} mounts would be needed.`,
    );
  return plan;
}

/** Returns the paths to hide. `binds` are opened again, even inside a hidden folder. */
function hiddenPaths(profile: SandboxProfile, binds: readonly string[]): string[] {
  const system = process.getuid?.() === 0 ? HIDDEN_FROM_ROOT : [];
  const named = [profile.stateRoot, ...profile.credentials, ...system];
  const real = [...named, ...profile.denied]
    .map((path) => realPath(path))
    .filter((path) => path !== undefined && path !== sep);
  const all = [...new Set(real)].filter((path): path is string => path !== undefined);
  // A path below another hidden path needs no mount, unless it is opened in between.
  const isCovered = (path: string, by: string): boolean =>
    by !== path && isInside(path, [by]) && !binds.some((one) => isInside(one, [by]) && isInside(path, [one]));
  return all.filter((path) => !all.some((other) => isCovered(path, other)));
}

/** Collects the mounts of one command. */
class Plan implements MountPlan {
  readonly mounts: Mount[] = [];
  isMovable = false;
  readonly points: MountPoint[] = [];
  readonly links: ProtectedLink[] = [];
  readonly trees: KnownTree[] = [];
  readonly #profile: SandboxProfile;
  readonly #roots: readonly string[];
  readonly #hidden: readonly string[];
  readonly #mounted = new Set<string>();
  /** Read-only, including their content. */
  readonly #frozen: string[] = [];
  /** Git folders that are already protected. */
  readonly #git = new Set<string>();
  /** Targets of protected links. */
  readonly #targets = new Set<string>();

  constructor(profile: SandboxProfile, hidden: readonly string[]) {
    this.#profile = profile;
    this.#roots = profile.workspace.map(({ root }) => root);
    this.#hidden = hidden;
  }

  add(...mounts: readonly Mount[]): void {
    for (const mount of mounts) {
      this.mounts.push(mount);
      this.#mounted.add(mount.path);
    }
  }

  /** Makes a folder writable and protects its dangerous entries. */
  open(root: string): void {
    const { workspace, readOnlyWorkspace, writable } = this.#profile;
    const found = workspace.find((one) => one.root === root)?.found;
    this.add(bind(found !== undefined && readOnlyWorkspace ? "ro-bind" : "bind", root));
    if (found === undefined) return;
    if (!readOnlyWorkspace) {
      const { gitFolders, gitLinks, linkedGit, protectedNames, unreadable } = found;
      this.trees.push({ root, gitFolders, gitLinks, linkedGit, protectedNames, unreadable });
      this.#protectTop(root);
      // Entries that are not fixed are checked when the commands that could change them end. Nothing is mounted on a
      // link, so it is never fixed; its target becomes read-only, and the link is compared.
      const isFixed = (path: string): boolean => this.#profile.isFixed(path) || kindOf(path) === "link";
      const isFrozen = (path: string): boolean => isInside(path, this.#frozen);
      for (const path of found.gitFolders.filter(isFixed)) if (!isFrozen(path)) this.#protectNestedGit(root, path);
      for (const path of found.protectedNames.filter(isFixed)) this.#protectNested(root, path);
      this.#protectStartupFiles(root);
      for (const { path, real } of this.#profile.heldLinks.filter((one) => isInside(one.path, [root])))
        if (realPath(real) === real) this.#readOnlyTarget(path, real);
      // Last, because a later mount could make something writable again.
      for (const path of this.#targets) this.#freeze(path);
      this.#targets.clear();
    } else {
      const isOpened = (path: string): boolean => isInside(path, [root]) && !isInside(path, this.#hidden);
      for (const path of writable.filter(isOpened)) this.add(bind("bind", path));
    }
    const secret = [...(this.#profile.environmentFiles ? [] : found.environmentFiles), ...found.unreadable];
    for (const path of secret.filter((one) => !isInside(one, this.#hidden))) this.hide(path);
  }

  /** Hides a path behind an empty file or folder. */
  hide(path: string): void {
    const kind = kindOf(path);
    if (kind === "missing") return;
    this.#pin(path);
    this.add({ kind: kind === "folder" ? "scratch" : "empty file", path });
  }

  /** Protects the names at the top of a workspace. */
  #protectTop(root: string): void {
    this.#protectGit(join(root, ".git"));
    for (const name of [...PROTECTED_FOLDERS, ...PROTECTED_FILES]) this.#readOnly(join(root, name));
    for (const [name, parts] of Object.entries(PROTECTED_PARTS)) {
      const folder = join(root, name);
      // A missing one cannot be created at all: one mount instead of one for each part.
      if (this.#kindOf(folder) !== "folder") this.#readOnly(folder);
      else {
        // A mount point cannot be moved out of the way.
        this.add(bind("bind", folder));
        for (const part of parts) this.#readOnly(join(folder, part));
      }
    }
  }

  #protectStartupFiles(root: string): void {
    if (!isInside(this.#profile.home, [root])) return;
    for (const name of [...STARTUP_FILES, ...STARTUP_FOLDERS]) {
      const path = join(this.#profile.home, name);
      if (isInside(path, this.#hidden)) continue;
      this.#makeWay(dirname(path));
      this.#pin(path);
      this.#readOnly(path, STARTUP_FOLDERS.includes(name) ? "folder" : "file");
    }
  }

  /** Creates mount points for missing folders, so that something below them can be protected. */
  #makeWay(folder: string): void {
    if (this.#mounted.has(folder) || this.#kindOf(folder) !== "missing") return;
    this.#makeWay(dirname(folder));
    this.#point(folder, "folder");
    this.add(bind("bind", folder));
  }

  #protectNested(root: string, path: string): void {
    if (!isInside(path, [root])) return;
    this.#pin(path);
    this.#readOnly(path);
  }

  #protectNestedGit(root: string, path: string): void {
    this.#pin(path);
    if (basename(path) === ".git") this.#protectGit(path);
    else this.#openGit(path, root);
  }

  /** Commits work: objects, refs, index and logs stay writable. Entries that make git run programs do not. */
  #protectGit(git: string): void {
    const kind = this.#kindOf(git);
    if (kind === "folder") {
      this.#openGit(git);
      return;
    }
    this.#readOnly(git);
    if (kind === "file" && this.#profile.gitMounts === undefined) this.#protectLinkedGit(git);
  }

  /** Protects the repository that a `.git` file leads to: a linked worktree, or a folder inside the workspace. */
  #protectLinkedGit(gitFile: string): void {
    const linked = linkedRepository(gitFile);
    if (linked !== undefined) {
      const { common, own } = linked;
      // The parent folders come first: mounted later, they would cover the protected entries.
      this.#pin(common);
      this.#openGit(common);
      this.add(bind("bind", own));
      for (const name of GIT_INTERNALS.linkedFiles) this.#readOnly(join(own, name), "file");
      this.#protectModules(join(own, "modules"), MAX_MODULE_DEPTH);
      return;
    }
    const target = gitFolderBehind(gitFile, this.#roots);
    if (target === undefined) return;
    const root = this.#roots.find((one) => isInside(target, [one]));
    if (root === undefined || isInside(target, this.#hidden)) return;
    // Those of submodules and linked worktrees are already protected with their repository.
    if (isInside(target, [join(root, ".git", "modules"), join(root, ".git", "worktrees")])) return;
    if (!this.#profile.isFixed(target)) return;
    this.#pin(target);
    this.#openGit(target);
  }

  #openGit(git: string, root?: string): void {
    // Several names can lead to one folder, and a second mount would uncover what the first one protects.
    if (this.#git.has(git)) return;
    this.#git.add(git);
    if (git !== root) this.add(bind("bind", git));
    this.#protectGitFolder(git);
  }

  #protectGitFolder(git: string): void {
    this.#readOnly(join(git, "hooks"));
    this.#readOnly(join(git, "config"), "file");
    // Git ignores it unless its configuration enables it, so an empty folder is enough, which is cheaper than a file.
    this.#readOnly(join(git, "config.worktree"));
    // Any other content would lead git to the configuration of another folder.
    this.#readOnly(join(git, "commondir"), "commondir");
    const info = join(git, "info");
    const kind = this.#kindOf(info);
    if (kind === "missing") this.#point(info, "folder");
    if (kind === "missing" || kind === "folder") {
      this.add(bind("bind", info));
      this.#readOnly(join(info, "attributes"), "file");
    } else this.#readOnly(info);
    this.#protectModules(join(git, "modules"), MAX_MODULE_DEPTH);
    if (kindOf(join(git, "worktrees")) === "folder") this.#freeze(join(git, "worktrees"));
  }

  /** Protects git folders of submodules. No command can add one, so that none can be swapped for something else. */
  #protectModules(modules: string, depth: number): void {
    this.#readOnly(modules);
    if (this.#kindOf(modules) !== "folder") return;
    for (const entry of entriesOf(modules).filter((one) => one.isDirectory())) {
      const folder = join(modules, entry.name);
      // No path can name an entry that is not valid UTF-8. The folder above it is read-only, which has to suffice.
      if (kindOf(folder) !== "folder") continue;
      if (kindOf(join(folder, "HEAD")) === "file") {
        this.#openGit(folder);
      } else if (depth > 0) this.#protectModules(folder, depth - 1);
    }
  }

  /**
   * Makes an existing entry read-only. A missing one is replaced by an empty folder or file, so that it cannot be
   * created.
   */
  #readOnly(path: string, missing: MountPoint["kind"] = "folder"): void {
    switch (this.#kindOf(path)) {
      case "missing":
        this.#point(path, missing);
        this.add(missing === "folder" ? { kind: "empty folder", path } : bind("ro-bind", path));
        return;
      case "link":
        this.#readOnlyLink(path);
        return;
      default:
        this.#freeze(path);
    }
  }

  #freeze(path: string): void {
    this.add(bind("ro-bind", path));
    this.#frozen.push(path);
  }

  /** A mount follows a link, so it protects the target. The link itself is compared after the command. */
  #readOnlyLink(path: string): void {
    const target = realPath(path, this.#roots);
    this.links.push({ path, target: linkText(path), end: identityOf(path), real: target ?? "" });
    if (target !== undefined) this.#readOnlyTarget(path, target);
  }

  #readOnlyTarget(path: string, target: string): void {
    const roots = this.#roots;
    if (!isInside(target, roots) || isInside(target, this.#hidden)) return;
    if (roots.includes(target)) {
      throw new Unprotectable(
        `${path} is a link to the workspace itself, which would have to be read-only. Remove the link.`,
      );
    }
    this.#pin(target);
    this.#targets.add(target);
  }

  #point(path: string, kind: MountPoint["kind"]): void {
    this.points.push({ path, kind });
  }

  /** Mounts the parent folders of a path, so that no command can move it elsewhere. */
  #pin(path: string): void {
    const root = this.#profile.workspace.find((one) => isInside(path, [one.root]) && path !== one.root)?.root;
    if (root === undefined) return;
    const above: string[] = [];
    for (let folder = dirname(path); folder !== root; folder = dirname(folder)) above.unshift(folder);
    for (const folder of above.filter((one) => !this.#mounted.has(one) && this.#profile.isFixed(one))) {
      const isReadOnly = this.#profile.readOnlyWorkspace || isInside(folder, this.#frozen);
      this.add(bind(isReadOnly ? "ro-bind" : "bind", folder));
    }
  }

  #kindOf(path: string): Kind {
    return this.#profile.placeholders.has(path) ? "missing" : kindOf(path);
  }
}
