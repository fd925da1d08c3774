/** The descriptions that files and folders give of themselves. */

import { linesOf, type Scene, wholeLinesOf } from "./plan/plan.ts";
import { type Folder, speakersOf } from "./project/folders.ts";
import { baseName, isProse } from "./project/languages.ts";
import { isManifest, readManifest } from "./project/manifests.ts";
import { leadingRemark, type Remark, titleOf } from "./project/read-source.ts";
import type { Report } from "./report.ts";

/** The known files: read by this agent, or reported by another one. */
interface Sight {
  readonly scene: Scene;
  readonly files: readonly string[];
  readonly reports: readonly Report[];
}

export interface FoundRemark {
  readonly path: string;
  readonly remark: Remark;
}

/** Returns the folder's description from its own files. */
export function remarkFor({ scene, files, reports }: Sight, folder: Folder): FoundRemark | undefined {
  const report = reports.find((one) => one.folder === folder.path);
  for (const path of speakersOf(folder, files).slice(0, 2)) {
    const told = report?.rows.find((row) => row.path === path && row.kind === "remark");
    const remark = remarkIn(scene, path) ?? told;
    if (remark !== undefined) return { path, remark };
  }
  return undefined;
}

/** Returns the description in a file that was viewed. */
export function remarkIn(scene: Scene, path: string): Remark | undefined {
  const lines = linesOf(scene, path);
  if (lines.length === 0) return undefined;
  if (isManifest(path)) {
    const about = readManifest(path, wholeLinesOf(scene, path))?.about.find((fact) => fact.label === "description");
    return about?.line === undefined ? undefined : { text: about.value, line: about.line };
  }
  const own = isProse(path) && !/^readme/i.test(baseName(path)) ? titleOf(lines) : undefined;
  return own ?? leadingRemark(path, lines) ?? titleOf(lines);
}
