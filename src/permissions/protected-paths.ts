/**
 * Names that give whoever writes them power over later runs: hooks, editor tasks, shell start-up files, and troupe's
 * own rules. They are protected by name, so that a missing one cannot be created either.
 */
import { fold } from "./fold.ts";

export interface ProtectedPlaces {
  /** Where troupe keeps rules, trust, approvals and logs, as a real path. */
  readonly stateRoot: string;
  /** Folders below the state root that a session may write, such as its own working files. */
  readonly writable: readonly string[];
  /** Git folders that belong to the workspace but lie elsewhere (linked worktrees, submodules). */
  readonly gitFolders: readonly string[];
  /** Where protected names of the workspace lead that are links; see `linked-places.ts`. */
  readonly linkTargets: readonly string[];
}

export type Protection = "deny" | "ask" | undefined;

const DENIED_FOLDERS = new Set([".git", ".troupe", ".vscode", ".idea"]);
const DENIED_FILES = new Set(
  (
    ".mcp.json .envrc .gitmodules .gitconfig .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile " +
    ".zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .cshrc .tcshrc .login .inputrc .xprofile .xinitrc .pam_environment"
  ).split(" "),
);
const DENIED_ENDINGS = [
  ".config/fish/config.fish",
  ".config/git/config",
  ".ssh/authorized_keys",
  ".ssh/config",
  ".ssh/rc",
];
/** What we run or obey ourselves once a folder is trusted. Agents, skills and instructions beside them stay writable. */
const DENIED_PARTS =
  /\/\.github\/(?:hooks(?:\/|$)|mcp\.json$|copilot\/settings[^/]*\.json$)|\/\.claude\/(?:hooks(?:\/|$)|settings[^/]*\.json$)/;
const ASKED_FILES = new Set([".gitattributes", ".gitlab-ci.yml", "jenkinsfile", "azure-pipelines.yml", ".travis.yml"]);
const ASKED_FOLDERS = [".github/workflows", ".github/actions", ".circleci", ".buildkite", ".gitea/workflows"];

/** `path` is absolute and real: links and `..` are resolved. */
export function protectionOf(path: string, places: ProtectedPlaces): Protection {
  const folded = fold(path);
  const isBelow = (folder: string): boolean => folded === fold(folder) || folded.startsWith(`${fold(folder)}/`);
  const own = places.writable.find(isBelow);
  if (own === undefined && isBelow(places.stateRoot)) return "deny";
  if ([...places.gitFolders, ...places.linkTargets].some(isBelow)) return "deny";
  // The way to what a session may write leads through names of ours; below it names count as anywhere.
  return protectionOfNames(own === undefined ? folded : folded.slice(fold(own).length));
}

function protectionOfNames(folded: string): Protection {
  const segments = folded.split("/").map(trimmed);
  const name = segments.at(-1) ?? "";
  const path = segments.join("/");
  if (segments.some((segment) => DENIED_FOLDERS.has(segment)) || DENIED_FILES.has(name)) return "deny";
  if (DENIED_ENDINGS.some((ending) => path.endsWith(`/${ending}`)) || DENIED_PARTS.test(path)) return "deny";
  if (ASKED_FILES.has(name) || ASKED_FOLDERS.some((folder) => path.includes(`/${folder}/`))) return "ask";
  return undefined;
}

/** As `protectionOf`, where the name as it was written counts too: a link called .vscode is .vscode, wherever it leads. */
export function protectionOfBoth(
  path: { readonly real: string; readonly written: string },
  places: ProtectedPlaces,
): Protection {
  const written = path.written.startsWith("/") ? path.written : `/${path.written}`;
  const found = [protectionOf(path.real, places), protectionOf(written, places)];
  return found.find((one) => one === "deny") ?? found.find((one) => one === "ask");
}

/** Some file systems drop dots and spaces at the end of a name, and what follows a colon. */
function trimmed(segment: string): string {
  return segment.replace(/:.*$/, "").replace(/[. ]+$/, "");
}
