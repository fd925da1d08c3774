/**
 * Protected names: files that control later runs, such as hooks, editor tasks, shell start-up files and troupe's own
 * rules. They are protected by name, so that a missing one cannot be created either.
 */
import { PROTECTED_FILES, PROTECTED_FOLDERS, PROTECTED_PARTS } from "../lib/protected-names.ts";
import { caseFold } from "./case-fold.ts";

export interface ProtectedPaths {
  /** The folder with troupe's rules, trust, approvals and logs, as a real path. */
  readonly stateRoot: string;
  /** Folders below the state root that a session may write, such as its own working files. */
  readonly writable: readonly string[];
  /** Git folders of the workspace that are outside it (linked worktrees, submodules). */
  readonly gitFolders: readonly string[];
  /** Targets of protected names that are links; see `linked-paths.ts`. */
  readonly linkTargets: readonly string[];
}

export type Protection = "deny" | "ask" | undefined;

const DENIED_FOLDERS = new Set([".git", "git~1", ...PROTECTED_FOLDERS]);
const DENIED_FILES = new Set([
  ...PROTECTED_FILES,
  ...(
    ".gitconfig .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile " +
    ".zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .cshrc .tcshrc .login .inputrc .xprofile .xinitrc .pam_environment"
  ).split(" "),
]);
const DENIED_ENDINGS = [
  ".config/fish/config.fish",
  ".config/git/config",
  ".ssh/authorized_keys",
  ".ssh/config",
  ".ssh/rc",
];
const DENIED_PARTS = new Map(Object.entries(PROTECTED_PARTS).map(([folder, parts]) => [folder, new Set(parts)]));
const ASKED_FILES = new Set([".gitattributes", ".gitlab-ci.yml", "jenkinsfile", "azure-pipelines.yml", ".travis.yml"]);
const ASKED_FOLDERS = [".github/workflows", ".github/actions", ".circleci", ".buildkite", ".gitea/workflows"];

/** Returns the protection of `path`, which must be absolute and real (links and `..` resolved). */
export function protectionOf(path: string, protectedPaths: ProtectedPaths): Protection {
  const folded = caseFold(path);
  const isBelow = (folder: string): boolean => folded === caseFold(folder) || folded.startsWith(`${caseFold(folder)}/`);
  const own = protectedPaths.writable.find(isBelow);
  if (own === undefined && isBelow(protectedPaths.stateRoot)) return "deny";
  if ([...protectedPaths.gitFolders, ...protectedPaths.linkTargets].some(isBelow)) return "deny";
  // The path to a writable folder contains protected names of ours. Below that folder, names count as anywhere else.
  return protectionOfNames(own === undefined ? folded : folded.slice(caseFold(own).length));
}

function protectionOfNames(folded: string): Protection {
  const segments = folded.split(/[\\/]/).map(trimmed);
  const name = segments.at(-1) ?? "";
  const path = segments.join("/");
  if (segments.some((segment) => DENIED_FOLDERS.has(segment)) || DENIED_FILES.has(name)) return "deny";
  if (DENIED_ENDINGS.some((ending) => path.endsWith(`/${ending}`)) || segments.some(isDeniedPart)) return "deny";
  if (ASKED_FILES.has(name) || ASKED_FOLDERS.some((folder) => path.includes(`/${folder}/`))) return "ask";
  return undefined;
}

/** Agents, skills and instructions beside the denied parts stay writable. */
function isDeniedPart(segment: string, index: number, segments: readonly string[]): boolean {
  return DENIED_PARTS.get(segment)?.has(segments[index + 1] ?? "") === true;
}

/** Like `protectionOf`, but the written name counts too: a link called .vscode is .vscode, whatever its target. */
export function protectionOfBoth(
  path: { readonly real: string; readonly written: string },
  protectedPaths: ProtectedPaths,
): Protection {
  const written = path.written.startsWith("/") ? path.written : `/${path.written}`;
  return strictest([protectionOf(path.real, protectedPaths), protectionOf(written, protectedPaths)]);
}

/** Parent folders of protected entries, such as `.github` and `.config/git`, with the protection of those entries. */
const WAYS = new Map<string, Protection>([
  ...ASKED_FOLDERS.flatMap((folder) => waysTo(`${folder}/x`, "ask")),
  ...[...DENIED_ENDINGS, ...partPaths()].flatMap((path) => waysTo(path, "deny")),
]);

/** Like `protectionOf`, for creating a link: it must not replace a parent folder of a protected entry either. */
export function protectionOfLink(path: string, protectedPaths: ProtectedPaths): Protection {
  const names = caseFold(path).split(/[\\/]/).map(trimmed);
  const ways = [1, 2, 3].map((count) => WAYS.get(names.slice(-count).join("/")));
  return strictest([protectionOf(path, protectedPaths), ...ways]);
}

export function strictest(found: readonly Protection[]): Protection {
  return found.find((one) => one === "deny") ?? found.find((one) => one === "ask");
}

function partPaths(): string[] {
  return Object.entries(PROTECTED_PARTS).flatMap(([folder, parts]) => parts.map((part) => `${folder}/${part}`));
}

function waysTo(path: string, protection: Protection): [string, Protection][] {
  const names = path.split("/");
  return names.slice(1).map((_, index) => [names.slice(0, index + 1).join("/"), protection]);
}

/** Some file systems drop trailing dots and spaces, and everything after a colon. */
function trimmed(segment: string): string {
  return segment.replace(/:.*$/, "").replace(/[. ]+$/, "");
}
