/**
 * Budgets of tenants that all workers share. Calls of this process that wait for the same budget share one statement. What
 * running calls hold counts as spent when the worker's lease expires; a worker that comes back corrects it. Invariant: a tenant spends at
 * most its limit and one reserved call.
 */

import type { Queries } from "../lib/queries.ts";

export interface SharedBudgetsOptions {
  readonly queries: Queries;
  readonly workerId: string;
  readonly leaseMs: number;
}

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
    return `The price of this model is not known, so the budget of tenant ${tenant} ($${state.costUsd}${per}) cannot be kept.`;
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

interface Waiter {
  readonly wanted: BudgetAmount;
  admit(): void;
  reject(error: unknown): void;
}

const PAUSE_MS = 250;

export class SharedBudgets {
  readonly #options: SharedBudgetsOptions;
  readonly #accounts = new Map<string, Account>();

  constructor(options: SharedBudgetsOptions) {
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

/** The share of this process in one tenant's budget. One statement at a time; amounts are absolute. */
class Account {
  readonly #tenant: string;
  readonly #options: SharedBudgetsOptions;
  readonly #waiting: Waiter[] = [];
  readonly #settled = { usd: 0, tokens: 0 };
  readonly #held = { usd: 0, tokens: 0 };
  #isDirty = false;
  #running: Promise<void> | undefined;

  constructor(tenant: string, options: SharedBudgetsOptions) {
    this.#tenant = tenant;
    this.#options = options;
  }

  reserve(wanted: BudgetAmount, signal: AbortSignal): Promise<HeldAmount> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const abort = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
        reject(signal.reason);
      };
      const waiter: Waiter = {
        wanted,
        admit: () => {
          signal.removeEventListener("abort", abort);
          resolve(this.#hold(wanted));
        },
        reject: (error) => {
          signal.removeEventListener("abort", abort);
          reject(error);
        },
      };
      signal.addEventListener("abort", abort, { once: true });
      this.#waiting.push(waiter);
      this.#pump();
    });
  }

  async flush(): Promise<void> {
    while (this.#running) await this.#running;
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
        this.#isDirty = true;
        this.#pump();
      },
    };
  }

  #pump(): void {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
      if (this.#waiting.length > 0 || this.#isDirty) this.#pump();
    });
  }

  async #run(): Promise<void> {
    // Calls that arrive in the same tick share a statement.
    await Promise.resolve();
    while (this.#waiting.length > 0 || this.#isDirty) {
      const asked = [...this.#waiting];
      this.#isDirty = false;
      const drawn = await this.#draw(asked).catch(() => undefined);
      if (!drawn) {
        this.#isDirty = true;
        await pause();
        continue;
      }
      if (this.#decide(asked, drawn) === "wait") await pause();
    }
  }

  async #draw(asked: readonly Waiter[]): Promise<Drawn | undefined> {
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
    return rows[0];
  }

  #decide(asked: readonly Waiter[], drawn: Drawn): Drawn["verdict"] {
    const { granted, verdict } = drawn;
    for (const [index, waiter] of asked.entries()) {
      const place = this.#waiting.indexOf(waiter);
      if (place === -1) {
        // Aborted while the statement ran: the next one returns its share.
        if (index < granted) this.#isDirty = true;
        continue;
      }
      if (index < granted) {
        this.#waiting.splice(place, 1);
        waiter.admit();
      } else if (verdict === "cost" || verdict === "tokens" || (verdict === "price" && index === granted)) {
        this.#waiting.splice(place, 1);
        waiter.reject(new BudgetSpent(this.#tenant, verdict, stateOf(drawn)));
      }
    }
    return verdict;
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

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
