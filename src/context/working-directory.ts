import { realpathSync, statSync } from "node:fs";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { defined } from "../lib/defined.ts";
import { smallText } from "../lib/node/small-file.ts";
import type { WorkingDirectory } from "../protocol/event.ts";

/**
 * Returns the session's folder, repository, branch and commit. Reads git's files and never runs git, so a hostile
 * repository cannot run code, and a start costs a few reads.
 */
export function workingDirectory(cwd: string): WorkingDirectory {
  const folder = realpathSync(cwd);
  const git = findGit(folder);
  if (!git) return { cwd: folder };
  const head = readSmall(join(git.directory, "HEAD"))?.trim();
  const reference = head?.startsWith("ref: ") ? head.slice(5) : undefined;
  const branch = reference?.replace(/^refs\/heads\//, "");
  const commit = reference ? commitOf(reference, git) : head;
  const repository = repositoryOf(readSmall(join(git.common, "config")) ?? "");
  return {
    cwd: folder,
    gitRoot: git.root,
    ...defined({ repository }),
    ...(branch && { branch }),
    ...(commit && /^[0-9a-f]{40,64}$/.test(commit) && { headCommit: commit }),
  };
}

interface Git {
  /** The root of the work tree. */
  readonly root: string;
  /** The folder with HEAD; differs from `common` in a linked work tree. */
  readonly directory: string;
  readonly common: string;
}

function findGit(folder: string): Git | undefined {
  for (let root = folder; ; root = dirname(root)) {
    const entry = join(root, ".git");
    const stat = statSync(entry, { throwIfNoEntry: false });
    if (stat?.isDirectory()) return { root, directory: entry, common: entry };
    if (stat?.isFile()) {
      const pointer = readSmall(entry)?.match(/^gitdir: (.+)$/m)?.[1];
      if (pointer) {
        const directory = isAbsolute(pointer) ? pointer : resolve(root, pointer);
        const common = readSmall(join(directory, "commondir"))?.trim();
        return { root, directory, common: common ? resolve(directory, common) : directory };
      }
    }
    if (dirname(root) === root) return undefined;
  }
}

function commitOf(reference: string, git: Git): string | undefined {
  for (const directory of [git.directory, git.common]) {
    const loose = readSmall(join(directory, reference))?.trim();
    if (loose) return loose;
  }
  const packed = readSmall(join(git.common, "packed-refs"));
  return packed
    ?.split("\n")
    .find((line) => line.endsWith(` ${reference}`))
    ?.split(" ")[0];
}

/** Returns `owner/name` of the remote `origin` if its URL has that form, without credentials. */
function repositoryOf(config: string): string | undefined {
  const origin = config.split(/^\[/m).find((section) => /^remote "origin"\]/.test(section));
  const url = origin?.match(/^\s*url\s*=\s*(.+)$/m)?.[1]?.trim() ?? "";
  const path = url.includes("://") ? url.replace(/^[a-z0-9+.-]+:\/\/[^/]*\/?/i, "") : url.replace(/^[^/]*?:/, "");
  return path.match(/(?:^|\/)([^/@:\s]+\/[^/@:\s]+?)(?:\.git)?\/?$/)?.[1];
}

const MAX_BYTES = 1024 * 1024;

const readSmall = (path: string): string | undefined => smallText(path, MAX_BYTES);
