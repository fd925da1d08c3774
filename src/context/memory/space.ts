/**
 * Finds the repository that a folder's memory belongs to. A folder can claim anything about itself. Its origin URL
 * counts only if the user trusts it, and a link to another repository only if that one links back.
 */
import { createHash } from "node:crypto";
import { realpathSync, statSync } from "node:fs";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { smallText } from "../../lib/node/small-file.ts";

/** A repository or the user, with a journal of its own. Stored facts name it in their field `place`. */
export interface MemorySpace {
  /** The file name. Stable across restarts. */
  readonly key: string;
  /** The name for the user. */
  readonly label: string;
}

export const userSpace: MemorySpace = { key: "user", label: "you, in all repositories" };

/**
 * Returns the memory spaces of a folder. New facts go to the first. Without trust there is only the path of the repository,
 * shared by its linked work trees. With trust the origin comes first, shared by all clones, then the path.
 */
export function repositorySpaces(cwd: string, options: { readonly isTrusted: boolean }): readonly MemorySpace[] {
  const folder = realpathSync(cwd);
  const git = findRepository(folder);
  const path = git?.main ?? folder;
  const byPath: MemorySpace = { key: `path-${digest(path)}`, label: path };
  const origin =
    options.isTrusted && git ? originUrlIn(smallText(join(git.common, "config"), MAX_BYTES) ?? "") : undefined;
  return origin === undefined ? [byPath] : [{ key: `origin-${digest(origin)}`, label: origin }, byPath];
}

const MAX_BYTES = 1024 * 1024;

interface Repository {
  /** The main work tree, or the repository itself if it is bare. */
  readonly main: string;
  readonly common: string;
}

function findRepository(folder: string): Repository | undefined {
  for (let root = folder; ; root = dirname(root)) {
    const entry = join(root, ".git");
    const stat = statSync(entry, { throwIfNoEntry: false });
    if (stat?.isDirectory()) return { main: root, common: realpathSync(entry) };
    if (stat?.isFile()) return linkedRepository(root, entry) ?? { main: root, common: entry };
    if (dirname(root) === root) return undefined;
  }
}

/** Returns `undefined` if the repository does not list this work tree. */
function linkedRepository(root: string, entry: string): Repository | undefined {
  const pointer = smallText(entry, MAX_BYTES)?.match(/^gitdir: (.+)$/m)?.[1];
  if (pointer === undefined) return undefined;
  try {
    const directory = realpathSync(resolve(root, pointer));
    const back = smallText(join(directory, "gitdir"), MAX_BYTES)?.trim();
    if (back === undefined || realpathSync(resolve(directory, back)) !== realpathSync(entry)) return undefined;
    const shared = smallText(join(directory, "commondir"), MAX_BYTES)?.trim();
    const common = realpathSync(shared === undefined ? directory : resolve(directory, shared));
    return { main: basename(common) === ".git" ? dirname(common) : common, common };
  } catch {
    return undefined;
  }
}

/** Returns `host/path` of the remote `origin` without credentials, or `undefined` for a local path. */
export function originUrlIn(config: string): string | undefined {
  const section = config.split(/^\[/m).find((part) => /^remote "origin"\]/.test(part));
  const url = section?.match(/^\s*url\s*=\s*(.+)$/m)?.[1]?.trim() ?? "";
  if (url === "" || isAbsolute(url) || url.startsWith(".") || url.startsWith("file:")) return undefined;
  const match =
    /^[a-z][a-z0-9+.-]*:\/\/(?:[^/@]*@)?([^/]+)\/(.+)$/i.exec(url) ?? /^(?:[^/@:]+@)?([^/:@]+):(.+)$/.exec(url);
  const [, host, path] = match ?? [];
  if (host === undefined || path === undefined) return undefined;
  const plain = path.replace(/^\/+|\/+$/g, "").replace(/\.git$/, "");
  return plain === "" ? undefined : `${host.toLowerCase()}/${plain}`;
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
}
