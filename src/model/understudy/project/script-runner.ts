/** The command that runs a script of a manifest. */

import { entriesOf, globHits, type Scene } from "../plan/plan.ts";
import { baseName } from "./languages.ts";
import type { Manifest, ManifestFact } from "./manifests.ts";

/** JavaScript package managers, with the lock files that only they write. */
const LOCK_FILES: readonly (readonly [manager: string, files: readonly string[]])[] = [
  ["pnpm", ["pnpm-lock.yaml", "pnpm-workspace.yaml"]],
  ["yarn", ["yarn.lock", ".yarnrc.yml"]],
  ["bun", ["bun.lock", "bun.lockb"]],
  ["npm", ["package-lock.json", "npm-shrinkwrap.json"]],
];

export function packageManagerOf(scene: Scene, manifests: readonly Manifest[]): string {
  return packageManagerAmong([...entriesOf(scene, "."), ...globHits(scene, "**/*").paths], manifests);
}

/** Returns the manager that package.json names, otherwise the one whose lock file exists, otherwise npm. */
export function packageManagerAmong(files: readonly string[], manifests: readonly Manifest[]): string {
  const named = manifests.find(({ manager }) => manager !== undefined)?.manager;
  const known = LOCK_FILES.find(([manager]) => manager === named);
  if (known !== undefined) return known[0];
  const names = new Set(files);
  const locked = LOCK_FILES.find(([, files]) => files.some((file) => names.has(file)));
  return locked?.[0] ?? "npm";
}

/** Returns the command line for a manifest's command. */
export function invocationOf(command: ManifestFact, packageManager: string): string {
  const file = baseName(command.path);
  if (file === "package.json") return `${packageManager} run ${command.label}`;
  if (/^deno\.jsonc?$/.test(file)) return `deno task ${command.label}`;
  return file === "composer.json" ? `composer run ${command.label}` : command.value;
}
