/**
 * Stops a model that makes no progress: it repeats failing calls, or every call of many turns fails. A successful call
 * or a message from outside resets the counters.
 */
import type { ToolCall } from "../protocol/message.ts";
import type { LimitReached } from "./run.ts";

/** Turns in which the same call failed: at the first limit the model is warned, at the second the run ends. */
const WARN_EQUAL = 5;
const MAX_EQUAL = 10;
/** Consecutive turns in which every call failed. */
const WARN_TURNS = 40;
const MAX_TURNS = 50;

export class RepeatedFailures {
  /** The number of turns in which each call failed, by name and arguments. */
  readonly #equal = new Map<string, { readonly name: string; turns: number }>();
  /**
   * Calls that failed in this turn. Equal calls in one turn count once, because the model has not seen the first
   * failure yet.
   */
  readonly #failedThisTurn = new Set<string>();
  #turns = 0;

  /** Counts a failed call. Returns a warning for the model if one is due. */
  failed(call: ToolCall): string | undefined {
    const key = `${call.name} ${JSON.stringify(call.arguments)}`;
    const known = this.#equal.get(key) ?? { name: call.name, turns: 0 };
    this.#equal.set(key, known);
    if (this.#failedThisTurn.size === 0) this.#turns++;
    if (!this.#failedThisTurn.has(key)) known.turns++;
    this.#failedThisTurn.add(key);
    if (known.turns >= WARN_EQUAL) {
      return `This call has failed ${known.turns} times. Do not repeat it: after ${MAX_EQUAL} failures the work is stopped.`;
    }
    if (this.#turns < WARN_TURNS) return undefined;
    return `Every call of the last ${this.#turns} turns has failed. Try something else: after ${MAX_TURNS} such turns the work is stopped.`;
  }

  reset(): void {
    this.#equal.clear();
    this.#failedThisTurn.clear();
    this.#turns = 0;
  }

  /** Called before each model call. Returns the reason to stop, or undefined. */
  nextTurn(): LimitReached | undefined {
    this.#failedThisTurn.clear();
    for (const { name, turns } of this.#equal.values()) {
      if (turns >= MAX_EQUAL) return stopped(`the same call of ${name} failed ${turns} times`, turns, MAX_EQUAL);
    }
    if (this.#turns < MAX_TURNS) return undefined;
    return stopped(`every call of the last ${this.#turns} turns failed`, this.#turns, MAX_TURNS);
  }
}

function stopped(why: string, used: number, allowed: number): LimitReached {
  return { limit: "failures", allowed, used, message: `Stopped: ${why}. The work so far is kept.` };
}
