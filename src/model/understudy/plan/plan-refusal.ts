/**
 * Plans the answer to a request that rules cannot fulfil: says so, and lists the few places in the code that it names.
 */
import type { Task } from "../intent.ts";
import type { Ranked } from "../project/rank.ts";
import { hitsOf, strictly, withinNamed } from "../search.ts";
import type { Term } from "../terms.ts";
import { heading, hitRow, writeAnswer } from "../write-answer.ts";
import { ask, type Scene, type UnderstudyStep, unfold } from "./plan.ts";
import { planExplain } from "./plan-explain.ts";
import { beyondWords, cannot } from "./plan-talk.ts";

const MAX_PLACES = 5;

export function planRefusal(scene: Scene, task: Extract<Task, { kind: "beyond" }>): UnderstudyStep {
  const { verb, path, terms } = task;
  if (path !== undefined) return planExplain(scene, { path, terms, preface: cannot(verb) });
  if (!isTelling(terms)) return beyondWords(verb);
  const attempt = strictly(terms);
  const inner = withinNamed(scene, attempt);
  const look = ask(scene, attempt.calls) ?? ask(scene, unfold(scene, attempt.calls)) ?? ask(scene, inner);
  if (look !== undefined) return look;
  const rows = placesOf(hitsOf(scene, attempt, inner), terms).map(hitRow);
  if (rows.length === 0) return beyondWords(verb);
  return { kind: "answer", text: writeAnswer([cannot(verb), heading("Code that your prompt names", rows)]) };
}

/** One plain word is everywhere. A name, or two words together, is specific. */
function isTelling(terms: readonly Term[]): boolean {
  return terms.length > 1 || terms.some((term) => term.kind !== "word");
}

function placesOf(ranked: readonly Ranked[], terms: readonly Term[]): Ranked[] {
  const least = terms.every((term) => term.kind === "word") ? 2 : 1;
  const telling = ranked.filter((hit) => hit.covers >= least);
  const defining = telling.filter((hit) => hit.defines);
  return (defining.length > 0 ? defining : telling).slice(0, MAX_PLACES);
}
