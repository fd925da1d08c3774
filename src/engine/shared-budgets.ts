/**
 * Budgets of tenants that all workers share. Calls of this process that wait for the same budget share one statement. What
 * running calls hold counts as spent when the worker's lease expires; a worker that comes back corrects it. Invariant: a tenant spends at
 * most its limit and one reserved call.
 */

import { type BlockOptions, BlockQueue, type BlockWaiter, FREE_MS } from "./block-queue.ts";

export interface BudgetAmount {
  readonly tokens: number;
  /** Null if the price is unknown. */
  readonly costUsd: number | null;
}

export interface HeldAmount {
  settle(used: BudgetAmount): void;
}

export interface BudgetState {
  readonly costUsd: number | null;
  readonly tokens: number | null;
  readonly spentUsd: number;
  readonly spentTokens: number;
  readonly period: string;
}

/** Thrown when nothing is left of a budget, or when a price is unknown and the cost is limited. */
export class BudgetSpent extends Error {
  readonly limit: "cost" | "tokens" | "price";

  constructor(tenant: string, limit: "cost" | "tokens" | "price", state: BudgetState) {
    super(describe(tenant, limit, state));
    this.limit = limit;
  }
}

function describe(tenant: string, limit: BudgetSpent["limit"], state: BudgetState): string {
  const per = state.period === "total" ? "" : ` for this ${state.period}`;
  if (limit === "price") {
    return `The price of this model is not known, so the budget of tenant ${tenant} ($${state.costUsd}${per}) cannot be enforced.`;
  }
  const used =
    limit === "cost"
      ? `$${state.spentUsd.toFixed(4)} of $${(state.costUsd ?? 0).toFixed(4)}`
      : `${state.spentTokens} of ${state.tokens} tokens`;
  return `The budget of tenant ${tenant}${per} is used up: ${used}.`;
}

interface Drawn {
  readonly granted: number;
  readonly verdict: "granted" | "wait" | "cost" | "tokens" | "price";
  readonly cost_usd: string | null;
  readonly tokens: string | null;
  readonly spent_usd: string;
  readonly spent_tokens: string;
  readonly period: string;
}

type Waiter = BlockWaiter<BudgetAmount, HeldAmount>;

const PAUSE_MS = 250;

export class SharedBudgets {
  readonly #options: BlockOptions;
  readonly #accounts = new Map<string, Account>();

  constructor(options: BlockOptions) {
    this.#options = options;
  }

  /** Resolves when the call may be sent. Rejects with `BudgetSpent` or the abort reason. */
  reserve(tenant: string, wanted: BudgetAmount, signal: AbortSignal): Promise<HeldAmount> {
    const account = this.#accounts.get(tenant) ?? new Account(tenant, this.#options);
    this.#accounts.set(tenant, account);
    return account.reserve(wanted, signal);
  }

  /** Resolves when everything that was settled is stored. */
  async flush(): Promise<void> {
    await Promise.all([...this.#accounts.values()].map((account) => account.flush()));
  }
}

/** The share of this process in one tenant's budget. */
class Account {
  readonly #tenant: string;
  readonly #options: BlockOptions;
  readonly #queue = new BlockQueue<BudgetAmount, HeldAmount>((waiting) => this.#step(waiting));
  readonly #settled = { usd: 0, tokens: 0 };
  readonly #held = { usd: 0, tokens: 0 };
  /** Until then the tenant is known to have no limit. */
  #freeUntil = 0;

  constructor(tenant: string, options: BlockOptions) {
    this.#tenant = tenant;
    this.#options = options;
  }

  async reserve(wanted: BudgetAmount, signal: AbortSignal): Promise<HeldAmount> {
    signal.throwIfAborted();
    return this.#isFree ? this.#hold(wanted) : this.#queue.enter(wanted, signal);
  }

  flush(): Promise<void> {
    return this.#queue.flush();
  }

  get #isFree(): boolean {
    return performance.now() < this.#freeUntil;
  }

  async #step(asked: readonly Waiter[]): Promise<number> {
    const sentAt = performance.now();
    const drawn = await this.#draw(asked);
    if (drawn.cost_usd === null && drawn.tokens === null && drawn.verdict === "granted")
      this.#freeUntil = sentAt + FREE_MS;
    this.#decide(asked, drawn);
    return drawn.verdict === "wait" ? PAUSE_MS : 0;
  }

  async #draw(asked: readonly Waiter[]): Promise<Drawn> {
    const { queries, workerId, leaseMs } = this.#options;
    const { rows } = await queries.query<Drawn>(
      "select * from troupe.draw_budget($1, $2, $3, $4, $5, $6, $7, $8, $9)",
      [
        this.#tenant,
        workerId,
        amount(this.#settled.usd),
        this.#settled.tokens,
        amount(this.#held.usd),
        this.#held.tokens,
        asked.map(({ wanted }) => (wanted.costUsd === null ? null : amount(wanted.costUsd))),
        asked.map(({ wanted }) => wanted.tokens),
        leaseMs,
      ],
    );
    const [drawn] = rows;
    if (!drawn) throw new Error("The budget has no row.");
    return drawn;
  }

  #decide(asked: readonly Waiter[], drawn: Drawn): void {
    const { granted, verdict } = drawn;
    for (const [index, waiter] of asked.entries()) {
      if (!this.#queue.waiting.includes(waiter)) {
        // Aborted while the statement ran: the next one returns its share.
        if (index < granted) this.#queue.report();
      } else if (index < granted) waiter.admit(this.#hold(waiter.wanted));
      else if (verdict === "cost" || verdict === "tokens" || (verdict === "price" && index === granted)) {
        waiter.reject(new BudgetSpent(this.#tenant, verdict, stateOf(drawn)));
      }
    }
  }

  #hold({ costUsd, tokens }: BudgetAmount): HeldAmount {
    this.#held.usd += costUsd ?? 0;
    this.#held.tokens += tokens;
    let isSettled = false;
    return {
      settle: (used) => {
        if (isSettled) return;
        isSettled = true;
        this.#held.usd -= costUsd ?? 0;
        this.#held.tokens -= tokens;
        this.#settled.usd += used.costUsd ?? 0;
        this.#settled.tokens += used.tokens;
        if (this.#isFree) this.#queue.reportSoon();
        else this.#queue.report();
      },
    };
  }
}

/** Twelve digits: sums of floating-point numbers do not become longer and longer. */
const amount = (usd: number): string => Math.max(0, usd).toFixed(12);

const stateOf = (drawn: Drawn): BudgetState => ({
  costUsd: drawn.cost_usd === null ? null : Number(drawn.cost_usd),
  tokens: drawn.tokens === null ? null : Number(drawn.tokens),
  spentUsd: Number(drawn.spent_usd),
  spentTokens: Number(drawn.spent_tokens),
  period: drawn.period,
});
