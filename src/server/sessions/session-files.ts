/**
 * Files of a session that its clients may read and write: its plan, and `files/` in its folder. Other paths are
 * refused.
 */
import { readdir, readFile } from "node:fs/promises";
import { join, posix, resolve, sep } from "node:path";
import { isInside, PathError } from "../../lib/node/paths.ts";
import { filesInShared, readShared, removeShared, writeShared } from "../../lib/node/shared-folder.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { Session } from "../../session/session.ts";

const MAX_BYTES = 10 * 1024 * 1024;
const MAX_FILES = 10_000;
const PLAN = "plan.md";
const OBJECTIVE = "autopilot-objective.md";

/** Returns the session's folder. If a client stores the session, this is the client's name for it. */
export function folderOf({ record: { log } }: Session): string {
  return log.clientFiles?.directory ?? log.directory;
}

/** Returns the path under which clients know a file. */
export function sessionFilePath(session: Session, path: string): string {
  return clientFilesOf(session)?.nameOf(nameThere(path)) ?? join(filesFolderOf(session), path);
}

export async function listSessionFiles(session: Session): Promise<string[]> {
  const clientFiles = clientFilesOf(session);
  if (clientFiles) return [...(await clientFiles.list("files"))].sort();
  const files = await filesInShared(filesFolderOf(session), { maxFiles: MAX_FILES });
  return files.map(({ path }) => path.split(sep).join("/")).sort();
}

export async function readSessionFile(session: Session, path: string): Promise<string> {
  const content = await readIfThere(session, path);
  if (content === undefined) throw new TroupeError("usage", `There is no file ${path} among the session's files.`);
  return content;
}

/** Returns undefined if there is none. */
export const readPlan = (session: Session): Promise<string | undefined> => readIfThere(session, PLAN);
export const writePlan = (session: Session, content: string): Promise<{ isNew: boolean }> =>
  writeSessionFile(session, PLAN, content);
export const planPath = (session: Session): string => sessionFilePath(session, PLAN);

/** The objective of autopilot, as clients write it. */
export const readObjective = (session: Session): Promise<string | undefined> => readIfThere(session, OBJECTIVE);
export const writeObjective = (session: Session, content: string): Promise<{ isNew: boolean }> =>
  writeSessionFile(session, OBJECTIVE, content);
export const removeObjective = (session: Session): Promise<boolean> => removeFile(session, OBJECTIVE);

/** Returns whether there was a plan. */
export const removePlan = (session: Session): Promise<boolean> => removeFile(session, PLAN);

async function removeFile(session: Session, name: string): Promise<boolean> {
  const clientFiles = clientFilesOf(session);
  const isThere = clientFiles && (await readIfThere(session, name)) !== undefined;
  const isGone = await removeShared(filesFolderOf(session), name).catch(rethrowPathError(name));
  if (isThere) await clientFiles.remove(nameThere(name));
  return isThere ?? isGone;
}

/**
 * Writes a file atomically. Returns whether it is new. A file that a client stores is written here too, for the agents.
 */
export async function writeSessionFile(session: Session, path: string, content: string): Promise<{ isNew: boolean }> {
  if (Buffer.byteLength(content) > MAX_BYTES) {
    throw new TroupeError("limit", `A file of a session can have at most ${MAX_BYTES} bytes.`);
  }
  requireInside(session, path);
  const clientFiles = clientFilesOf(session);
  const isNewThere = clientFiles && (await clientFiles.read(nameThere(path))) === undefined;
  const { isNew } = await writeShared(filesFolderOf(session), path, { content }).catch(rethrowPathError(path));
  await clientFiles?.write(nameThere(path), content);
  return { isNew: isNewThere ?? isNew };
}

/** Returns the summaries of compactions, by number. */
export async function listCheckpoints(
  session: Session,
): Promise<{ number: number; title: string; filename: string; content: string }[]> {
  const { directory, clientFiles } = session.record.log;
  const folder = join(directory, "checkpoints");
  const names = clientFiles ? await clientFiles.list("checkpoints") : await readdir(folder).catch(() => []);
  // Summaries that a rewind removed stay stored, but are not listed.
  const inView = new Set(
    session.events.flatMap(({ type, data }) => (type === "session.compaction_complete" ? [data.checkpointNumber] : [])),
  );
  const numbered = names.filter((name) => /^\d+[^/]*\.md$/.test(name) && inView.has(Number.parseInt(name, 10))).sort();
  return Promise.all(
    numbered.map(async (filename) => {
      const content = clientFiles
        ? ((await clientFiles.read(`checkpoints/${filename}`)) ?? "")
        : await readFile(join(folder, filename), "utf8");
      const [head = ""] = content.split("\n", 1);
      return { number: Number.parseInt(filename, 10), title: head.replace(/^#\s*/, ""), filename, content };
    }),
  );
}

const clientFilesOf = (session: Session) => session.record.log.clientFiles;
export const filesFolderOf = (session: Session): string => join(session.record.log.directory, "files");
/** In the protocol, the plan is beside the log. */
const nameThere = (path: string): string => {
  const plain = posix.normalize(path.split(sep).join("/"));
  return plain === PLAN ? plain : `files/${plain}`;
};

async function readIfThere(session: Session, path: string): Promise<string | undefined> {
  requireInside(session, path);
  const clientFiles = clientFilesOf(session);
  if (clientFiles) return clientFiles.read(nameThere(path));
  const found = await readShared(filesFolderOf(session), path, MAX_BYTES).catch(rethrowPathError(path));
  return found?.toString("utf8");
}

/** Checks the path as text only. Links are checked in `lib/node/shared-folder.ts`. */
export function requireInside(session: Session, path: string): void {
  const folder = filesFolderOf(session);
  const resolved = resolve(folder, path);
  if (resolved === folder || !isInside(resolved, [folder])) throw outside(path);
}

const outside = (path: string): TroupeError =>
  new TroupeError("usage", `${path} is outside the workspace files directory of the session.`);

/** Commands of the agent can put links, pipes and devices into the folder. None of them is opened. */
export function rethrowPathError(path: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof PathError)) throw error;
    if (error.problem === "outside") throw outside(path);
    throw new TroupeError(error.problem === "too-large" ? "limit" : "usage", error.message);
  };
}
