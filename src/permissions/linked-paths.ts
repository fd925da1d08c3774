/**
 * Resolves the real locations of a workspace's protected names. A repository can make `.vscode` a link to `conf`; an
 * editor then reads `conf`. The git folder of a linked worktree or a submodule is elsewhere too.
 */
import * as fs from "node:fs";
import { dirname, join, resolve } from "node:path";
import { smallText } from "../lib/node/small-file.ts";
import { PROTECTED_FILES, PROTECTED_FOLDERS, PROTECTED_PARTS } from "../lib/protected-names.ts";
import type { ProtectedPaths } from "./protected-paths.ts";
import { realPathOf } from "./resolve-path.ts";

const NAMES = [
  ...PROTECTED_FOLDERS,
  ...PROTECTED_FILES,
  ...Object.entries(PROTECTED_PARTS).flatMap(([folder, parts]) => parts.map((part) => `${folder}/${part}`)),
];
const MAX_POINTER_BYTES = 4096;

export function linkedPaths(folders: readonly string[]): Pick<ProtectedPaths, "gitFolders" | "linkTargets"> {
  const real = [...new Set(folders.map((folder) => realPathOf(folder, "/")))];
  const linkTargets = real.flatMap((folder) =>
    NAMES.flatMap((name) => {
      const target = realPathOf(name, folder);
      return target === join(folder, name) ? [] : [target];
    }),
  );
  return { gitFolders: [...new Set(real.flatMap(gitFoldersOf))], linkTargets: [...new Set(linkTargets)] };
}

/** Returns the git folder of the surrounding repository, and the one it shares with other worktrees. */
function gitFoldersOf(start: string): string[] {
  for (let folder = start; ; folder = dirname(folder)) {
    const entry = join(folder, ".git");
    const stat = fs.lstatSync(entry, { throwIfNoEntry: false });
    if (stat !== undefined) {
      const own = stat.isFile() ? pointedAt(entry, /^gitdir: (.+)$/m) : realPathOf(entry, "/");
      const common = own && pointedAt(join(own, "commondir"), /^(.+)$/m);
      return [own, common].filter((path) => path !== undefined);
    }
    if (dirname(folder) === folder) return [];
  }
}

function pointedAt(file: string, form: RegExp): string | undefined {
  const [, target] = form.exec(smallText(file, MAX_POINTER_BYTES) ?? "") ?? [];
  return target === undefined ? undefined : realPathOf(resolve(dirname(file), target.trim()), "/");
}
