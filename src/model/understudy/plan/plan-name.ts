/** Plans the answer about one name: the file of that name if there is one, otherwise the code with that name. */
import { baseName, folderOf, isForeign } from "../project/languages.ts";
import { hitsOf, strictly } from "../search.ts";
import type { Term } from "../terms.ts";
import { ask, glob, globHits, type PlannedCall, type Scene, type UnderstudyStep, unfold } from "./plan.ts";
import { planExplain } from "./plan-explain.ts";
import { type FindQuestion, planFind } from "./plan-find.ts";

export function planName(scene: Scene, search: FindQuestion): UnderstudyStep {
  const [term, ...others] = search.terms;
  if (term === undefined || others.length > 0 || search.want === "uses" || !mayBeFile(term))
    return planFind(scene, search);
  const attempt = strictly(search.terms);
  const named = glob(`**/${term.text}`);
  const look = ask(scene, [named, ...attempt.calls]) ?? ask(scene, unfold(scene, [named, ...attempt.calls]));
  if (look !== undefined) return look;
  const path = fileNamed(scene, term, named);
  // A dotted name means a file if such a file exists. Any other name may also be an identifier.
  const isDefined = !term.text.includes(".") && hitsOf(scene, attempt, []).some((hit) => hit.defines);
  if (path === undefined || isDefined) return planFind(scene, search);
  return planExplain(scene, { path, terms: [], ...(search.preface === undefined ? {} : { preface: search.preface }) });
}

/** Patterns and paths are not file names. */
function mayBeFile(term: Term): boolean {
  return term.kind !== "word" && /^[\p{L}\p{N}._-]+$/u.test(term.text);
}

/** Returns the file nearest to the root. Lock files count; files in foreign folders do not. */
function fileNamed(scene: Scene, term: Term, named: PlannedCall): string | undefined {
  return globHits(scene, String(named.arguments.pattern))
    .paths.filter((path) => baseName(path) === term.text && !isForeign(`${folderOf(path)}/x`))
    .sort((a, b) => a.split("/").length - b.split("/").length || (a < b ? -1 : 1))[0];
}
