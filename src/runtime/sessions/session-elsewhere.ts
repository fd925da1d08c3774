/**
 * For a session that a client keeps: the plan and the files that agents work on lie in its folder on this machine, where tools
 * reach them, and at the client, where they last. Brought here when the session is opened, taken there when it rests.
 */
import { join, sep } from "node:path";
import type { Disk } from "../../lib/node/disk.ts";
import { PathError } from "../../lib/node/paths.ts";
import { filesInShared, readShared, writeShared } from "../../lib/node/shared-folder.ts";
import type { Session } from "../../session/session.ts";
import type { Elsewhere, SessionLog } from "../../store/store.ts";

export interface FileCarrier {
  listen(session: Session): void;
  /** What has changed here is there when this resolves; what cannot be taken there is said. */
  carry(): Promise<void>;
}

const MAX_FILES = 1_000;
const MAX_BYTES = 4 * 1024 * 1024;
/** Copies that older versions made here of files that the client has. */
const COPIES = `temp${sep}`;

/** Undefined for a session that is kept here. */
export async function fileCarrier(log: SessionLog, disk: Disk): Promise<FileCarrier | undefined> {
  const { elsewhere } = log;
  if (!elsewhere) return undefined;
  const folder = join(log.directory, "files");
  const known = new Map<string, string>();
  const left = new Set<string>();
  const refused = log.events.length > 0 ? await bring(elsewhere, folder, disk) : [];
  for (const [path, version] of await versionsIn(folder)) known.set(path, version);
  let session: Session | undefined;
  let working = Promise.resolve();

  async function carryChanges(): Promise<void> {
    const now = await versionsIn(folder);
    for (const [path, version] of now) {
      if (known.get(path) === version) continue;
      const content = await textOf(folder, path);
      if (content !== undefined) await elsewhere?.write(nameThere(path), content);
      else if (!left.has(path)) {
        left.add(path);
        session?.warn(
          "storage",
          `${path} stays on this machine: only texts up to ${MAX_BYTES} bytes are kept by the client.`,
        );
      }
      known.set(path, version);
    }
    for (const path of [...known.keys()].filter((one) => !now.has(one))) {
      await elsewhere?.remove(nameThere(path));
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
      for (const message of refused) started.warn("storage", message);
      started.subscribe(({ type }) => {
        if (type !== "session.idle") return;
        carry().catch((error: unknown) => {
          const reason = error instanceof Error ? error.message : String(error);
          started.warn(
            "storage",
            `The files of the session could not be taken to the client that keeps them: ${reason}`,
          );
        });
      });
    },
    carry,
  };
}

/** The contract has the plan beside the log. */
const nameThere = (path: string): string => (path === "plan.md" ? path : `files/${path.split(sep).join("/")}`);

/**
 * Writes the files that the client has and this machine has not; a file that is here was written here last.
 * A command may have left links here, so nothing is written through them. Returns what could not be written.
 */
async function bring(elsewhere: Elsewhere, folder: string, disk: Disk): Promise<string[]> {
  const plan = (await elsewhere.read("plan.md")) === undefined ? [] : ["plan.md"];
  const paths = [...plan, ...(await elsewhere.list("files")).slice(0, MAX_FILES)];
  const refused: string[] = [];
  for (const path of paths) {
    const content = await elsewhere.read(nameThere(path));
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
