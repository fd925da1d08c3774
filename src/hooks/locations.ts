/**
 * Finds the hook files, in the order in which their hooks run. A missing file or a folder in its place is ignored. A
 * file that must not be used is skipped with a notice.
 */

import { realpath } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { defined } from "../lib/defined.ts";
import { type OpenedEntry, openForReading, PathError, readDirectory } from "../lib/node/paths.ts";
import { messageOf } from "./answer.ts";
import type { HookNotice, HookOrigin, HookOwner } from "./hooks.ts";

export interface HookSearchPaths {
  readonly stateRoot: string;
  /** Trusted project roots only. */
  readonly projectRoots: readonly string[];
  readonly plugins: readonly HookPlugin[];
  /** Administrator folders and their required owner (default: the system's folders, owned by root). */
  readonly policy?: { readonly folders: readonly string[]; readonly ownerId: number };
}

interface HookPlugin {
  readonly root: string;
  readonly data: string;
  /** The party that installed it. */
  readonly owner: HookOwner;
}

export interface HookFile {
  readonly origin: HookOrigin;
  readonly text: string;
}

const POLICY = { folders: ["/etc/troupe/policy.d", "/etc/github-copilot/policy.d"], ownerId: 0 };
const MAX_FILES = 100;
const MAX_FILE_BYTES = 256 * 1024;

/** Reads all hook files. Never rejects: an unreadable file becomes a notice. */
export async function findHookFiles(
  searchPaths: HookSearchPaths,
): Promise<{ files: HookFile[]; notices: HookNotice[] }> {
  const found: Found = { files: [], notices: [] };
  const { folders, ownerId } = searchPaths.policy ?? POLICY;
  for (const folder of folders) {
    const policy = { scope: "policy", owner: "user", roots: [folder], ownerId } as const;
    await addFolder(found, folder, policy);
  }
  await addFolder(found, join(searchPaths.stateRoot, "hooks"), { scope: "user", owner: "user", roots: [] });
  for (const root of searchPaths.projectRoots) {
    const project = { scope: "project", owner: "project", roots: [root] } as const;
    await addFolder(found, join(root, ".troupe", "hooks"), project);
    await addFolder(found, join(root, ".github", "hooks"), project);
    await addFile(found, join(root, ".claude", "settings.json"), project);
    await addFile(found, join(root, ".claude", "settings.local.json"), project);
  }
  for (const { root, data, owner } of searchPaths.plugins) {
    const plugin = { scope: "plugin", owner, roots: [root], plugin: { root, data } } as const;
    const isThere = await addFile(found, join(root, "hooks.json"), plugin);
    if (!isThere) await addFile(found, join(root, "hooks", "hooks.json"), plugin);
  }
  return found;
}

interface Found {
  readonly files: HookFile[];
  readonly notices: HookNotice[];
}

interface Kind {
  readonly scope: HookOrigin["scope"];
  readonly owner: HookOwner;
  /** Files must be inside these roots after links are resolved. Empty: no restriction. */
  readonly roots: readonly string[];
  /** Set when only the administrator may have written the files. */
  readonly ownerId?: number;
  readonly plugin?: NonNullable<HookOrigin["plugin"]>;
}

async function addFolder(found: Found, folder: string, kind: Kind): Promise<void> {
  const opened = await open(found, folder, kind);
  if (opened === undefined) return;
  try {
    if (opened.kind !== "directory" || !isAdministered(found, opened, kind)) return;
    const { names } = await readDirectory(opened);
    for (const name of names) {
      if (name.endsWith(".json") && !name.startsWith(".")) await addFile(found, join(folder, name), kind);
    }
  } catch (error) {
    found.notices.push({ file: folder, message: `not used: ${messageOf(error)}` });
  } finally {
    await opened.handle.close();
  }
}

/** Returns whether the file exists, used or not. */
async function addFile(found: Found, file: string, kind: Kind): Promise<boolean> {
  const opened = await open(found, file, kind);
  if (opened === undefined) return false;
  try {
    if (opened.kind !== "file") return false;
    if (!isAdministered(found, opened, kind)) return true;
    if (found.files.length >= MAX_FILES) {
      found.notices.push({ file, message: `not used: there are more than ${MAX_FILES} files of hooks` });
      return true;
    }
    const { scope, owner, plugin } = kind;
    const text = await readUpTo(opened, MAX_FILE_BYTES);
    found.files.push({ origin: { scope, owner, file, ...defined({ plugin }) }, text });
  } catch (error) {
    found.notices.push({ file, message: `not used: ${messageOf(error)}` });
  } finally {
    await opened.handle.close();
  }
  return true;
}

async function open(found: Found, path: string, kind: Kind): Promise<OpenedEntry | undefined> {
  const roots: string[] = [];
  for (const root of kind.roots) {
    const real = await realpath(root).catch(() => undefined);
    if (real === undefined) return undefined;
    roots.push(real);
  }
  try {
    return await openForReading(path, { cwd: dirname(path), roots, maxBytes: MAX_FILE_BYTES });
  } catch (error) {
    const problem = error instanceof PathError ? error.problem : undefined;
    if (problem === "missing") return undefined;
    const why = problem === "outside" ? `it is a link to a place outside ${kind.roots.join()}` : messageOf(error);
    found.notices.push({ file: path, message: `not used: ${why}` });
    return undefined;
  }
}

/** Checks that a policy file belongs to the administrator and that others cannot write it. Adds a notice when not. */
function isAdministered(found: Found, { path, stat }: OpenedEntry, { ownerId }: Kind): boolean {
  if (ownerId === undefined) return true;
  const problem =
    stat.uid !== ownerId
      ? "it does not belong to the administrator"
      : (stat.mode & 0o022) !== 0
        ? "users other than its owner can write it"
        : undefined;
  if (problem !== undefined) found.notices.push({ file: path, message: `${basename(path)} is not used: ${problem}` });
  return problem === undefined;
}

/** Limits the read, because the file may grow after it was measured. */
async function readUpTo({ handle, path }: OpenedEntry, maxBytes: number): Promise<string> {
  const buffer = Buffer.alloc(maxBytes + 1);
  let length = 0;
  for (;;) {
    const { bytesRead } = await handle.read(buffer, length, buffer.length - length, null);
    if (bytesRead === 0) return buffer.toString("utf8", 0, length);
    length += bytesRead;
    if (length > maxBytes) throw new Error(`${path} is longer than ${maxBytes} bytes`);
  }
}
