/**
 * Finds the files that read rules deny, to hide them from searches and sandboxed commands, which do not check rules one
 * by one. Folders that have not changed since the last search are not read again.
 */

import * as fs from "node:fs";
import { join } from "node:path";
import { realPath } from "../lib/node/real-path.ts";
import { caseFold } from "./case-fold.ts";
import { isBelow, isPathPattern, patternMatcher, refusalCovers } from "./path-scope.ts";
import type { Policy } from "./policy.ts";
import type { Rule } from "./rules.ts";

export interface DeniedFiles {
  /** Real paths. A folder includes everything below it. */
  readonly paths: readonly string[];
  /** False when the list may be incomplete: the folders are too large, or a rule denies a whole allowed folder. */
  readonly complete: boolean;
  /** Folders with a repository that were found during the search. */
  readonly repositories: readonly string[];
}

interface SeenFolder {
  readonly version: string;
  readonly entries: number;
  readonly folders: readonly string[];
  readonly denied: readonly string[];
  readonly isRepository: boolean;
  /** True when it contains a name that is not valid text. No path can name such a file, but it may be denied. */
  readonly isOdd: boolean;
}

const MAX_ENTRIES = 300_000;
const MAX_MILLISECONDS = 2_000;
/** The search yields to the event loop after this time. */
const SLICE_MILLISECONDS = 12;
/** A folder that changed this recently may change again without a new timestamp. */
const RACY_MILLISECONDS = 100;

/** Returns the rules that deny reading for every tool and for commands. */
export function readDenials({ rules }: Pick<Policy, "rules">): Rule[] {
  return rules.filter(({ effect, tool, target }) => effect === "deny" && tool === undefined && target.kind === "read");
}

export class DeniedFileFinder {
  readonly #policy: Policy;
  readonly #cwd: string;
  #seen = new Map<string, SeenFolder>();
  #seenFor = "";

  constructor(policy: Policy, cwd: string) {
    this.#policy = policy;
    this.#cwd = cwd;
  }

