/** Reads and writes the files of one session at the client that stores it. */

import { dirname, join, posix, win32 } from "node:path";
import { type Disk, replaceFile } from "../../lib/node/disk.ts";
import type { FileProvider } from "../../protocol/session-fs.ts";
import { RECORDS } from "../access.ts";
import { checkSize, cleanName } from "../assets.ts";
import { failTo } from "../storage-error.ts";
import type { ClientFiles } from "../store.ts";

export interface ClientStoreContext {
  readonly provider: FileProvider;
  readonly sessionId: string;
  /** The session's folder on this machine. */
  readonly directory: string;
  readonly disk: Disk;
}

export interface ClientStoreFiles extends ClientFiles {
  append(path: string, content: string): Promise<void>;
  /**
   * Stores a text at the client under a new numbered name, with a copy on this machine. Returns the client's name for
   * it.
   */
  storeNumbered(name: string, content: string): Promise<string>;
}

const MAX_LISTED = 10_000;
const MAX_DEPTH = 16;
const LARGE_OUTPUTS = "temp";

export function clientStoreFiles(context: ClientStoreContext): ClientStoreFiles {
  const { provider, sessionId, directory, disk } = context;
  const { join: joinThere } = provider.conventions === "windows" ? win32 : posix;
  const nameOf = (path: string): string => joinThere(provider.folder, ...path.split("/"));
  const made = new Map<string, Promise<void>>();
  const copies = new Map<string, string>();
  const nextNumber = fileNumbers(async () => {
    const entries = await provider.list(sessionId, nameOf(LARGE_OUTPUTS));
    return entries.map(({ name }) => name);
  });

  /** Creates each folder once. A failed call is retried the next time. */
  function makeFolder(path: string): Promise<void> {
    const folder = nameOf(dirname(path));
    const making = made.get(folder) ?? provider.makeFolder(sessionId, folder);
    made.set(folder, making);
    making.catch(() => made.delete(folder));
    return making;
  }

  async function write(path: string, content: string): Promise<void> {
    checkSize(Buffer.byteLength(content));
    await makeFolder(path);
    const temporary = nameOf(`${path}.tmp`);
    await provider.write(sessionId, temporary, content);
    await provider.rename(sessionId, temporary, nameOf(path));
  }

  return {
    directory: provider.folder,
    nameOf,
    read: (path) => provider.read(sessionId, nameOf(path)).catch(failTo(`read ${path} of the session`)),
    write: (path, content) => write(path, content).catch(failTo(`write ${path} of the session`)),
    async append(path, content) {
      await makeFolder(path);
      await provider.append(sessionId, nameOf(path), content);
    },
    remove: (path) => provider.remove(sessionId, nameOf(path)).catch(failTo(`delete ${path} of the session`)),
    list: (folder) =>
      listBelow(folder, (path) => provider.list(sessionId, nameOf(path))).catch(
        failTo("list the files of the session"),
      ),
    async storeNumbered(name, content) {
      const path = `${LARGE_OUTPUTS}/${await nextNumber()}-${cleanName(name)}`;
      await write(path, content);
      const copy = join(directory, RECORDS, path);
      await disk.mkdir(dirname(copy));
      await replaceFile(disk, copy, content);
      copies.set(nameOf(path), copy);
      return nameOf(path);
    },
    copyOf: (path) => copies.get(path),
    sqlite: provider.sqlite,
  };
}

/** Returns the files below a folder, up to a limit and a depth. */
async function listBelow(
  folder: string,
  listOne: (folder: string) => Promise<readonly { readonly name: string; readonly isFolder: boolean }[]>,
  depth = 0,
): Promise<string[]> {
  const names: string[] = [];
  for (const { name, isFolder } of await listOne(folder)) {
    if (names.length >= MAX_LISTED) break;
    if (!isFolder) names.push(name);
    else if (depth < MAX_DEPTH)
      names.push(...(await listBelow(`${folder}/${name}`, listOne, depth + 1)).map((path) => `${name}/${path}`));
  }
  return names.slice(0, MAX_LISTED);
}

/** Returns a function that numbers new files after the existing ones. A failed listing is retried the next time. */
function fileNumbers(listNames: () => Promise<readonly string[]>): () => Promise<number> {
  let highest: Promise<number> | undefined;
  let count = 0;
  const highestNumber = async (): Promise<number> =>
    Math.max(0, ...(await listNames()).map((name) => Number(/^(\d{1,9})-/.exec(name)?.[1] ?? 0)));
  return async () => {
    highest ??= highestNumber();
    highest.catch(() => {
      highest = undefined;
    });
    return (await highest) + ++count;
  };
}
