/** This folder counts a session's usage, enforces its limits on turns, tokens and cost, and reports usage. */
import type { LimitReached } from "../../loop/run.ts";
import { addUsage, noUsage, type Usage } from "../../model/provider.ts";
import type { EventData, SessionEvent } from "../../protocol/event.ts";
import { type BudgetAccount, type Expected, Reservations, ROUNDING_USD, roundedUsd } from "./reservations.ts";

/** The user's limits for one run of the program. */
export interface Limits {
  readonly turns?: number;
  readonly tokens?: number;
  readonly costUsd?: number;
}

export interface ModelTotals {
  readonly calls: number;
  readonly usage: Usage;
  readonly durationMs: number;
  /** Null if the price of any call is unknown. */
  readonly costUsd: number | null;
}

/** Totals the usage of model calls: for the whole session, from its log, and since this process opened it. */
export class Budget {
  readonly #perModel = new Map<string, ModelTotals>();
  /** Amounts reserved by running model calls of all agents. */
  readonly reservations = new Reservations();
  /** Agents with low priority → callback that stops them when the budget is insufficient. */
  readonly #yielding = new Map<string, () => void>();
  #session: ModelTotals = nothing;
  #run: ModelTotals = nothing;

  constructor(earlier: readonly SessionEvent[]) {
    for (const event of earlier) this.fold(event);
    this.#run = nothing;
  }

  fold(event: SessionEvent): void {
    if (event.type === "troupe.usage") this.apply(event.data);
    if (event.type === "troupe.task_returned") this.#total({ ...event.data.usage, durationMs: 0 });
  }

  apply(data: EventData<"troupe.usage">): void {
    this.#total(data);
    this.#perModel.set(data.model, add(this.#perModel.get(data.model) ?? nothing, data));
  }

  #total(call: Call): void {
    this.#session = add(this.#session, call);
    this.#run = add(this.#run, call);
  }

  get session(): ModelTotals {
    return this.#session;
  }

  /** Totals since this process opened the session. */
  get run(): ModelTotals {
    return this.#run;
  }

  get perModel(): ReadonlyMap<string, ModelTotals> {
    return this.#perModel;
  }

  /**
   * Called before a model call of `who` (undefined: the main agent). Reserves its expected usage from the session's
   * limits and from all `shares` until it is settled. If it does not fit, returns the limit and reserves nothing.
   */
  reserve(
    who: string | undefined,
    from: { readonly limits: Limits; readonly shares?: readonly BudgetAccount[] },
    expected: Expected,
  ): LimitReached | undefined {
    const { limits, shares = [] } = from;
    const { calls: turns, usage, costUsd } = this.#run;
    const spent = { turns, tokens: usage.inputTokens + usage.outputTokens, costUsd };
    const take = () => this.reservations.take(who, [...shares, { limits, spent }], expected);
    const refused = this.reached(limits) ?? take();
    const isFirst = who === undefined || !this.#yielding.has(who);
    if (refused === undefined || this.#yielding.size === 0 || !isFirst) return refused;
    for (const [id, giveUp] of [...this.#yielding]) {
      this.release(id);
      giveUp();
    }
    return this.reached(limits) ?? take();
  }

  /**
   * Reserves a part of all budgets that apply to `who`, for work elsewhere, until it is settled. `known` was reserved by
   * an earlier process. If nothing is left, returns the limit and reserves nothing.
   */
  allot(
    who: string,
    { limits, shares = [] }: { readonly limits: Limits; readonly shares?: readonly BudgetAccount[] },
    known?: Limits,
  ): Limits | LimitReached {
    const { calls: turns, usage, costUsd } = this.#run;
    const spent = { turns, tokens: usage.inputTokens + usage.outputTokens, costUsd };
    return this.reservations.allot(who, [...shares, { limits, spent }], known);
  }

  /**
   * Gives `who` low priority: `giveUp` is called if the budget is insufficient for other agents. Returns a function
   * that undoes this.
   */
  standsBack(who: string, giveUp: () => void): () => void {
    this.#yielding.set(who, giveUp);
    return () => void this.#yielding.delete(who);
  }

  /** Releases a reservation: the call has been counted or was never made. */
  release(who: string | undefined): void {
    this.reservations.release(who);
  }

  /** Returns the limit that rules out another model call, or undefined. */
  reached(limits: Limits): LimitReached | undefined {
    const { calls, usage, costUsd } = this.#run;
    if (limits.turns !== undefined && calls >= limits.turns) {
      return limitReached({ limit: "turns", allowed: limits.turns, used: calls, flag: "--max-turns" });
    }
    const tokens = usage.inputTokens + usage.outputTokens;
    if (limits.tokens !== undefined && tokens >= limits.tokens) {
      return limitReached({ limit: "tokens", allowed: limits.tokens, used: tokens, flag: "--max-tokens" });
    }
    if (limits.costUsd === undefined) return undefined;
    if (costUsd === null) return costUnknown(limits.costUsd);
    if (costUsd < limits.costUsd - ROUNDING_USD) return undefined;
    return limitReached({ limit: "cost", allowed: limits.costUsd, used: costUsd, flag: "--max-cost" });
  }
}

const nothing: ModelTotals = { calls: 0, usage: noUsage, durationMs: 0, costUsd: 0 };

type Call = Usage & Pick<EventData<"troupe.usage">, "calls" | "durationMs" | "costUsd">;

function add(totals: ModelTotals, call: Call): ModelTotals {
  return {
    calls: totals.calls + (call.calls ?? 1),
    usage: addUsage(totals.usage, call),
    durationMs: totals.durationMs + call.durationMs,
    costUsd: totals.costUsd === null || call.costUsd === null ? null : roundedUsd(totals.costUsd + call.costUsd),
  };
}

/** Without a price, a cost limit cannot be enforced. */
function costUnknown(allowed: number): LimitReached {
  const message = "Stopped: the price of a call is not known, so the cost limit (--max-cost) could not be kept.";
  return { limit: "cost", allowed, used: 0, message, isPriceUnknown: true };
}

function limitReached(reached: Omit<LimitReached, "message"> & { flag: string }): LimitReached {
  const { flag, ...rest } = reached;
  const amount = (value: number): string => (rest.limit === "cost" ? `$${value.toFixed(4)}` : String(value));
  const unit = rest.limit === "cost" ? "" : ` ${rest.limit}`;
  const message = `Limit reached: ${amount(rest.used)} of ${amount(rest.allowed)}${unit} used (${flag}). The work so far is kept.`;
  return { ...rest, message };
}
