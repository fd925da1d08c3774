/** Finds changes of a merge that the user must agree to: protected names, and links that lead to them. */
import { dirname, join, resolve } from "node:path";
import { caseFold } from "../permissions/case-fold.ts";
import { linkedPaths } from "../permissions/linked-paths.ts";
import {
  type ProtectedPaths,
  type Protection,
  protectionOf,
  protectionOfBoth,
  protectionOfLink,
  strictest,
} from "../permissions/protected-paths.ts";
import { realPathOf } from "../permissions/resolve-path.ts";
import { TroupeError } from "../protocol/errors.ts";
import { MISSING, type TreeChange } from "./worktree-plan.ts";

export interface ProtectedChange {
  readonly path: string;
  /** `deny`: tools may never write it. `ask`: they may if the user agrees. */
  readonly protection: NonNullable<Protection>;
}

export const GITLINK = "160000";
const LINK = "120000";

interface Tree {
  readonly workTree: string;
  /** The folder with troupe's state. */
  readonly stateRoot: string;
}

/** Returns changes of protected paths. Deletions and mode changes count as writes. */
export function protectedNames(
  changes: readonly (Pick<TreeChange, "path"> & Partial<TreeChange>)[],
  tree: Tree,
): ProtectedChange[] {
  const protectedPaths = placesOf(tree);
  return changes.flatMap(({ path, before, after }) => {
    const written = join(tree.workTree, path);
    const isLink = [before?.mode, after?.mode].some((mode) => mode === LINK || mode === GITLINK);
    const protection = strictest([
      protectionOfBoth({ real: realPathOf(written, "/"), written }, protectedPaths),
      isLink ? protectionOfLink(written, protectedPaths) : undefined,
    ]);
    return protection === undefined ? [] : [{ path, protection }];
  });
}

/** Returns links to protected targets, because later writes through the link reach the target. */
export function protectedTargets(links: readonly { path: string; target: string }[], tree: Tree): ProtectedChange[] {
  const protectedPaths = placesOf(tree);
  return links.flatMap(({ path, target }) => {
    const written = resolve(tree.workTree, dirname(path), target);
    const protection = strictest([
      protectionOf(written, protectedPaths),
      protectionOf(realPathOf(written, "/"), protectedPaths),
      // Check the target as written too: through other links, `a/../.git` may be another folder than `.git`.
      protectionOf(`/${target}`, protectedPaths),
    ]);
    return protection === undefined ? [] : [{ path, protection }];
  });
}

const placesOf = ({ workTree, stateRoot }: Tree): ProtectedPaths => ({
  stateRoot: realPathOf(stateRoot, "/"),
  writable: [],
  ...linkedPaths([workTree]),
});

/** Throws for hand-made trees whose paths leave the work tree, or lead through a file or link of the same tree. */
export function refuseMalformed(changes: readonly TreeChange[]): void {
  const files = new Set(changes.filter(({ after }) => after.mode !== MISSING).map(({ path }) => caseFold(path)));
  const isMalformed = ({ path, after }: TreeChange): boolean => {
    const names = caseFold(path).split("/");
    if (names.some((name) => name === "" || name === "." || name === "..")) return true;
    return after.mode !== MISSING && names.some((_, index) => index > 0 && files.has(names.slice(0, index).join("/")));
  };
  const found = changes.find(isMalformed);
  if (!found) return;
  throw new TroupeError("failed", `Nothing was merged: ${found.path} is not a path that git would write.`, {
    hint: "The commits of this worktree were not made in the usual way. Inspect its branch with git.",
  });
}
