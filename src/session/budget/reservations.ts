/**
 * What model calls under way may still use. Agents work side by side, so a limit that is only compared with what was
 * used is broken by as many calls as run at once. Before each call its share is set aside from every budget around the
 * agent; when it has ended, what it really used is counted instead. At every moment used + set aside ≤ allowed; only a
 * call that uses more than was expected of it goes beyond, and that is counted too.
 */
import type { LimitReached } from "../../loop/run.ts";
import type { Limits } from "./budget.ts";

export interface Amount {
  readonly turns: number;
  readonly tokens: number;
  /** Null when a price is not known. */
  readonly costUsd: number | null;
}

/** A budget: the session's, or that of an agent and everything below it. */
export interface Purse {
  /** The agent; nobody = the session. */
  readonly owner?: string;
  /** How people know the owner, where it is no agent. */
  readonly label?: string;
  readonly limits: Limits;
  readonly spent: Amount;
}

/** What a call may use, worked out only where somebody counts it. */
export interface Expected {
  tokens(): number;
  costUsd(): number | null;
}

/** By whom, or in whose budget; nobody = the main agent, or the session. */
type Who = string | undefined;

export class Reservations {
  /** Each has at most one call under way. */
  readonly #held = new Map<Who, ReadonlyMap<Who, Amount>>();

  /** Sets aside in all of them, or in none. */
  take(who: Who, purses: readonly Purse[], expected: Expected): LimitReached | undefined {
    this.settle(who);
    const held = new Map<Who, Amount>();
    for (const purse of purses) {
      const others = this.reserved(purse.owner);
      const share = { turns: 0, tokens: 0, costUsd: 0 };
      for (const kind of kinds) {
        const most = purse.limits[kind];
        if (most === undefined) continue;
        const wanted = kind === "turns" ? 1 : expected[kind]();
        const used = purse.spent[kind];
        if (wanted === null || used === null) return priceUnknown(purse, most);
        const left = most - used - (others[kind] ?? 0);
        // With nobody else at work a call needs no more than that something is left.
        const isAlone = others[kind] === 0;
        if (left <= slack(kind) || (!isAlone && wanted > left + slack(kind))) {
          return tooMuch({ purse, kind, most, used, others: others[kind] ?? 0, wanted });
        }
        share[kind] = Math.min(wanted, left);
      }
      held.set(purse.owner, share);
    }
    this.#held.set(who, held);
    return undefined;
  }

  settle(who: Who): void {
    this.#held.delete(who);
  }

  /** What `who` has set aside in this budget. */
  held(who: Who, owner: Who): Amount | undefined {
    return this.#held.get(who)?.get(owner);
  }

  /** What all have set aside in this budget. */
  reserved(owner: Who): Amount {
    return [...this.#held.values()].reduce((sum, held) => addAmounts(sum, held.get(owner) ?? nothing), nothing);
  }
}

const kinds = ["turns", "tokens", "costUsd"] as const;
type Kind = (typeof kinds)[number];

/** Sums of dollars drift by less than this; eight times ten cents reach eighty. */
export const ROUNDING_USD = 1e-9;
const slack = (kind: Kind): number => (kind === "costUsd" ? ROUNDING_USD : 0);

export const nothing: Amount = { turns: 0, tokens: 0, costUsd: 0 };

export function addAmounts(a: Amount, b: Amount): Amount {
  return {
    turns: a.turns + b.turns,
    tokens: a.tokens + b.tokens,
    costUsd: a.costUsd === null || b.costUsd === null ? null : roundedUsd(a.costUsd + b.costUsd),
  };
}

/** Sums stay what a person would get with a pencil, whatever the order of adding. */
export const roundedUsd = (costUsd: number): number => Math.round(costUsd * 1e12) / 1e12;

interface Shortage {
  readonly purse: Purse;
  readonly kind: Kind;
  readonly most: number;
  readonly used: number;
  readonly others: number;
  readonly wanted: number;
}

function tooMuch({ purse, kind, most, used, others, wanted }: Shortage): LimitReached {
  const { owner, label = `Agent ${owner}` } = purse;
  const amount = (value: number): string => (kind === "costUsd" ? `$${value.toFixed(4)}` : `${value} ${kind}`);
  const rest = others === 0 ? "" : `, ${amount(others)} set aside by calls under way, ${amount(wanted)} wanted`;
  const facts = `${amount(used)} of ${amount(most)} used${rest}`;
  const message =
    owner === undefined
      ? `Limit reached: ${facts} (${flags[kind]}). The work so far is kept.`
      : `${label} has used its share: ${facts}.`;
  return { limit: kind === "costUsd" ? "cost" : kind, allowed: most, used: used + others, message };
}

const flags: Record<Kind, string> = { turns: "--max-turns", tokens: "--max-tokens", costUsd: "--max-cost" };

/** What cannot be counted cannot be kept below a limit. */
function priceUnknown({ owner }: Purse, allowed: number): LimitReached {
  const whose = owner === undefined ? "(--max-cost)" : `of agent ${owner}`;
  const message = `Stopped: the price of a call is not known, so the cost limit ${whose} could not be kept.`;
  return { limit: "cost", allowed, used: 0, message };
}
