/** Copies plugins into the state root, completely or not at all, and nothing from outside of their folder. */
import { readdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Disk, writeNewFile } from "../../lib/node/disk.ts";
import { readRegular } from "../../lib/node/shared-folder.ts";
import { TroupeError } from "../../protocol/errors.ts";

const MAX_FILES = 5_000;
const MAX_BYTES = 50 * 1024 * 1024;
/** Folders of development tools, which are not part of a plugin. */
const LEFT_OUT = new Set([".git"]);

/** Replaces an existing copy. Throws for links, because their targets may change. */
export async function copyPlugin(from: string, to: string, ports: { disk: Disk; stateRoot: string }): Promise<void> {
  const { disk, stateRoot } = ports;
  const staging = join(stateRoot, "plugin-staging", crypto.randomUUID());
  try {
    await copyFolder(from, staging, { disk, left: { files: MAX_FILES, bytes: MAX_BYTES } });
    await disk.mkdir(dirname(to));
    await disk.remove(to);
    await disk.rename(staging, to);
    await disk.syncDirectory(dirname(to));
  } catch (error) {
    await disk.remove(staging).catch(() => undefined);
    throw error;
  }
}

interface CopyContext {
  readonly disk: Disk;
  readonly left: { files: number; bytes: number };
}

async function copyFolder(from: string, to: string, copying: CopyContext): Promise<void> {
  const { disk, left } = copying;
  await disk.mkdir(to);
  for (const entry of await readdir(from, { withFileTypes: true })) {
    if (LEFT_OUT.has(entry.name)) continue;
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) await copyFolder(source, target, copying);
    else if (!entry.isFile())
      throw new TroupeError("usage", `${source} is a link or not a regular file, which plugins must not contain.`);
    else {
      const { size, mode } = await stat(source);
      left.files -= 1;
      left.bytes -= size;
      if (left.files < 0 || left.bytes < 0) {
        const message = `${from} is too large for a plugin: at most ${MAX_FILES} files and ${MAX_BYTES} bytes.`;
        throw new TroupeError("limit", message);
      }
      await writeNewFile(disk, target, [await readRegular(source, MAX_BYTES)]);
      if ((mode & 0o100) !== 0) await disk.makeRunnable(target);
    }
  }
}

/** Counts the skills that a session finds in these folders. */
export async function countSkills(folders: readonly string[]): Promise<number> {
  const isThere = (path: string): Promise<boolean> =>
    stat(path).then(
      (entry) => entry.isFile(),
      () => false,
    );
  const counts = folders.map(async (folder) => {
    if (await isThere(join(folder, "SKILL.md"))) return 1;
    const names = await readdir(folder).catch(() => []);
    const found = await Promise.all(names.slice(0, MAX_FILES).map((name) => isThere(join(folder, name, "SKILL.md"))));
    return found.filter(Boolean).length;
  });
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
}
