/**
 * Finds the files in a workspace that the sandbox must hide or protect. The search runs before and after every command
 * and always covers the whole workspace: a listing is read again only when the folder has changed since, so a repeated
 * search costs one `lstat` per folder. The interiors of `.git` are left out, and so is `node_modules`, unless an index
 * names repositories: git could step into one there. Nothing that the search has found can be moved to where it does not
 * look, because the sandbox makes mount points of the folders above it.
 */
import {
  accessSync,
  constants,
  type Dirent,
  lstatSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
} from "node:fs";
import { basename, dirname, join, sep } from "node:path";
import { setImmediate as nextTick } from "node:timers/promises";
import { PROTECTED_PARTS } from "../../lib/protected-names.ts";
import { NESTED_NAMES, type Unnameable } from "./left-behind.ts";
import { gitFolderBehind } from "./linked-git.ts";

export interface Found {
  /** `.env` files, as real paths. */
  readonly environmentFiles: readonly string[];
  /** Git folders below the top: `.git` of any kind (folder, file, link), and folders that look like a bare repository. */
  readonly gitFolders: readonly string[];
  /** Protected names below the top. */
  readonly protectedNames: readonly string[];
  /** Folders that could not be listed. A command could make them readable, so they must be hidden whole. */
  readonly unreadable: readonly string[];
  /** Folders with something to protect that no path can name, so that nothing can be mounted there. */
  readonly unnameable: readonly Unnameable[];
}

export interface ScanOptions {
  /** Also look into `node_modules`. */
  readonly packages?: boolean;
  /** Throws a `TooLarge` beyond this many folders. */
  readonly maxFolders?: number;
}

export class TooLarge extends Error {
  override readonly name = "TooLarge";
}

const MAX_FOLDERS = 400_000;
const YIELD_AFTER_MS = 12;
/** A folder that changed this recently can change again without a new time stamp. */
const SETTLED_AFTER_MS = 50;
/** Examples without values. */
const HARMLESS_ENV = /\.(example|sample|template|dist|schema)$/i;
const PROTECTED_NAMES: ReadonlySet<string> = new Set(NESTED_NAMES);
/** A larger index is taken to name repositories. */
const MAX_INDEX_BYTES = 64 * 1024 * 1024;
/** Deeper folders with odd names count as dangerous. */
const MAX_ODD_DEPTH = 20;
/** The mode of an entry that names another repository, as the index stores it. */
const GITLINK_MODE = Buffer.from([0x00, 0x00, 0xe0, 0x00]);

interface Listing {
  readonly ino: number;
  readonly ctimeMs: number;
  readonly folders: readonly string[];
  readonly marks: readonly Mark[];
  readonly unnameable: readonly Unnameable[];
}

interface Mark {
  readonly kind: "environment" | "environment link" | "git" | "protected" | "unreadable";
  readonly path: string;
}

export class WorkspaceScanner {
  readonly #workspaces = new Map<string, ReadonlyMap<string, Listing>>();
  readonly #indexes = new Map<string, { readonly changed: string; readonly names: boolean }>();

  /** `home`: links named `.env` are followed to files in the workspace and in this folder. */
  async scan(workspace: string, home: string, options: ScanOptions = {}): Promise<Found> {
    const found = await this.#search(workspace, home, options);
    const git = [join(workspace, ".git"), ...found.gitFolders];
    const isComplete = options.packages === true || !git.some((path) => this.#namesRepositories(path));
    return isComplete ? found : this.#search(workspace, home, { ...options, packages: true });
  }

  async #search(workspace: string, home: string, options: ScanOptions): Promise<Found> {
    const marks: Mark[] = [];
    const unnameable: Unnameable[] = [];
    const known = this.#workspaces.get(workspace);
    const next = new Map<string, Listing>();
    const waiting = [{ folder: workspace, inside: false }];
    let paused = performance.now();
    for (let index = 0; index < waiting.length; index++) {
      const { folder, inside } = waiting[index] ?? { folder: workspace, inside: false };
      if (index >= (options.maxFolders ?? MAX_FOLDERS)) throw new TooLarge(`${workspace} has over ${index} folders.`);
      const listing = listingOf(folder, { known: known?.get(folder), top: workspace, inside });
      if (listing === undefined) continue;
      next.set(folder, listing);
      for (const mark of listing.marks) marks.push(mark);
      for (const one of listing.unnameable) unnameable.push(one);
      for (const name of listing.folders) {
        if (name === "node_modules" && !options.packages) continue;
        waiting.push({ folder: join(folder, name), inside: inside || PROTECTED_NAMES.has(name) });
      }
      if (performance.now() - paused > YIELD_AFTER_MS) {
        await nextTick();
        paused = performance.now();
      }
    }
    this.#workspaces.set(workspace, next);
    return { ...foundOf(marks, [workspace, home]), unnameable };
  }

  /** Whether the index of a repository may name others. */
  #namesRepositories(git: string): boolean {
    try {
      const folder = lstatSync(git).isFile() ? gitFolderBehind(git) : git;
      if (folder === undefined) return false;
      const path = join(folder, "index");
      const stat = lstatSync(path);
      const changed = `${stat.ino} ${stat.ctimeMs} ${stat.size}`;
      const known = this.#indexes.get(path);
      if (known?.changed === changed) return known.names;
      // Entries may also lie in a shared index beside it.
      const isPlain = stat.isFile() && stat.size <= MAX_INDEX_BYTES && !readdirSync(folder).some(isSharedIndex);
      const names = !isPlain || readFileSync(path).includes(GITLINK_MODE);
      if (Date.now() - stat.ctimeMs > SETTLED_AFTER_MS) this.#indexes.set(path, { changed, names });
      return names;
    } catch {
      return false;
    }
  }
}

