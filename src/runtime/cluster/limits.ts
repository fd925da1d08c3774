/** Sets and lists the limits that all workers share: rates of models, and budgets of tenants. */

import type { Queries } from "../../lib/queries.ts";
import { readable } from "./readable.ts";

export interface RateRow {
  /** `provider/model`, or `provider` for its models without a limit of their own. */
  readonly name: string;
  readonly requestsPerMinute: number | null;
  readonly concurrency: number | null;
  /** Requests that run now, in all workers. */
  readonly running: number;
  /** Requests that wait, in all workers. */
  readonly waiting: number;
  /** Milliseconds until the next probe after a rate limit of the provider; null while it accepts requests. */
  readonly gateMs: number | null;
}

export interface BudgetRow {
  readonly tenant: string;
  readonly costUsd: number | null;
  readonly tokens: number | null;
  readonly period: BudgetPeriod;
  readonly spentUsd: number;
  readonly spentTokens: number;
  /** Reserved by calls that run now; null where the database role may not read it. */
  readonly heldUsd: number | null;
  readonly heldTokens: number | null;
}

export const budgetPeriods = ["total", "day", "month"] as const;
export type BudgetPeriod = (typeof budgetPeriods)[number];

/** Sets both values; `null` removes one. Workers apply it to requests that begin half a second later. */
export async function setRate(
  queries: Queries,
  name: string,
  {
    requestsPerMinute,
    concurrency,
  }: { readonly requestsPerMinute: number | null; readonly concurrency: number | null },
): Promise<void> {
  await queries.query(
    `insert into troupe.rate_limit(name, requests, window_ms, concurrency) values($1, $2, 60000, $3)
     on conflict (name) do update set requests = $2, window_ms = 60000, concurrency = $3`,
    [name, requestsPerMinute, concurrency],
  );
}

export async function listRates(queries: Queries): Promise<readonly RateRow[]> {
  const { rows } = await queries.query<RateRow>(
    `select l.name, (l.requests * 60000.0 / l.window_ms)::float as "requestsPerMinute", l.concurrency,
            coalesce(sum(b.held), 0)::int as running, coalesce(sum(b.wanted), 0)::int as waiting,
            (greatest(0, extract(epoch from l.gate_until - clock_timestamp())) * 1000)::float as "gateMs"
     from troupe.rate_limit l
     left join (select b.* from troupe.rate_block b join troupe.worker w on w.id = b.worker and w.expires_at > clock_timestamp()) b
       on b.name = l.name
     group by l.name order by l.name`,
  );
  return rows;
}

/** Sets the limits of a tenant; `null` means none. What it has spent stays. */
export async function setBudget(
  queries: Queries,
  tenant: string,
  budget: { readonly costUsd: number | null; readonly tokens: number | null; readonly period: BudgetPeriod },
): Promise<void> {
  await queries.query(
    `insert into troupe.budget(tenant, cost_usd, tokens, period) values($1, $2, $3, $4)
     on conflict (tenant) do update set cost_usd = $2, tokens = $3, period = $4`,
    [tenant, budget.costUsd, budget.tokens, budget.period],
  );
}

const BUDGET = `b.tenant, b.cost_usd::float as "costUsd", b.tokens::float as tokens, b.period,
  b.spent_usd::float as "spentUsd", b.spent_tokens::float as "spentTokens"`;

/** The role of a tenant sees its own budget only, without what is reserved. */
export async function listBudgets(queries: Queries): Promise<readonly BudgetRow[]> {
  const all = queries.query<BudgetRow>(
    `select ${BUDGET}, coalesce(sum(x.held_usd), 0)::float as "heldUsd", coalesce(sum(x.held_tokens), 0)::float as "heldTokens"
     from troupe.budget b
     left join (select x.* from troupe.budget_block x join troupe.worker w on w.id = x.worker and w.expires_at > clock_timestamp()) x
       on x.tenant = b.tenant
     group by b.tenant order by b.tenant`,
  );
  const found = await readable(all);
  if (found) return found.rows;
  const own = `select ${BUDGET}, null as "heldUsd", null as "heldTokens" from troupe.budget b order by b.tenant`;
  return (await queries.query<BudgetRow>(own)).rows;
}
