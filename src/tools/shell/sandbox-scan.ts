/**
 * What in a workspace must not be read or changed, wherever it stands. This happens before every command, so it has an
 * end: what is near comes first, what other programs have made comes last.
 */
import { type Dirent, readdirSync, realpathSync, statSync } from "node:fs";
import { basename, join, sep } from "node:path";

export interface Found {
  readonly environmentFiles: string[];
  /** Folders below that have a repository of their own. */
  readonly repositories: string[];
  /** Names below that run something later: of editors, of shells, our own. */
  readonly protectedNames: string[];
  /** False when the end came before everything was looked at. */
  complete: boolean;
}

export interface ScanLimits {
  readonly entries: number;
  readonly milliseconds: number;
  /** Bubblewrap takes only so many arguments. */
  readonly found: number;
}

const LIMITS: ScanLimits = { entries: 20_000, milliseconds: 50, found: 800 };
/** Examples without values, made to be read. */
const HARMLESS_ENV = /\.(example|sample|template|dist|schema)$/i;
const NEVER_SCANNED = new Set([".git", "node_modules"]);
const SCANNED_LAST = new Set([".venv", "venv", "target", "dist", "build", "vendor"]);
const PROTECTED_NAMES = new Set([".troupe", ".vscode", ".idea", ".mcp.json", ".envrc"]);

/** `home`: links are followed to files in the workspace and there. */
export function scanWorkspace(workspace: string, home: string, limits: ScanLimits = LIMITS): Found {
  const found: Found = { environmentFiles: [], repositories: [], protectedNames: [], complete: true };
  const end = performance.now() + limits.milliseconds;
  const [soon, late]: [string[], string[]] = [[workspace], []];
  let entries = 0;
  // Lists of folders only grow, so a place in them is all there is to remember.
  for (let next = 0; next < soon.length + late.length; next++) {
    const folder = soon[next] ?? late[next - soon.length] ?? workspace;
    const size = found.environmentFiles.length + found.repositories.length + found.protectedNames.length;
    if (entries >= limits.entries || size >= limits.found || performance.now() > end) {
      found.complete = false;
      break;
    }
    for (const entry of entriesOf(folder)) {
      entries++;
      note(entry, { folder, isRoot: folder === workspace, found, reach: [workspace, home] });
      if (!entry.isDirectory() || NEVER_SCANNED.has(entry.name) || PROTECTED_NAMES.has(entry.name)) continue;
      const isLate = next >= soon.length || SCANNED_LAST.has(entry.name);
      (isLate ? late : soon).push(join(folder, entry.name));
    }
  }
  return found;
}

function note(
  entry: Dirent,
  { folder, isRoot, found, reach }: { folder: string; isRoot: boolean; found: Found; reach: readonly string[] },
): void {
  const { name } = entry;
  const path = join(folder, name);
  if (name === ".git" && !isRoot) found.repositories.push(folder);
  if (PROTECTED_NAMES.has(name) && !isRoot) found.protectedNames.push(path);
  if (!name.startsWith(".env") || name === ".envrc" || HARMLESS_ENV.test(name)) return;
  const file = entry.isFile() ? path : entry.isSymbolicLink() ? fileBehind(path, reach) : undefined;
  if (file !== undefined) found.environmentFiles.push(file);
}

/** Elsewhere a link could only hide what commands need. */
function fileBehind(path: string, reach: readonly string[]): string | undefined {
  try {
    const target = realpathSync(path);
    const isReached = reach.some((folder) => target.startsWith(folder + sep));
    return isReached && statSync(target).isFile() && !HARMLESS_ENV.test(basename(target)) ? target : undefined;
  } catch {
    return undefined;
  }
}

export function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}
