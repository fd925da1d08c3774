/**
 * An attack of the release gate (spec: adversarial test plan). It tries what an attacker would, and reports what it got.
 * With the guards on it must get nothing; with them off it must get something, or it proves nothing.
 */
import type { Stage } from "./stage.ts";

export interface Attack {
  readonly id: string;
  readonly title: string;
  /** Which program the control run needs: the real one with its guards switched off, or one built without them. */
  readonly control?: "weakened program";
  run(stage: Stage): Promise<Findings>;
}

/** A case of the gate whose subject does not exist yet. */
export interface Pending {
  readonly id: string;
  readonly title: string;
  readonly reason: string;
}

/**
 * "effect": something happened that must not. "word": it did not, but the decision was not told as it must be. "failure":
 * the attack itself failed, so nothing is known.
 */
export interface Breach {
  readonly kind: "effect" | "word" | "failure";
  readonly what: string;
}

export class Findings {
  readonly breaches: Breach[] = [];

  /** Something that must not happen. */
  effect(happened: boolean, what: string): void {
    if (happened) this.breaches.push({ kind: "effect", what });
  }

  /** Something that must be said, recorded or still work. */
  expect(holds: boolean, what: string): void {
    if (!holds) this.breaches.push({ kind: "word", what: `missing: ${what}` });
  }

  /** The attack could not be played to its end. */
  failure(cause: unknown): void {
    const what = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause);
    this.breaches.push({ kind: "failure", what: `the attack itself failed: ${what}` });
  }

  get effects(): number {
    return this.breaches.filter(({ kind }) => kind === "effect").length;
  }
}
