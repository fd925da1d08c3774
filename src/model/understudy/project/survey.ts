/** The project's files, as far as the tools could list them. */

import {
  ask,
  glob,
  globHits,
  type PlannedCall,
  type Scene,
  type UnderstudyStep,
  unfold,
  viewed,
} from "../plan/plan.ts";
import type { Paths } from "./evidence.ts";
import { isForeign } from "./languages.ts";

const MAX_TOP_GLOBS = 16;
/** Files that identify the packages of a large repository, found even if not every file can be listed. */
const SIGNS = "**/{package.json,pyproject.toml,Cargo.toml,go.mod,pom.xml,build.gradle,README.md}";

export interface Survey {
  readonly files: readonly string[];
  readonly total: number;
  /** False when there may be more files than `total`. */
  readonly exact: boolean;
  readonly cut: boolean;
  /** Number of files below a folder, if more were counted than listed. */
  readonly counted: ReadonlyMap<string, number>;
  readonly tops: Tops;
}

/** For a cut file list: the number of top folders, and those that were not listed individually. */
interface Tops {
  readonly all: number;
  readonly looked: number;
  readonly passedOver: ReadonlySet<string>;
}

/** Requests the rest of the file list if the first result was too large. */
export function askSurvey(scene: Scene): UnderstudyStep | undefined {
  const tops = topGlobs(scene);
  return (
    ask(scene, unfold(scene, [glob("**/*")])) ??
    ask(scene, tops) ??
    ask(scene, unfold(scene, tops)) ??
    ask(scene, innerGlobs(scene)) ??
    ask(scene, unfold(scene, innerGlobs(scene)))
  );
}

/** Returns a call for each top folder if the whole list was cut. */
function topGlobs(scene: Scene): PlannedCall[] {
  if (!globHits(scene, "**/*").cut) return [];
  const folders = topFolders(scene).slice(0, MAX_TOP_GLOBS);
  return [glob("*"), glob(SIGNS), ...folders.map((name) => glob(`${name}/**/*`))];
}

/** Returns a call for each top folder whose list was cut: it shows every subfolder by the files that lie directly in it. */
function innerGlobs(scene: Scene): PlannedCall[] {
  const lists = topGlobs(scene).map((call) => String(call.arguments.pattern));
  const cut = lists.filter((pattern) => pattern.endsWith("/**/*") && globHits(scene, pattern).cut);
  return cut.map((pattern) => glob(pattern.replace("/**/*", "/*/*")));
}

function topFolders(scene: Scene): string[] {
  const all = globHits(scene, "**/*");
  const top = viewed(scene, ".");
  const names = top.kind === "folder" ? top.entries : [...new Set(all.paths.map((path) => path.split("/")[0] ?? path))];
  const files = new Set(all.paths);
  return names.filter(
    (name) => !files.has(name) && !name.startsWith(".") && !isForeign(`${name}/x`) && !/\.\w{1,5}$/.test(name),
  );
}

export function surveyOf(scene: Scene): Survey {
  const all = globHits(scene, "**/*");
  const parts: Paths[] = topGlobs(scene).map((call) => globHits(scene, String(call.arguments.pattern)));
  const top = viewed(scene, ".");
  const listed =
    all.paths.length === 0 && top.kind === "folder" ? top.entries.filter((name) => /\.\w+$|^[A-Z]/.test(name)) : [];
  const inner = innerGlobs(scene).flatMap((call) => globHits(scene, String(call.arguments.pattern)).paths);
  const files = [...new Set([...all.paths, ...parts.flatMap((part) => part.paths), ...inner, ...listed])]
    .filter((path) => !isForeign(path))
    .sort();
  const counted = new Map(
    topGlobs(scene).flatMap((call, index) => {
      const folder = /^([^*{]+)\/\*\*\/\*$/.exec(String(call.arguments.pattern))?.[1];
      const part = parts[index];
      return folder === undefined || part === undefined || !part.cut ? [] : [[folder, part.total] as const];
    }),
  );
  const folders = all.cut ? topFolders(scene) : [];
  const passedOver = new Set(folders.slice(MAX_TOP_GLOBS));
  const tops = { all: folders.length, looked: folders.length - passedOver.size, passedOver };
  const partly = all.cut && (passedOver.size > 0 || parts.length === 0 || parts.some((part) => part.cut));
  const exact = !partly || all.total > all.paths.length;
  return { files, exact, total: partly ? Math.max(all.total, files.length) : files.length, cut: partly, counted, tops };
}
