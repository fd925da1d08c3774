import { defined } from "../lib/defined.ts";

interface Phase {
  readonly id: string;
  /** Index among the declared phases; null for an undeclared phase. */
  readonly ordinal: number | null;
  readonly title: string;
  readonly detail?: string;
  entryCount: number;
  lastEnteredRunAttempt: number;
  startedAt?: number;
  completedAt?: number;
  accumulatedActiveMs: number;
}

export interface PhaseView extends Omit<Phase, "startedAt" | "completedAt"> {
  readonly status: "pending" | "active" | "completed" | "skipped";
  readonly startedAt?: number;
  readonly completedAt?: number;
  readonly currentActiveMs: number;
}

/** The phases of one run: the declared ones and any others that it entered. At most one phase is active at a time. */
export class Phases {
  readonly #phases: Phase[];
  #current: { readonly phase: Phase; readonly since: number } | undefined;
  #last: string | null = null;
  /** The time at which the run ended. */
  #endedAt: number | undefined;

  constructor(declared: readonly { readonly title: string; readonly detail?: string }[]) {
    this.#phases = declared.map((phase, ordinal) => newPhase(`phase-${ordinal + 1}`, { ...phase, ordinal }));
  }

  /** The id of the active phase, or of the last one after the end; null before the first. */
  get current(): string | null {
    return this.#last;
  }

  get currentPhase(): { readonly id: string; readonly ordinal: number | null } | null {
    const phase = this.#phases.find(({ id }) => id === this.#last);
    return phase ? { id: phase.id, ordinal: phase.ordinal } : null;
  }

  enter(title: string, { at, attempt }: { at: number; attempt: number }): void {
    this.#close(at);
    this.#endedAt = undefined;
    const phase = this.#phases.find((known) => known.title === title) ?? this.#add(title);
    phase.entryCount++;
    phase.lastEnteredRunAttempt = attempt;
    phase.startedAt ??= at;
    delete phase.completedAt;
    this.#current = { phase, since: at };
    this.#last = phase.id;
  }

  /** Ends the active phase because the run has ended. */
  leave(at: number): void {
    this.#close(at);
    this.#endedAt = at;
  }

  views(now: number): PhaseView[] {
    const reached = this.#phases.findLastIndex(({ entryCount }) => entryCount > 0);
    return this.#phases.map((phase, index) => {
      const isActive = this.#current?.phase === phase;
      const isSkipped = phase.entryCount === 0 && (index < reached || this.#endedAt !== undefined);
      const skippedAt = isSkipped ? (this.#endedAt ?? this.#phases[reached]?.startedAt ?? now) : undefined;
      return {
        ...phase,
        status: isActive ? "active" : phase.entryCount > 0 ? "completed" : isSkipped ? "skipped" : "pending",
        ...defined({ startedAt: skippedAt, completedAt: skippedAt }),
        currentActiveMs: isActive ? Math.max(0, now - (this.#current?.since ?? now)) : 0,
      };
    });
  }

  #add(title: string): Phase {
    const added = this.#phases.filter(({ ordinal }) => ordinal === null).length;
    const phase = newPhase(`phase-x${added + 1}`, { title, ordinal: null });
    this.#phases.push(phase);
    return phase;
  }

  #close(at: number): void {
    if (!this.#current) return;
    const { phase, since } = this.#current;
    phase.accumulatedActiveMs += Math.max(0, at - since);
    phase.completedAt = at;
    this.#current = undefined;
  }
}

function newPhase(id: string, what: { title: string; detail?: string; ordinal: number | null }): Phase {
  return { id, ...what, entryCount: 0, lastEnteredRunAttempt: 0, accumulatedActiveMs: 0 };
}
