import { chmod, mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path";

/** File contents by relative path with `/`. */
export type FileTree = Readonly<Record<string, string | Uint8Array>>;

export interface TempFolder extends AsyncDisposable {
  /** Absolute and free of symbolic links. */
  readonly path: string;
  /** Returns the absolute path of an entry inside. Throws for paths outside. */
  at(path: string): string;
  /** Writes files, with the folders they need. */
  files(tree: FileTree): Promise<void>;
  read(path: string): Promise<string>;
  /** Returns every file below as text, for whole-tree assertions. */
  tree(): Promise<Record<string, string>>;
  remove(): Promise<void>;
}

/** Makes all folders below accessible: a test may have closed some, which only root can delete. */
async function unlock(path: string): Promise<void> {
  await chmod(path, 0o700);
  for (const entry of await readdir(path, { withFileTypes: true, encoding: "buffer" })) {
    if (entry.isDirectory()) await unlock(join(path, entry.name.toString("latin1"))).catch(() => undefined);
  }
}

/** Creates a folder for one test. It is removed at the end of the block: `await using folder = await tempFolder()`. */
export async function tempFolder(tree: FileTree = {}): Promise<TempFolder> {
  const path = await realpath(await mkdtemp(join(tmpdir(), "troupe-")));
  const erase = (): Promise<void> => rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 });
  const remove = (): Promise<void> => erase().catch(() => unlock(path).then(erase));
  const folder: TempFolder = {
    path,
    at(inner) {
      const whole = resolve(path, inner);
      const way = relative(path, whole);
      if (way === ".." || way.startsWith(`..${sep}`) || isAbsolute(way))
        throw new Error(`temp folder: ${inner} is outside of ${path}`);
      return whole;
    },
    async files(more) {
      for (const [name, content] of Object.entries(more)) {
        const file = folder.at(name);
        await mkdir(dirname(file), { recursive: true });
        await writeFile(file, content);
      }
    },
    read: (name) => readFile(folder.at(name), "utf8"),
    async tree() {
      const entries = await readdir(path, { recursive: true, withFileTypes: true });
      const names = entries
        .filter((entry) => entry.isFile())
        .map((entry) => relative(path, join(entry.parentPath, entry.name)).replaceAll(sep, "/"))
        .sort();
      return Object.fromEntries(await Promise.all(names.map(async (name) => [name, await folder.read(name)] as const)));
    },
    remove,
    [Symbol.asyncDispose]: remove,
  };
  try {
    await folder.files(tree);
  } catch (error) {
    await remove();
    throw error;
  }
  return folder;
}
