/** Files of a session that its clients may read and write: its plan, and what is in `files/` of its folder; nowhere else. */
import { readdir, readFile, realpath, stat } from "node:fs/promises";
import { dirname, join, posix, relative, resolve, sep } from "node:path";
import { nodeDisk, replaceFile } from "../lib/node/disk.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { Session } from "../session/session.ts";

const MAX_BYTES = 10 * 1024 * 1024;
const MAX_FILES = 10_000;
const PLAN = "plan.md";

/** Where the session is kept, by the name its keeper gives it. */
export function folderOf({ settings: { log } }: Session): string {
  return log.elsewhere?.directory ?? log.directory;
}

/** A file by the path that clients are told. */
export function sessionFilePath(session: Session, path: string): string {
  return elsewhereOf(session)?.nameOf(nameThere(path)) ?? join(filesFolderOf(session), path);
}

export async function listSessionFiles(session: Session): Promise<string[]> {
  const elsewhere = elsewhereOf(session);
  if (elsewhere) return [...(await elsewhere.list("files"))].sort();
  const folder = filesFolderOf(session);
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  return entries
    .filter((entry) => entry.isFile())
    .slice(0, MAX_FILES)
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join("/"))
    .sort();
}

export async function readSessionFile(session: Session, path: string): Promise<string> {
  const content = await readIfThere(session, path);
  if (content === undefined) throw new TroupeError("usage", `There is no file ${path} among the session's files.`);
  return content;
}

/** Undefined when there is none. */
export const readPlan = (session: Session): Promise<string | undefined> => readIfThere(session, PLAN);
export const writePlan = (session: Session, content: string): Promise<{ isNew: boolean }> =>
  writeSessionFile(session, PLAN, content);
export const planPath = (session: Session): string => sessionFilePath(session, PLAN);

/** Whether there was one. */
export async function removePlan(session: Session): Promise<boolean> {
  const elsewhere = elsewhereOf(session);
  const isThere = (await readPlan(session)) !== undefined;
  if (isThere) await elsewhere?.remove(nameThere(PLAN));
  const place = join(filesFolderOf(session), PLAN);
  const isGone = await nodeDisk.unlink(place).then(
    () => true,
    () => false,
  );
  return elsewhere ? isThere : isGone;
}

/** Whole or not at all. Returns whether the file was there before. A file that a client keeps is here too, for the agents. */
export async function writeSessionFile(session: Session, path: string, content: string): Promise<{ isNew: boolean }> {
  if (Buffer.byteLength(content) > MAX_BYTES) {
    throw new TroupeError("limit", `At most ${MAX_BYTES} bytes are written to a file of a session.`);
  }
  await nodeDisk.mkdir(filesFolderOf(session));
  const place = await placeOf(session, path);
  const elsewhere = elsewhereOf(session);
  const isNew = (await readIfThere(session, path)) === undefined;
  await elsewhere?.write(nameThere(path), content);
  await nodeDisk.mkdir(dirname(place));
  await replaceFile(nodeDisk, place, content);
  return { isNew };
}

/** Summaries of what was said, by number. */
export async function listCheckpoints(
  session: Session,
): Promise<{ number: number; title: string; filename: string; content: string }[]> {
  const { directory, elsewhere } = session.settings.log;
  const folder = join(directory, "checkpoints");
  const names = elsewhere ? await elsewhere.list("checkpoints") : await readdir(folder).catch(() => []);
  // Those of summaries that were taken back are kept, and not listed.
  const inView = new Set(
    session.events.flatMap(({ type, data }) => (type === "session.compaction_complete" ? [data.checkpointNumber] : [])),
  );
  const numbered = names.filter((name) => /^\d+[^/]*\.md$/.test(name) && inView.has(Number.parseInt(name, 10))).sort();
  return Promise.all(
    numbered.map(async (filename) => {
      const content = elsewhere
        ? ((await elsewhere.read(`checkpoints/${filename}`)) ?? "")
        : await readFile(join(folder, filename), "utf8");
      const [head = ""] = content.split("\n", 1);
      return { number: Number.parseInt(filename, 10), title: head.replace(/^#\s*/, ""), filename, content };
    }),
  );
}

const elsewhereOf = (session: Session) => session.settings.log.elsewhere;
const filesFolderOf = (session: Session): string => join(session.settings.log.directory, "files");
/** The contract has the plan beside the log. */
const nameThere = (path: string): string => {
  const plain = posix.normalize(path.split(sep).join("/"));
  return plain === PLAN ? plain : `files/${plain}`;
};

async function readIfThere(session: Session, path: string): Promise<string | undefined> {
  const place = await placeOf(session, path);
  const elsewhere = elsewhereOf(session);
  if (elsewhere) return elsewhere.read(nameThere(path));
  const found = await stat(place).catch(() => undefined);
  if (!found) return undefined;
  if (found.size > MAX_BYTES) {
    throw new TroupeError("limit", `${path} has ${found.size} bytes; at most ${MAX_BYTES} are read.`);
  }
  return readFile(place, "utf8");
}

/** Refuses what would leave the folder, by its words or by links. */
async function placeOf(session: Session, path: string): Promise<string> {
  const folder = filesFolderOf(session);
  const place = resolve(folder, path);
  const real = await realOrNearest(place);
  const home = await realOrNearest(folder);
  if (place === folder || !`${real}${sep}`.startsWith(`${home}${sep}`) || real === home) {
    throw new TroupeError("usage", `${path} is outside the workspace files directory of the session.`);
  }
  return place;
}

/** Where a path really leads, as far as it exists. */
async function realOrNearest(path: string): Promise<string> {
  const found = await realpath(path).catch(() => undefined);
  if (found !== undefined) return found;
  const parent = dirname(path);
  return parent === path ? path : join(await realOrNearest(parent), relative(parent, path));
}
