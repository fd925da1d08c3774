/**
 * Finds the files in a workspace that the sandbox must hide or protect. The search runs before and after every command
 * and always covers the whole workspace. A listing is read again only when the folder has changed, so a repeated search
 * costs one `lstat` per folder. In `.git` it searches only for links. In `node_modules` only repositories that an index
 * names count, with their content, because git enters those. Nothing that was found can be moved out of the search,
 * because the sandbox mounts its parent folders.
 */
import { accessSync, constants, type Dirent, lstatSync, readdirSync, statSync } from "node:fs";
import { basename, dirname, join, sep } from "node:path";
import { setImmediate as nextTick } from "node:timers/promises";
import { HARMLESS_ENVIRONMENT_FILE, isEnvironmentFile, PROTECTED_PARTS } from "../../../lib/protected-names.ts";
import { NESTED_NAMES } from "./left-behind.ts";
import type { Unnameable } from "./leftovers.ts";
import { linkedRepository } from "./linked-git.ts";
import { isInNamed, mayHoldNamed, type NamedRepositories, RepositoryIndexes } from "./named-repositories.ts";
import { isMissing, linkText, realPath, Unprotectable } from "./path-kinds.ts";

export interface Found {
  /** `.env` files, as real paths. */
  readonly environmentFiles: readonly string[];
  /** Those among them that links named `.env` lead to. */
  readonly environmentTargets: readonly string[];
  /** Links named `.env` to files that no path can name. */
  readonly oddLinks: readonly string[];
  /** Git folders below the top: `.git` of any kind (folder, file, link), and folders that look like a bare repository. */
  readonly gitFolders: readonly string[];
  /**
   * Symbolic links in git folders, each followed by a null character and its target: git writes through most of them.
   */
  readonly gitLinks: readonly string[];
  /** Git folders outside the workspace that its commands can write: those of a linked worktree. */
  readonly linkedGit: readonly string[];
  /** Protected names below the top. */
  readonly protectedNames: readonly string[];
  /** Folders that could not be listed. A command could make them readable, so they must be hidden completely. */
  readonly unreadable: readonly string[];
  /** Folders with something to protect that no path can name, so that nothing can be mounted there. */
  readonly unnameable: readonly Unnameable[];
}

export interface ScanOptions {
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
const SYSTEM_FILE = /^\/(usr|bin|sbin|lib\w*|etc|dev|proc|sys|nix|snap)\//;
const PROTECTED_NAMES: ReadonlySet<string> = new Set(NESTED_NAMES);
/** Deeper folders with odd names count as dangerous. */
const MAX_ODD_DEPTH = 20;
/** Old versions of git make HEAD a link to the branch. */
const LINKED_HEAD = /\/HEAD\0refs\/heads\/(?!.*\.\.)/;

/**
 * `protected`: in a protected folder, whose entries are not protected one by one. `git`: in a git folder, which is
 * searched only for links. `bare`: in a repository without a `.git`.
 */
type Area = "tree" | "protected" | "git" | "bare";

interface Listing {
  readonly ino: number;
  readonly ctimeMs: number;
  readonly folders: readonly string[];
  readonly isRepository: boolean;
  readonly marks: readonly Mark[];
  readonly unnameable: readonly Unnameable[];
}

interface Mark {
  readonly kind: "environment" | "environment link" | "git" | "git link" | "protected" | "unreadable";
  readonly path: string;
}

interface Searched {
  /** Listings with entries that matter. */
  readonly listings: readonly { readonly listing: Listing; readonly isPackage: boolean }[];
  readonly linkedGit: readonly string[];
}

export class WorkspaceScanner {
  readonly #workspaces = new Map<string, ReadonlyMap<string, Listing>>();
  readonly #indexes = new RepositoryIndexes();

  async scan(workspace: string, options: ScanOptions = {}): Promise<Found> {
    const top = join(workspace, ".git");
    const plain = await this.#search(workspace, options);
    let found = foundOf(plain, NONE);
    let named = this.#indexes.namedBy([top, ...found.gitFolders]);
    if (named !== "any" && named.size === 0) return found;
    const searched = await this.#search(workspace, { ...options, packages: true });
    // Repositories in packages may name further ones.
    for (let seen: NamedRepositories = NONE; seen !== "any" && (named === "any" || named.size > seen.size); ) {
      found = foundOf(searched, named);
      seen = named;
      named = this.#indexes.namedBy([top, ...found.gitFolders]);
    }
    return found;
  }

