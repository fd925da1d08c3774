/**
 * Which repository a folder belongs to, as far as memories go. A folder can claim anything about itself: its address of
 * origin counts only where a person trusts it, and a pointer to another repository only where that one points back.
 */
import { createHash } from "node:crypto";
import { realpathSync, statSync } from "node:fs";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { smallText } from "../../lib/node/small-file.ts";

export interface MemoryPlace {
  /** Names the file; the same for the same place on every start. */
  readonly key: string;
  /** For people. */
  readonly label: string;
}

export const userPlace: MemoryPlace = { key: "user", label: "you, in all repositories" };

/**
 * The places of a folder; new facts go to the first. Without trust it is the folder of the repository alone, shared by
 * its linked work trees. With trust it is what origin names, shared by all clones, and after that the folder again.
 */
export function repositoryPlaces(cwd: string, options: { readonly isTrusted: boolean }): readonly MemoryPlace[] {
  const folder = realpathSync(cwd);
  const git = findRepository(folder);
  const path = git?.main ?? folder;
  const byPath: MemoryPlace = { key: `path-${digest(path)}`, label: path };
  const origin =
    options.isTrusted && git ? originOf(smallText(join(git.common, "config"), MAX_BYTES) ?? "") : undefined;
  return origin === undefined ? [byPath] : [{ key: `origin-${digest(origin)}`, label: origin }, byPath];
}

const MAX_BYTES = 1024 * 1024;

interface Repository {
  /** The main work tree, or where the repository itself is when it has none. */
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

/** Undefined when the repository does not know this work tree. */
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

/** `host/path` of the remote called origin, without who signs in there; undefined for what only this machine knows. */
export function originOf(config: string): string | undefined {
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
