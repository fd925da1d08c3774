/**
 * Reservations of running model calls.
 *
 * Agents run concurrently. Comparing a limit only with past usage would let all running calls exceed it together. Each
 * call therefore reserves its expected usage from every budget that applies to its agent. When it ends, its actual
 * usage is counted instead.
 * At all times, used + reserved ≤ allowed. Only a call that uses more than expected can exceed a limit, and that is
 * counted too.
 */
import type { LimitReached } from "../../loop/run.ts";
import type { Limits } from "./budget.ts";

export interface Amount {
  readonly turns: number;
  readonly tokens: number;
  /** Null if a price is unknown. */
  readonly costUsd: number | null;
}

/** A budget: the session's, or that of an agent and its descendants. */
export interface BudgetAccount {
  /** The agent; absent for the session. */
  readonly owner?: string;
  /** The owner's name in messages, if it is not an agent. */
  readonly label?: string;
  readonly limits: Limits;
  readonly spent: Amount;
}

/** The expected usage of a call. Functions, because it is computed only if a limit needs it. */
export interface Expected {
  tokens(): number;
  costUsd(): number | null;
}

/** An agent or the owner of a budget; undefined: the main agent, or the session. */
type AgentId = string | undefined;

export class Reservations {
  /** Each agent has at most one call at a time. */
  readonly #held = new Map<AgentId, ReadonlyMap<AgentId, Amount>>();

  /** Reserves in all budgets, or returns the limit and reserves in none. */
  take(who: AgentId, accounts: readonly BudgetAccount[], expected: Expected): LimitReached | undefined {
    this.release(who);
    const held = new Map<AgentId, Amount>();
    for (const account of accounts) {
      const others = this.reserved(account.owner);
      const share = { turns: 0, tokens: 0, costUsd: 0 };
      for (const kind of kinds) {
        const most = account.limits[kind];
        if (most === undefined) continue;
        const wanted = kind === "turns" ? 1 : expected[kind]();
        const used = account.spent[kind];
        if (wanted === null || used === null) return priceUnknown(account, most);
        const left = most - used - (others[kind] ?? 0);
        // If no other call is running, it is enough that anything is left.
        const isAlone = others[kind] === 0;
        if (left <= slack(kind) || (!isAlone && wanted > left + slack(kind))) {
          return tooMuch({ account, kind, most, used, others: others[kind] ?? 0, wanted });
        }
        share[kind] = Math.min(wanted, left);
      }
      held.set(account.owner, share);
    }
    this.#held.set(who, held);
    return undefined;
  }

  /**
   * Reserves in all budgets what `who` may use without asking again: all that is left of its own budget, and a half of
   * what is left of others. `known` is reserved unchanged.
   */
  allot(who: string, accounts: readonly BudgetAccount[], known?: Limits): Limits | LimitReached {
    this.release(who);
    const granted: { -readonly [K in Kind]?: number } = {};
    for (const account of known ? [] : accounts) {
      const others = this.reserved(account.owner);
      for (const kind of kinds) {
        const most = account.limits[kind];
        if (most === undefined) continue;
        const used = account.spent[kind];
        if (used === null) return priceUnknown(account, most);
        const left = most - used - (others[kind] ?? 0);
        if (left <= slack(kind)) return tooMuch({ account, kind, most, used, others: others[kind] ?? 0, wanted: 1 });
        const share = account.owner === who ? left : left / 2;
        const part = kind === "costUsd" ? share : Math.ceil(share);
        granted[kind] = Math.min(granted[kind] ?? part, part);
      }
    }
    const held = { ...nothing, ...(known ?? granted) };
    this.#held.set(who, new Map(accounts.map(({ owner }) => [owner, held])));
    return known ?? granted;
  }

  release(who: AgentId): void {
    this.#held.delete(who);
  }

  /** Returns the amount that `who` has reserved in this budget. */
  held(who: AgentId, owner: AgentId): Amount | undefined {
    return this.#held.get(who)?.get(owner);
  }

  /** Returns the total amount reserved in this budget. */
  reserved(owner: AgentId): Amount {
    return [...this.#held.values()].reduce((sum, held) => addAmounts(sum, held.get(owner) ?? nothing), nothing);
  }
}

const kinds = ["turns", "tokens", "costUsd"] as const;
type Kind = (typeof kinds)[number];

/** Tolerance for rounding errors in sums of dollars. */
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

/** Rounds away floating-point errors, so that sums do not depend on the order of addition. */
export const roundedUsd = (costUsd: number): number => Math.round(costUsd * 1e12) / 1e12;

interface Shortage {
  readonly account: BudgetAccount;
  readonly kind: Kind;
  readonly most: number;
  readonly used: number;
  readonly others: number;
  readonly wanted: number;
}

function tooMuch({ account, kind, most, used, others, wanted }: Shortage): LimitReached {
  const { owner, label = `Agent ${owner}` } = account;
  const amount = (value: number): string => (kind === "costUsd" ? `$${value.toFixed(4)}` : `${value} ${kind}`);
  const rest = others === 0 ? "" : `, ${amount(others)} reserved by running calls, ${amount(wanted)} requested`;
  const facts = `${amount(used)} of ${amount(most)} used${rest}`;
  const message =
    owner === undefined
      ? `Limit reached: ${facts} (${flags[kind]}). The work so far is kept.`
      : `${label} has used its share: ${facts}.`;
  return { limit: kind === "costUsd" ? "cost" : kind, allowed: most, used: used + others, message };
}

const flags: Record<Kind, string> = { turns: "--max-turns", tokens: "--max-tokens", costUsd: "--max-cost" };

/** Without a price, a cost limit cannot be enforced. */
function priceUnknown({ owner }: BudgetAccount, allowed: number): LimitReached {
  const whose = owner === undefined ? "(--max-cost)" : `of agent ${owner}`;
  const message = `Stopped: the price of a call is not known, so the cost limit ${whose} could not be kept.`;
  return { limit: "cost", allowed, used: 0, message, isPriceUnknown: true };
}
