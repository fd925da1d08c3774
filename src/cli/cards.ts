/** Coordinated workers as cards: what each is at, and in the end its status and summary. */
import type { EventData } from "../protocol/event.ts";
import { type Labels, statusLabel } from "../protocol/labels.ts";

export interface Card {
  /** Its name for people. */
  readonly title: string;
  /** Which of its coordinator's messages it works for: those of one message stand together. */
  readonly group: number;
  /** By their ids: a step that comes again takes the place of the former. */
  readonly steps: ReadonlyMap<string, Step>;
  /** What it handed in, or what came instead. */
  readonly result?: { readonly status: string; readonly summary: string };
}

export type Step = EventData<"troupe.subagent_step">;

/** With this id a worker's last step says what came of it. */
export const RESULT = "result";

export function withStep(card: Card, step: Step): Card {
  const steps = new Map(card.steps).set(step.stepId, step);
  if (step.stepId !== RESULT) return { ...card, steps };
  return { ...card, steps, result: { status: step.status, summary: step.note ?? "" } };
}

/** "2 workers: 1 at work, 1 completed". */
export function groupText(cards: readonly Card[], labels: Labels): string {
  const counts = new Map<string, number>();
  for (const { result } of cards) {
    const status = statusLabel(result?.status ?? "at_work", labels);
    counts.set(status, (counts.get(status) ?? 0) + 1);
  }
  const states = [...counts].map(([status, count]) => `${count} ${status}`);
  return `${cards.length} ${cards.length === 1 ? labels.worker : labels.workers}: ${states.join(", ")}`;
}
