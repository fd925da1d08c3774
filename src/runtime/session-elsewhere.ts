/**
 * For a session that a client keeps: the plan and the files that agents work on lie in its folder on this machine, where tools
 * reach them, and at the client, where they last. Brought here when the session is opened, taken there when it rests.
 */
import { readdir, readFile, stat } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import type { Disk } from "../lib/node/disk.ts";
import { replaceFile } from "../lib/node/disk.ts";
import type { Session } from "../session/session.ts";
import type { Elsewhere, SessionLog } from "../store/store.ts";

export interface FileCarrier {
  listen(session: Session): void;
  /** What has changed here is there when this resolves; what cannot be taken there is said. */
  carry(): Promise<void>;
}

const MAX_FILES = 1_000;
const MAX_BYTES = 4 * 1024 * 1024;
/** Copies of what is there already. */
const COPIES = `temp${sep}`;

/** Undefined for a session that is kept here. */
export async function fileCarrier(log: SessionLog, disk: Disk): Promise<FileCarrier | undefined> {
  const { elsewhere } = log;
  if (!elsewhere) return undefined;
  const folder = join(log.directory, "files");
  const known = new Map<string, string>();
  const left = new Set<string>();
  if (log.events.length > 0) await bring(elsewhere, folder, disk);
  for (const [path, version] of await versionsIn(folder)) known.set(path, version);
  let session: Session | undefined;
  let working = Promise.resolve();

  async function carryChanges(): Promise<void> {
    const now = await versionsIn(folder);
    for (const [path, version] of now) {
      if (known.get(path) === version) continue;
      const content = await textOf(join(folder, path));
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

/** What is there and not here. What is here was written here last. */
async function bring(elsewhere: Elsewhere, folder: string, disk: Disk): Promise<void> {
  const plan = (await elsewhere.read("plan.md")) === undefined ? [] : ["plan.md"];
  const paths = [...plan, ...(await elsewhere.list("files")).slice(0, MAX_FILES)];
  for (const path of paths) {
    const place = join(folder, ...path.split("/"));
    // Whatever the client says, nothing is put outside of the folder.
    if (!place.startsWith(`${folder}${sep}`) || (await stat(place).catch(() => undefined))) continue;
    const content = await elsewhere.read(nameThere(path));
    if (content === undefined) continue;
    await disk.mkdir(dirname(place));
    await replaceFile(disk, place, content);
  }
}

async function versionsIn(folder: string): Promise<Map<string, string>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const versions = new Map<string, string>();
  for (const entry of entries.slice(0, MAX_FILES)) {
    const place = join(entry.parentPath, entry.name);
    const path = relative(folder, place);
    if (!entry.isFile() || path.startsWith(COPIES)) continue;
    const found = await stat(place).catch(() => undefined);
    if (found) versions.set(path, `${found.size} ${found.mtimeMs}`);
  }
  return versions;
}

async function textOf(place: string): Promise<string | undefined> {
  const { size } = await stat(place);
  if (size > MAX_BYTES) return undefined;
  const bytes = await readFile(place);
  const text = bytes.toString("utf8");
  return Buffer.from(text).equals(bytes) && !text.includes("\0") ? text : undefined;
}