  async #search(workspace: string, options: ScanOptions & { readonly packages?: boolean }): Promise<Searched> {
    const listings: { listing: Listing; isPackage: boolean }[] = [];
    const known = this.#workspaces.get(workspace);
    const next = new Map<string, Listing>();
    const linkedGit = linkedFolders(workspace);
    const waiting: { folder: string; area: Area; isPackage: boolean }[] = [
      { folder: workspace, area: "tree", isPackage: false },
      ...linkedGit.map((folder) => ({ folder, area: "git" as const, isPackage: false })),
    ];
    let paused = performance.now();
    for (const [index, { folder, area, isPackage }] of waiting.entries()) {
      if (index >= (options.maxFolders ?? MAX_FOLDERS)) throw new TooLarge(`${workspace} has over ${index} folders.`);
      const listing = listingOf(folder, { known: known?.get(folder), top: workspace, area });
      if (listing === undefined) continue;
      next.set(folder, listing);
      if (listing.marks.length + listing.unnameable.length > 0) listings.push({ listing, isPackage });
      for (const name of listing.folders) {
        const isPackages = name === "node_modules" && area !== "git";
        if (isPackages && !options.packages) continue;
        waiting.push({
          folder: join(folder, name),
          area: areaBelow(name, area, listing.isRepository),
          isPackage: isPackage || isPackages,
        });
      }
      if (performance.now() - paused > YIELD_AFTER_MS) {
        await nextTick();
        paused = performance.now();
      }
    }
    this.#workspaces.set(workspace, next);
    return { listings, linkedGit };
  }
}

const NONE: NamedRepositories = new Set();

interface ListingOptions {
  readonly known: Listing | undefined;
  readonly top: string;
  readonly area: Area;
}

/** Returns the git folder of a worktree whose repository is elsewhere. */
function linkedFolders(workspace: string): string[] {
  const linked = linkedRepository(join(workspace, ".git"));
  return linked === undefined || isBelow(linked.common, workspace) ? [] : [linked.common];
}

const isBelow = (path: string, folder: string): boolean => path.startsWith(folder + sep);

function areaBelow(name: string, area: Area, isRepository: boolean): Area {
  if (area === "git") return area;
  if (name === ".git") return "git";
  if (area === "protected") return area;
  if (PROTECTED_NAMES.has(name)) return "protected";
  return isRepository ? "bare" : area;
}

function listingOf(folder: string, { known, top, area }: ListingOptions): Listing | undefined {
  try {
    const stat = lstatSync(folder, { throwIfNoEntry: false });
    if (!stat?.isDirectory()) return undefined;
    if (known !== undefined && known.ino === stat.ino && known.ctimeMs === stat.ctimeMs) return known;
    const isSettled = Date.now() - stat.ctimeMs > SETTLED_AFTER_MS;
    const entries = readdirSync(folder, { withFileTypes: true });
    // Without this right, names in the folder can be listed but not examined.
    accessSync(folder, constants.X_OK);
    const isOdd = entries.some(({ name }) => name.includes("\ufffd"));
    const isRepository = looksBare(entries);
    return {
      ino: stat.ino,
      ctimeMs: isSettled && !isOdd ? stat.ctimeMs : Number.NaN,
      folders: entries.filter((entry) => isSearched(entry, folder, area)).map(({ name }) => name),
      isRepository,
      marks: [
        ...(area === "git" ? [] : secretsIn(folder, entries)),
        ...(area === "git"
          ? []
          : marksOf(folder, entries, top).filter(({ kind }) => area !== "protected" || kind === "git")),
        ...(area === "git" || area === "bare" || isRepository ? linksIn(folder, entries) : []),
      ],
      unnameable: isOdd ? unnameableIn(folder, area) : [],
    };
  } catch (error) {
    if (isMissing(error)) return undefined;
    const marks: Mark[] = [{ kind: "unreadable", path: folder }];
    return { ino: 0, ctimeMs: Number.NaN, folders: [], isRepository: false, marks, unnameable: [] };
  }
}

/** Git treats any folder with these entries as a repository, whatever its name. */
function looksBare(entries: readonly Dirent[]): boolean {
  const names = new Set(entries.map(({ name }) => name));
  return names.has("HEAD") && (names.has("commondir") || (names.has("objects") && names.has("refs")));
}

/** Git creates objects under new names, so it never writes through a link in the folders of single objects. */
function isSearched(entry: Dirent, folder: string, area: Area): boolean {
  if (!entry.isDirectory()) return false;
  return area !== "git" || basename(folder) !== "objects" || entry.name === "info" || entry.name === "pack";
}

