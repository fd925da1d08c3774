import { join } from "node:path";
import { loadSettings } from "../../catalog/settings/settings.ts";
import { workingDirectory } from "../../context/working-directory.ts";
import { defined } from "../../lib/defined.ts";
import type { Disk } from "../../lib/node/disk.ts";
import { LinkedSecrets } from "../../tools/shell/sandbox/linked-secrets.ts";
import { mayReadBy } from "./policy.ts";

/**
 * Returns a check of the uncommitted files that a fork may get: no rule denies to read them, and no `.env` link led to
 * them. In the fork they would lie at a path that the rule does not name, and in the objects of the repository.
 */
export function mayFork(parts: { stateRoot: string; cwd: string; disk: Disk }): (path: string) => boolean {
  const { stateRoot, disk } = parts;
  const { cwd, gitRoot } = workingDirectory(parts.cwd);
  const { rules } = loadSettings({ stateRoot, cwd, ...defined({ gitRoot }), isTrusted: () => false });
  const mayRead = mayReadBy([], rules, cwd);
  const secrets = new Set(new LinkedSecrets(join(stateRoot, "sandbox"), disk).all());
  return (path) => !secrets.has(path) && mayRead?.(path) !== false;
}
