/**
 * Synchronizes the files of a session stored by a client. Tools use them in a local folder; the client persists them.
 * They are copied here when the session opens, and to the client when it becomes idle.
 */
import { join, sep } from "node:path";
import type { Disk } from "../../lib/node/disk.ts";
import { PathError } from "../../lib/node/paths.ts";
import { filesInShared, readShared, writeShared } from "../../lib/node/shared-folder.ts";
import type { Session } from "../../session/session.ts";
import type { ClientFiles, SessionLog } from "../../store/store.ts";

export interface FileCarrier {
  listen(session: Session): void;
  /** Resolves when local changes are at the client. Files that cannot be stored there cause a warning. */
  carry(): Promise<void>;
}

const MAX_FILES = 1_000;
const MAX_BYTES = 4 * 1024 * 1024;
/** Copies made by older versions of files that the client has. */
const COPIES = `temp${sep}`;

/** Returns undefined for a session that is stored locally. */
export async function fileCarrier(log: SessionLog, disk: Disk): Promise<FileCarrier | undefined> {
  const { clientFiles } = log;
  if (!clientFiles) return undefined;
  const folder = join(log.directory, "files");
  const known = new Map<string, string>();
  const left = new Set<string>();
  const refused = log.events.length > 0 ? await bring(clientFiles, folder, disk) : [];
  for (const [path, version] of await versionsIn(folder)) known.set(path, version);
  let session: Session | undefined;
  let working = Promise.resolve();

  async function carryChanges(): Promise<void> {
    const now = await versionsIn(folder);
    for (const [path, version] of now) {
      if (known.get(path) === version) continue;
      const content = await textOf(folder, path);
      if (content !== undefined) await clientFiles?.write(nameThere(path), content);
      else if (!left.has(path)) {
        left.add(path);
        session?.record.warn(
          "storage",
          `${path} stays on this machine: only texts up to ${MAX_BYTES} bytes are kept by the client.`,
        );
      }
      known.set(path, version);
    }
    for (const path of [...known.keys()].filter((one) => !now.has(one))) {
      await clientFiles?.remove(nameThere(path));
      known.delete(path);
    }
  }

  const carry = (): Promise<void> => {
    const next = working.then(carryChanges);
    working = next.catch(() => undefined);
    return next;
  };
  return {
    listen(started) {
      session = started;
      for (const message of refused) started.record.warn("storage", message);
      started.subscribe(({ type }) => {
        if (type !== "session.idle") return;
        carry().catch((error: unknown) => {
          const reason = error instanceof Error ? error.message : String(error);
          started.record.warn(
            "storage",
            `The files of the session could not be taken to the client that keeps them: ${reason}`,
          );
        });
      });
    },
    carry,
  };
}

/** Returns the path at the client, where the plan is beside the log. */
const nameThere = (path: string): string => (path === "plan.md" ? path : `files/${path.split(sep).join("/")}`);

/**
 * Writes files that the client has and this machine lacks; a local file is always newer. Never writes through links,
 * which a command may have left. Returns messages about files that could not be written.
 */
async function bring(clientFiles: ClientFiles, folder: string, disk: Disk): Promise<string[]> {
  const plan = (await clientFiles.read("plan.md")) === undefined ? [] : ["plan.md"];
  const paths = [...plan, ...(await clientFiles.list("files")).slice(0, MAX_FILES)];
  const refused: string[] = [];
  for (const path of paths) {
    const content = await clientFiles.read(nameThere(path));
    if (content === undefined) continue;
    await writeShared(folder, path, { content, disk, onlyNew: true }).catch((error: unknown) => {
      if (!(error instanceof PathError)) throw error;
      refused.push(`${path} of the session was not brought to this machine: ${error.message}`);
    });
  }
  return refused;
}

async function versionsIn(folder: string): Promise<Map<string, string>> {
  const files = await filesInShared(folder, { maxFiles: MAX_FILES });
  const own = files.filter(({ path }) => !path.startsWith(COPIES));
  return new Map(own.map(({ path, stat }) => [path, `${stat.size} ${stat.mtimeMs}`]));
}

/** Returns `undefined` for anything but a text of a bounded size in a regular file. */
async function textOf(folder: string, path: string): Promise<string | undefined> {
  const bytes = await readShared(folder, path, MAX_BYTES).catch((error: unknown) => {
    if (!(error instanceof PathError)) throw error;
    return undefined;
  });
  const text = bytes?.toString("utf8");
  const isText = bytes && text !== undefined && Buffer.from(text).equals(bytes) && !text.includes("\0");
  return isText ? text : undefined;
}
