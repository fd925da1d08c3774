/**
 * The folders that the user trusts, and the items approved in them. They are stored in one file, `trust.json`, in the
 * state root. Entries are keyed by the folder's real path: trust does not extend to parents or subfolders.
 */
import { realpathSync, type Stats, statSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import * as z from "zod";
import { parseJson } from "../lib/json.ts";
import { type Disk, replaceFile } from "../lib/node/disk.ts";
import { withFileLock } from "../lib/node/file-lock.ts";
import { readSmallFile } from "../lib/node/small-file.ts";
import { type ItemTrust, MAX_SHOWN_CHARACTERS, type PinnedItem } from "../lib/pinned-item.ts";
import type { Stamp } from "../lib/stamp.ts";
import { sanitise } from "../lib/text.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { CatalogNotice } from "./catalog.ts";
import { pinnedKinds } from "./pins.ts";

/** The trust in one folder. */
export interface Trust {
  /** "run": the caller trusts everything in it for this run. "trusted": only approved items. */
  readonly state: "none" | "trusted" | "run";
  /** Returns whether this item may be used. "changed": approved with another content. "new": never approved. */
  check(item: Pick<PinnedItem, "kind" | "id" | "digest">): ItemTrust;
}

export interface TrustStore {
  readonly notices: readonly CatalogNotice[];
  /** `forRun`: the caller trusts it for this run. `trustedFolders`: the list of that name in the user's settings. */
  of(folder: string, also?: { forRun?: boolean; trustedFolders?: readonly string[] }): Trust;
}

export interface TrustedFolder {
  readonly folder: string;
  readonly trustedAt: string;
  readonly items: readonly Omit<PinnedItem, "shown">[];
}

interface Change {
  readonly stateRoot: string;
  readonly folder: string;
  readonly disk: Disk;
  readonly stamp: Stamp;
}

const MAX_BYTES = 4 * 1024 * 1024;
const MAX_FOLDERS = 5_000;
const MAX_ITEMS = 1_000;

/** Lazy: without trusted folders, a start should not pay for it. */
const fileSchema = () =>
  z.object({
    version: z.literal(1),
    folders: z
      .array(
        z.object({
          folder: z.string().min(1),
          trustedAt: z.string(),
          items: z
            .array(z.object({ kind: z.enum(pinnedKinds), id: z.string(), digest: z.string().regex(/^[0-9a-f]{64}$/) }))
            .max(MAX_ITEMS),
        }),
      )
      .max(MAX_FOLDERS),
  });

/** Reads the file once per start. If it is invalid or unsafe, nothing is trusted and a notice names it. */
export function readTrust(stateRoot: string): TrustStore {
  const file = readTrustFile(trustFile(stateRoot));
  return {
    notices: file.kind === "refused" ? [refusal(stateRoot, file.reason)] : [],
    of(folder, { forRun = false, trustedFolders = [] } = {}) {
      if (forRun) return { state: "run", check: () => "approved" };
      const real = realFolder(folder);
      const entry = file.folders.find((trusted) => trusted.folder === real);
      const listed = real !== undefined && trustedFolders.some((named) => namedFolder(named) === real);
      if (entry === undefined && !listed) return { state: "none", check: () => "untrusted" };
      return { state: "trusted", check: (item) => compare(item, entry?.items ?? []) };
    },
  };
}

/** Trusts the folder with exactly these items. Earlier approvals that are not among them are dropped. */
export async function recordTrust(change: Change & { readonly items: readonly PinnedItem[] }): Promise<Changed> {
  const folder = realFolder(change.folder);
  if (folder === undefined) throw new TroupeError("usage", `${resolve(change.folder)} is not a folder.`);
  if (change.items.length > MAX_ITEMS) {
    throw new TroupeError("failed", `${folder} has more than ${MAX_ITEMS} items to approve.`);
  }
  requireReadable(change.items);
  const items = change.items.map(({ kind, id, digest }) => ({ kind, id, digest }));
  const entry: TrustedFolder = { folder, trustedAt: new Date(change.stamp.now()).toISOString(), items };
  return changeTrustFile(change, (folders) => {
    const others = folders.filter((trusted) => trusted.folder !== folder);
    if (others.length >= MAX_FOLDERS) {
      const hint = "Remove some with: troupe trust remove <folder>";
      throw new TroupeError("failed", `The limit of ${MAX_FOLDERS} trusted folders is reached.`, { hint });
    }
    return [...others, entry].sort((one, other) => (one.folder < other.folder ? -1 : 1));
  });
}

const PROGRAMS: ReadonlySet<PinnedItem["kind"]> = new Set(["hook", "mcp", "extension"]);

/** Throws if the definition of a program is too long to be shown completely: it cannot be reviewed. */
export function requireReadable(items: readonly PinnedItem[]): void {
  const long = items.find(({ kind, shown }) => PROGRAMS.has(kind) && shown.length > MAX_SHOWN_CHARACTERS);
  if (long === undefined) return;
  const message = `${long.kind} ${long.id} cannot be trusted: its definition has ${long.shown.length} characters, more than the ${MAX_SHOWN_CHARACTERS} that are shown.`;
  throw new TroupeError("failed", sanitise(message), { hint: "Move long scripts into files, or remove the entry." });
}

/** Removes a folder, also one that no longer exists, by its former path. `found`: whether it was trusted. */
export async function removeTrust(change: Change): Promise<Changed & { readonly found: boolean }> {
  const names = [realFolder(change.folder), resolve(change.folder)];
  let found = false;
  const changed = await changeTrustFile(change, (folders) => {
    const others = folders.filter(({ folder }) => !names.includes(folder));
    found = others.length < folders.length;
    return found ? others : undefined;
  });
  return { ...changed, found };
}

export function listTrusted(stateRoot: string): {
  folders: readonly TrustedFolder[];
  notices: readonly CatalogNotice[];
} {
  const file = readTrustFile(trustFile(stateRoot));
  return { folders: file.folders, notices: file.kind === "refused" ? [refusal(stateRoot, file.reason)] : [] };
}

export interface Changed {
  /** Path of the former file, if it was invalid or unsafe. */
  readonly keptAs?: string;
}

async function changeTrustFile(
  { stateRoot, disk, stamp }: Change,
  change: (folders: readonly TrustedFolder[]) => readonly TrustedFolder[] | undefined,
): Promise<Changed> {
  const path = trustFile(stateRoot);
  return withFileLock({ path, disk, stamp, Failure: TroupeError }, async () => {
    const file = readTrustFile(path);
    const folders = change(file.folders);
    if (folders === undefined) return {};
    const time = new Date(stamp.now()).toISOString().replace(/[:.]/g, "-");
    const keptAs = file.kind === "refused" ? `${path}.damaged-${time}-${stamp.id("damaged").slice(0, 8)}` : undefined;
    if (keptAs !== undefined) await disk.rename(path, keptAs);
    await replaceFile(disk, path, `${JSON.stringify({ version: 1, folders }, null, 2)}\n`);
    await disk.syncDirectory(stateRoot);
    return keptAs === undefined ? {} : { keptAs };
  });
}

type TrustFile =
  | { readonly kind: "good"; readonly folders: readonly TrustedFolder[] }
  | { readonly kind: "refused"; readonly folders: readonly []; readonly reason: string };

function readTrustFile(path: string): TrustFile {
  const refused = (reason: string): TrustFile => ({ kind: "refused", folders: [], reason });
  const file = readSmallFile(path, { maxBytes: MAX_BYTES });
  if (file.kind === "missing") {
    return isThere(path) ? refused("is not a regular file") : { kind: "good", folders: [] };
  }
  if (file.kind === "refused") return refused(file.reason);
  const foreign = foreignness(file.stat);
  if (foreign !== undefined) return refused(foreign);
  const json = parseJson(file.text);
  if (!json.ok) return refused("is damaged: it is not JSON");
  const parsed = fileSchema().safeParse(json.value);
  if (parsed.success) return { kind: "good", folders: parsed.data.folders };
  return refused(`is damaged: ${parsed.error.issues[0]?.path.join(".") || "it"} is not as expected`);
}

/** Returns why the file is unsafe: another user could have written it. */
function foreignness({ mode, uid }: Stats): string | undefined {
  const user = process.getuid?.();
  if (user === undefined) return undefined;
  if (uid !== user && uid !== 0) return "belongs to another user";
  return (mode & 0o022) === 0 ? undefined : "is writable by other users";
}

function refusal(stateRoot: string, reason: string): CatalogNotice {
  const message = `${trustFile(stateRoot)} ${reason}, so no folder is trusted. Run \`troupe trust\` to create a new one; the old file is kept.`;
  return { kind: "trust-file", message };
}

function compare(item: Pick<PinnedItem, "kind" | "id" | "digest">, approved: TrustedFolder["items"]): ItemTrust {
  const same = approved.filter(({ kind, id }) => kind === item.kind && id === item.id);
  if (same.length === 0) return "new";
  return same.some(({ digest }) => digest === item.digest) ? "approved" : "changed";
}

/** Resolves a name from the user's settings. Relative names are ignored: `.` would be every folder. */
function namedFolder(name: string): string | undefined {
  const path = name.startsWith("~/") ? join(homedir(), name.slice(2)) : name;
  return isAbsolute(path) ? realFolder(path) : undefined;
}

const trustFile = (stateRoot: string): string => join(stateRoot, "trust.json");

const isThere = (path: string): boolean => statSync(path, { throwIfNoEntry: false }) !== undefined;

/** Returns undefined if there is no such folder. */
export function realFolder(folder: string): string | undefined {
  try {
    const real = realpathSync.native(folder);
    return statSync(real).isDirectory() ? real : undefined;
  } catch {
    return undefined;
  }
}