const isSharedIndex = (name: string): boolean => name.startsWith("sharedindex.");

interface ListingOptions {
  readonly known: Listing | undefined;
  readonly top: string;
  /** In a protected folder only secrets are looked for. */
  readonly inside: boolean;
}

function listingOf(folder: string, { known, top, inside }: ListingOptions): Listing | undefined {
  try {
    const stat = lstatSync(folder, { throwIfNoEntry: false });
    if (!stat?.isDirectory()) return undefined;
    if (known !== undefined && known.ino === stat.ino && known.ctimeMs === stat.ctimeMs) return known;
    const isSettled = Date.now() - stat.ctimeMs > SETTLED_AFTER_MS;
    const entries = readdirSync(folder, { withFileTypes: true });
    // Names in a folder without this right can be listed and nothing else.
    accessSync(folder, constants.X_OK);
    const isOdd = entries.some(({ name }) => name.includes("\ufffd"));
    return {
      ino: stat.ino,
      ctimeMs: isSettled && !isOdd ? stat.ctimeMs : Number.NaN,
      folders: entries.filter(isSearched).map(({ name }) => name),
      marks: inside ? secretsIn(folder, entries) : [...secretsIn(folder, entries), ...marksOf(folder, entries, top)],
      unnameable: isOdd ? unnameableIn(folder) : [],
    };
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    return { ino: 0, ctimeMs: Number.NaN, folders: [], marks: [{ kind: "unreadable", path: folder }], unnameable: [] };
  }
}

const isSearched = (entry: Dirent): boolean => entry.isDirectory() && entry.name !== ".git";

/** Entries with names that are not valid UTF-8, if they are or hold something to protect. */
function unnameableIn(folder: string): Unnameable[] {
  return readdirSync(folder, { encoding: "latin1" })
    .filter((name) => {
      const bytes = Buffer.from(name, "latin1");
      const isValid = Buffer.from(bytes.toString("utf8")).equals(bytes);
      return !isValid && holdsDanger(Buffer.concat([Buffer.from(folder + sep), bytes]), MAX_ODD_DEPTH);
    })
    .map((name) => ({ folder, name }));
}

/** Whether a path is or holds anything that is searched for. True when it cannot tell. */
function holdsDanger(path: Buffer, depth: number): boolean {
  try {
    const stat = lstatSync(path, { throwIfNoEntry: false });
    const name = basename(path.toString("latin1"));
    if (stat === undefined) return false;
    if (isEnvironment(name) || name === ".git" || name === "HEAD" || PROTECTED_NAMES.has(name)) return true;
    if (partsOf(name).length > 0) return true;
    if (!stat.isDirectory()) return false;
    const entries = readdirSync(path, { encoding: "latin1" });
    return (
      depth === 0 ||
      entries.some((entry) => holdsDanger(Buffer.concat([path, Buffer.from(sep + entry, "latin1")]), depth - 1))
    );
  } catch {
    return true;
  }
}

const partsOf = (name: string): readonly string[] =>
  Object.hasOwn(PROTECTED_PARTS, name) ? (PROTECTED_PARTS[name] ?? []) : [];

const isEnvironment = (name: string): boolean =>
  name.startsWith(".env") && name !== ".envrc" && !HARMLESS_ENV.test(name);

function secretsIn(folder: string, entries: readonly Dirent[]): Mark[] {
  return entries
    .filter((entry) => isEnvironment(entry.name) && !entry.isDirectory())
    .map((entry) => ({
      kind: entry.isSymbolicLink() ? "environment link" : "environment",
      path: join(folder, entry.name),
    }));
}

function marksOf(folder: string, entries: readonly Dirent[], top: string): Mark[] {
  const marks: Mark[] = [];
  const isTop = folder === top;
  const parts = dirname(folder) === top ? [] : partsOf(basename(folder));
  for (const entry of entries) {
    const { name } = entry;
    const path = join(folder, name);
    const isLinkToParts = entry.isSymbolicLink() && partsOf(name).length > 0;
    if (name === ".git" && !isTop) marks.push({ kind: "git", path });
    if ((PROTECTED_NAMES.has(name) || isLinkToParts) && !isTop) marks.push({ kind: "protected", path });
    if (parts.includes(name)) marks.push({ kind: "protected", path });
  }
  const names = new Set(entries.map(({ name }) => name));
  // Git takes any folder with these for a repository, whatever its name.
  const isRepository = names.has("HEAD") && (names.has("commondir") || (names.has("objects") && names.has("refs")));
  if (isRepository) marks.push({ kind: "git", path: folder });
  return marks;
}

function foundOf(marks: readonly Mark[], reach: readonly string[]): Omit<Found, "unnameable"> {
  const paths = (kind: Mark["kind"]): string[] => marks.filter((mark) => mark.kind === kind).map(({ path }) => path);
  const linked = paths("environment link").map((path) => fileBehind(path, reach));
  return {
    environmentFiles: [...new Set([...paths("environment"), ...linked.filter((path) => path !== undefined)])],
    gitFolders: paths("git"),
    protectedNames: paths("protected"),
    unreadable: paths("unreadable"),
  };
}

/** The file a link leads to, if it lies in one of these folders. Elsewhere it could only hide what commands need. */
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
