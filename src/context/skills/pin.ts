/** Pins a workspace's scripts by hash: they are used only as the user approved them. */
import { createHash, type Hash } from "node:crypto";
import { constants } from "node:fs";
import { openForReading, PathError } from "../../lib/node/paths.ts";
import { realPath } from "../../lib/node/real-path.ts";
import type { PinnedItem } from "../../lib/pinned-item.ts";
import { clip, plural, sanitise } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { Skill } from "./skill.ts";
import { lookAtFiles, type SkillFiles } from "./skill-files.ts";

const MAX_PINNED_BYTES = 2 * 1024 * 1024;
const MAX_PINNED_FILES = 200;
const MAX_NAMES_SHOWN = 20;
const { S_IXUSR } = constants;

/** Returns the item to approve. Throws a `TroupeError` when the folder is too large or a link leads out of it. */
export async function pinnedItem(
  skill: Pick<Skill, "name" | "directory" | "root" | "path">,
): Promise<PinnedItem<"skill">> {
  const { digest, files } = await digestFolder(skill.directory, { root: skill.root, what: `skill ${skill.name}` });
  const shown = `Skill "${skill.name}" in ${skill.directory}\n${listOf(files)}`;
  return { kind: "skill", id: skill.path, digest, shown };
}

/** Returns a SHA-256 over the names, execute bits and content of every file below the folder. */
export async function digestFolder(
  folder: string,
  limits: { root: string; what: string; maxFiles?: number },
): Promise<{ digest: string; files: SkillFiles }> {
  const maxFiles = limits.maxFiles ?? MAX_PINNED_FILES;
  const real = realPath(folder);
  const refuse = (problem: string): never => {
    const hint = "Remove unneeded files, or copy it into your own folder of skills or plugins.";
    throw new TroupeError("configuration", `The ${limits.what} in ${folder} cannot be approved: ${problem}`, { hint });
  };
  if (real === undefined) return refuse("it no longer exists.");
  const files = lookAtFiles(real, { root: limits.root, budget: { left: maxFiles * 2 }, maxFiles });
  if (files.leavesBy !== undefined) return refuse(`the link ${clip(files.leavesBy, 200)} leads out of it.`);
  if (!files.complete) return refuse(`it holds more than ${plural(maxFiles, "file")}.`);
  const hash = createHash("sha256");
  let left = MAX_PINNED_BYTES;
  for (const file of files.files) {
    const length = await addFile(hash, file, { folder: real, root: limits.root, left }).catch((error: unknown) => {
      if (error instanceof PathError) return refuse(error.message);
      throw error;
    });
    left -= length;
    if (left < 0) return refuse(`its files have more than ${MAX_PINNED_BYTES} bytes in all.`);
  }
  return { digest: hash.digest("hex"), files };
}

/** Hashes the name and size first, so that different folders never give the same bytes. */
async function addFile(hash: Hash, file: string, at: { folder: string; root: string; left: number }): Promise<number> {
  const opened = await openForReading(file, { cwd: at.folder, roots: [at.root] });
  try {
    if (opened.kind !== "file") throw new PathError("special", file, `${file} leads to a folder by a link.`);
    const { size, mode } = opened.stat;
    if (size > at.left) return size;
    const buffer = Buffer.alloc(size);
    const { bytesRead } = await opened.handle.read(buffer, 0, size, 0);
    if (bytesRead !== size) throw new PathError("unreadable", file, `${file} was changed while it was read.`);
    hash.update(JSON.stringify([file, size, (mode & S_IXUSR) !== 0]));
    hash.update(buffer);
    return size;
  } finally {
    await opened.handle.close();
  }
}

function listOf({ files, scripts }: SkillFiles): string {
  const ordered = [...scripts, ...files.filter((file) => !scripts.includes(file))];
  const named = ordered
    .slice(0, MAX_NAMES_SHOWN)
    .map(
      (file) => `  ${clip(sanitise(file).replaceAll("\n", " "), 200)}${scripts.includes(file) ? "  (can be run)" : ""}`,
    );
  const hidden = ordered.length - named.length;
  return [...named, ...(hidden > 0 ? [`  and ${plural(hidden, "more file")}`] : [])].join("\n");
}
