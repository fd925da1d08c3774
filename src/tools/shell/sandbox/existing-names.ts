/** Finds which of many names exist in a folder, without examining each of them every time. */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

/** A folder that changed this recently can change again without a new time stamp. */
const SETTLED_AFTER_MS = 50;

interface Branch {
  /** Set when the path up to here is one of the names. */
  isName: boolean;
  readonly below: Map<string, Branch>;
}

interface Listing {
  readonly state: string;
  readonly names: ReadonlySet<string>;
}

/** Lists a folder again only when it has changed. */
export class ExistingNames {
  readonly #top: Branch = { isName: false, below: new Map() };
  readonly #listings = new Map<string, Listing>();

  /** `names`: relative paths. */
  constructor(names: readonly string[]) {
    for (const name of names) {
      let branch = this.#top;
      for (const part of name.split("/")) {
        const next = branch.below.get(part) ?? { isName: false, below: new Map() };
        branch.below.set(part, next);
        branch = next;
      }
      branch.isName = true;
    }
  }

  /** Returns paths of the existing names in a folder. A name in a folder that cannot be listed counts as existing. */
  in(folder: string): string[] {
    return this.#found(folder, this.#top);
  }

  #found(folder: string, branch: Branch): string[] {
    const names = this.#namesIn(folder);
    return [...branch.below].flatMap(([name, below]) => {
      if (names !== undefined && !names.has(name.toLowerCase())) return [];
      const path = join(folder, name);
      return [...(below.isName ? [path] : []), ...(below.below.size > 0 ? this.#found(path, below) : [])];
    });
  }

  /** Returns them in lower case, because a file system may ignore case; undefined when they are unknown. */
  #namesIn(folder: string): ReadonlySet<string> | undefined {
    try {
      const stat = statSync(folder, { throwIfNoEntry: false });
      if (!stat?.isDirectory()) return new Set();
      const state = `${stat.dev} ${stat.ino} ${stat.ctimeMs}`;
      const known = this.#listings.get(folder);
      if (known?.state === state) return known.names;
      const names = new Set(readdirSync(folder).map((name) => name.toLowerCase()));
      if (Date.now() - stat.ctimeMs > SETTLED_AFTER_MS) this.#listings.set(folder, { state, names });
      return names;
    } catch {
      return undefined;
    }
  }
}