function linksIn(folder: string, entries: readonly Dirent[]): Mark[] {
  return entries
    .filter((entry) => entry.isSymbolicLink())
    .map((entry): Mark => {
      const path = join(folder, entry.name);
      return { kind: "git link", path: `${path}\0${linkText(path)}` };
    })
    .filter(({ path }) => !LINKED_HEAD.test(path));
}

/** Returns entries with names that are not valid UTF-8, if they are or contain something to protect. */
function unnameableIn(folder: string, area: Area): Unnameable[] {
  return readdirSync(folder, { encoding: "latin1" })
    .filter((name) => {
      const bytes = Buffer.from(name, "latin1");
      const isValid = Buffer.from(bytes.toString("utf8")).equals(bytes);
      const path = Buffer.concat([Buffer.from(folder + sep), bytes]);
      if (isValid) return false;
      const isLinkHeld = (area === "git" || area === "bare") && holdsLink(path, MAX_ODD_DEPTH);
      return isLinkHeld || (area !== "git" && holdsDanger(path, MAX_ODD_DEPTH));
    })
    .map((name) => ({ folder, name }));
}

/** Returns whether a folder contains a symbolic link; true when that is unknown. */
function holdsLink(path: Buffer, depth: number): boolean {
  try {
    if (!lstatSync(path).isDirectory()) return false;
    const entries = readdirSync(path, { encoding: "latin1" });
    return (
      depth === 0 ||
      entries.some((entry) => {
        const below = Buffer.concat([path, Buffer.from(sep + entry, "latin1")]);
        return lstatSync(below).isSymbolicLink() || holdsLink(below, depth - 1);
      })
    );
  } catch {
    return true;
  }
}

/** Returns whether a path is or contains anything that is searched for; true when that is unknown. */
function holdsDanger(path: Buffer, depth: number): boolean {
  try {
    const stat = lstatSync(path, { throwIfNoEntry: false });
    const name = basename(path.toString("latin1"));
    if (stat === undefined) return false;
    if (isEnvironmentFile(name) || name === ".git" || name === "HEAD" || PROTECTED_NAMES.has(name)) return true;
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

function secretsIn(folder: string, entries: readonly Dirent[]): Mark[] {
  return entries
    .filter((entry) => isEnvironmentFile(entry.name) && !entry.isDirectory())
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
  if (looksBare(entries)) marks.push({ kind: "git", path: folder });
  return marks;
}

/** Returns the findings without those in packages, unless they are in a repository that an index names. */
function foundOf({ listings, linkedGit }: Searched, named: NamedRepositories): Found {
  const marks = listings.flatMap(({ listing, isPackage }) =>
    listing.marks.filter(
      ({ kind, path }) =>
        !isPackage || (kind === "unreadable" ? mayHoldNamed : isInNamed)(path.split("\0", 1)[0] ?? "", named),
    ),
  );
  const unnameable = listings.flatMap(({ listing, isPackage }) =>
    listing.unnameable.filter(({ folder }) => !isPackage || isInNamed(folder, named)),
  );
  const paths = (kind: Mark["kind"]): string[] => marks.filter((mark) => mark.kind === kind).map(({ path }) => path);
  const linked = paths("environment link").map((path) => ({ path, target: fileBehind(path) }));
  const targets = linked.map(({ target }) => target).filter((target) => typeof target === "string");
  return {
    environmentFiles: [...new Set([...paths("environment"), ...targets])],
    environmentTargets: targets,
    oddLinks: linked.filter(({ target }) => target === ODD).map(({ path }) => path),
    gitFolders: paths("git"),
    gitLinks: paths("git link"),
    linkedGit,
    protectedNames: paths("protected"),
    unreadable: paths("unreadable"),
    unnameable,
  };
}

const ODD = Symbol("a file that no path can name");

/** Returns the file that a link leads to. Ignores system files: hiding one could only break commands. */
function fileBehind(path: string): string | typeof ODD | undefined {
  try {
    if (!statSync(path).isFile()) return undefined;
    const target = realPath(path);
    const isHarmless =
      target === undefined || SYSTEM_FILE.test(target) || HARMLESS_ENVIRONMENT_FILE.test(basename(target));
    return isHarmless ? undefined : target;
  } catch (error) {
    return error instanceof Unprotectable ? ODD : undefined;
  }
}

export function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}
