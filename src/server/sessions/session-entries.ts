/** Creates, renames and removes entries among a session's files for clients. */
import type * as fs from "node:fs";
import {
  makeSharedFolder,
  removeSharedEntry,
  renameSharedEntry,
  statSharedEntry,
} from "../../lib/node/shared-entries.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { Session } from "../../session/session.ts";
import { filesFolderOf, requireInside, rethrowPathError } from "./session-files.ts";

export async function statEntry(session: Session, path: string): Promise<fs.Stats> {
  requireHere(session, path);
  const stat = await statSharedEntry(filesFolderOf(session), path).catch(rethrowPathError(path));
  if (!stat) throw missing(path);
  return stat;
}

export async function makeFolder(session: Session, path: string, recursive: boolean): Promise<void> {
  requireHere(session, path);
  await makeSharedFolder(filesFolderOf(session), path, { recursive }).catch(rethrowPathError(path));
}

/** Throws if there is no such entry, unless `force` is set. */
export async function removeEntry(
  session: Session,
  path: string,
  { recursive, force }: { recursive: boolean; force: boolean },
): Promise<void> {
  requireHere(session, path);
  const isGone = await removeSharedEntry(filesFolderOf(session), path, { recursive }).catch(rethrowPathError(path));
  if (!isGone && !force) throw missing(path);
}

export async function renameEntry(session: Session, from: string, to: string): Promise<void> {
  requireHere(session, from);
  requireHere(session, to);
  await renameSharedEntry(filesFolderOf(session), { from, to }).catch(rethrowPathError(from));
}

/** Throws for files that a client stores: only that client may change them. */
function requireHere(session: Session, path: string): void {
  requireInside(session, path);
  if (!session.record.log.clientFiles) return;
  throw new TroupeError("usage", "A client stores the files of this session. Change them there.");
}

const missing = (path: string): TroupeError =>
  new TroupeError("usage", `There is no ${path} among the session's files.`);