  async find(): Promise<DeniedFiles> {
    const rules = readDenials(this.#policy).flatMap(({ target }) => (target.kind === "read" ? [target.path] : []));
    const paths = rules.filter((path) => path !== undefined);
    const roots = this.#roots();
    if (paths.length === 0) return { paths: [], complete: rules.length === 0, repositories: roots };
    const { resolvePath, exists } = this.#policy;
    const named = paths.map((path) => resolvePath(path, this.#cwd)).filter(exists);
    const search = new Search();
    const searched = paths.filter((path) => !/^[/~]/.test(path) || isPathPattern(path));
    const outside = searched.flatMap((path) => (/^[/~]/.test(path) ? [this.#patternRoot(path)] : [])).filter(exists);
    const below = searched.length === 0 ? [] : await this.#walk([...roots, ...outside], searched, search);
    const found = [...new Set([...named, ...below])];
    // Hiding a whole allowed folder would remove the command's working directory.
    const whole = found.filter((path) => [...roots, this.#cwd].some((root) => isBelow(root, [path])));
    const isWhole =
      whole.length > 0 || paths.some((path) => [...roots, this.#cwd].some((root) => this.#covers(path, root)));
    const hidden = found.filter((path) => !whole.includes(path));
    const links = await otherNames(hidden, roots, search);
    return {
      paths: [...new Set([...hidden, ...links])],
      complete: search.complete && !isWhole,
      repositories: [...roots, ...search.repositories],
    };
  }

  #roots(): string[] {
    const { roots, resolvePath } = this.#policy;
    return [...new Set((roots.length > 0 ? roots : [this.#cwd]).map((root) => resolvePath(root, "/")))];
  }

  /** Returns the folder in which an absolute pattern can match. */
  #patternRoot(pattern: string): string {
    const segments = pattern.split("/");
    const base = segments.slice(0, segments.findIndex(isPathPattern)).join("/");
    return this.#policy.resolvePath(base === "" ? "/" : base, this.#cwd);
  }

  #covers(rule: string, real: string): boolean {
    return refusalCovers(this.#policy, { rule, real, written: "", cwd: this.#cwd });
  }

  async #walk(roots: readonly string[], rules: readonly string[], search: Search): Promise<string[]> {
    const key = rules.join("\0");
    if (this.#seenFor !== key) this.#seen = new Map();
    this.#seenFor = key;
    const mayName = lastNames(rules);
    const withGit = rules.some((rule) => /(?:^|\/)\.git(?:\/|$)/i.test(rule));
    const isDenied = (path: string): boolean => rules.some((rule) => this.#covers(rule, path));
    const seen = new Map<string, SeenFolder>();
    const denied: string[] = [];
    const waiting = [...roots];
    for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
      if (seen.has(folder)) continue;
      const found = this.#look(folder, (entry, path) => mayName(entry) && isDenied(path));
      if (!(await search.goesOn(found.entries))) break;
      if (found.isOdd) search.complete = false;
      seen.set(folder, found);
      denied.push(...found.denied);
      if (found.isRepository) search.repositories.push(folder);
      for (const name of found.folders) if (withGit || name !== ".git") waiting.push(join(folder, name));
    }
    this.#seen = seen;
    return denied;
  }

  #look(folder: string, isDenied: (name: string, path: string) => boolean): SeenFolder {
    const stat = statOf(folder);
    const version = stat === undefined ? "" : `${stat.dev}:${stat.ino}:${stat.ctimeMs}:${stat.mtimeMs}`;
    const known = this.#seen.get(folder);
    if (known !== undefined && version !== "" && known.version === version) return known;
    const folders: string[] = [];
    const denied: string[] = [];
    const entries = entriesOf(folder);
    // A command can chmod a folder that its user owns, so unreadable ones are hidden too.
    const isLocked = stat !== undefined && stat.uid === process.getuid?.() && !isListable(folder);
    if (isLocked) denied.push(folder);
    for (const entry of isLocked ? [] : entries) {
      const path = join(folder, entry.name);
      if (isDenied(entry.name, path)) {
        const real = realPath(path);
        if (real !== undefined) denied.push(real);
      } else if (entry.isDirectory()) folders.push(entry.name);
    }
    const isRacy = stat === undefined || Date.now() - Math.max(stat.ctimeMs, stat.mtimeMs) < RACY_MILLISECONDS;
    const isRepository = entries.some(({ name }) => name === ".git");
    const isOdd = entries.some(
      (entry) => isOddName(entry.name) && (!entry.isFile() || isDenied(entry.name, join(folder, entry.name))),
    );
    return { version: isRacy ? "" : version, entries: entries.length, folders, denied, isRepository, isOdd };
  }
}

/** Node substitutes this character for bytes that are not valid text. */
const isOddName = (name: string): boolean => name.includes("\ufffd");

function isListable(folder: string): boolean {
  try {
    fs.accessSync(folder, fs.constants.R_OK | fs.constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Returns a quick test that is false when no rule can end with this name. */
function lastNames(rules: readonly string[]): (name: string) => boolean {
  const last = rules.map((rule) => caseFold(rule.split("/").findLast((part) => part !== "" && part !== "**") ?? "**"));
  const names = new Set(last.filter((name) => !isPathPattern(name)));
  const patterns = last.filter(isPathPattern).map(patternMatcher);
  return (name) => names.has(caseFold(name)) || patterns.some((matches) => matches(caseFold(name)));
}

/** Limits one search. */
class Search {
  complete = true;
  readonly repositories: string[] = [];
  readonly #deadline = performance.now() + MAX_MILLISECONDS;
  #entries = 0;
  #slice = performance.now() + SLICE_MILLISECONDS;

  async goesOn(entries: number): Promise<boolean> {
    this.#entries += entries + 1;
    const now = performance.now();
    if (this.#entries > MAX_ENTRIES || now > this.#deadline) this.complete = false;
    else if (now > this.#slice) {
      await new Promise((resolve) => setImmediate(resolve));
      this.#slice = performance.now() + SLICE_MILLISECONDS;
    }
    return this.complete;
  }
}

/** Returns other names of the same files (hard links) in the allowed folders. */
async function otherNames(paths: readonly string[], roots: readonly string[], search: Search): Promise<string[]> {
  const wanted = new Set<string>();
  const note = (path: string): void => {
    const stat = statOf(path);
    if (stat?.isFile() && stat.nlink > 1) wanted.add(identityOf(stat));
  };
  for (const path of paths) {
    if (statOf(path)?.isDirectory()) await eachFile(path, note, search);
    else note(path);
  }
  const found: string[] = [];
  if (wanted.size === 0) return found;
  for (const root of roots) {
    await eachFile(
      root,
      (path) => {
        const stat = statOf(path);
        if (stat !== undefined && wanted.has(identityOf(stat)) && !isBelow(path, paths)) found.push(path);
      },
      search,
    );
  }
  return found;
}

async function eachFile(root: string, visit: (path: string) => void, search: Search): Promise<void> {
  const waiting = [root];
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    const entries = entriesOf(folder);
    if (!(await search.goesOn(entries.length))) return;
    for (const entry of entries) {
      if (isOddName(entry.name)) search.complete = false;
      if (entry.isDirectory()) waiting.push(join(folder, entry.name));
      else if (entry.isFile()) visit(join(folder, entry.name));
    }
  }
}

const identityOf = ({ dev, ino }: fs.Stats): string => `${dev}:${ino}`;

function statOf(path: string): fs.Stats | undefined {
  try {
    return fs.lstatSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/** A file that this process cannot read cannot be read by a command either. */
const UNREADABLE = new Set(["ENOENT", "ENOTDIR", "EACCES", "EPERM"]);

function entriesOf(folder: string): fs.Dirent[] {
  try {
    return fs.readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    if (error instanceof Error && "code" in error && UNREADABLE.has(String(error.code))) return [];
    throw error;
  }
}
