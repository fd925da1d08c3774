/** Reads what telemetry exports about a cluster, in one statement. All workers read the same values. */

import type { Queries } from "../../lib/queries.ts";
import { type GaugeName, gauges, type Reading } from "../../telemetry/gauges.ts";
import { ACTIVATION_SEPARATOR } from "./run-work.ts";

interface Row {
  readonly gauge: GaugeName;
  readonly attributes: Readonly<Record<string, string>>;
  readonly value: number;
}

export async function readMeasures(queries: Queries): Promise<readonly Reading[]> {
  const { rows } = await queries.query<Row>(MEASURES);
  return rows.filter(({ gauge }) => gauge in gauges);
}

/** Points of each gauge. Large clusters have more tenants: those with the largest values are exported. */
const MAX_POINTS = 500;

/** A work that was dispatched but has not begun still waits. Indexes on open work and on take-overs keep this cheap. */
const MEASURES = `
with place as (
  select split_part(work_id, '${ACTIVATION_SEPARATOR}', 1) as id, bool_or(dispatched_at is not null) as taken,
         min(enqueued_at) as since
  from troupe.queue group by 1
), work as materialized (
  select w.tenant, w.session_id, p.since,
         case when w.set_aside is not null then 'set_aside' when w.waiting_at is not null then 'waiting'
              when p.taken and w.worker is not null then 'running' when p.id is not null then 'queued' end as state
  from troupe.work w left join place p on p.id = w.id where w.outcome is null or w.set_aside is not null
), worker as materialized (
  select pool, case when expires_at < clock_timestamp() then 'lost' when draining or drain_asked then 'draining'
                    else 'alive' end as state from troupe.worker
), budget as materialized (
  select tenant, cost_usd, tokens, is_current::int * spent_usd as spent_usd, is_current::int * spent_tokens as spent_tokens
  from (select *, period = 'total' or date_trunc(period, clock_timestamp() at time zone 'utc') <= since at time zone 'utc'
               as is_current from troupe.budget) b
), measure(gauge, attributes, value) as (
  select 'workers', jsonb_build_object('troupe.cluster.pool', pool, 'troupe.worker.state', state), count(*)::float
    from worker group by pool, state
  union all
  select 'leases', jsonb_build_object('troupe.cluster.pool', pool), count(*) filter (where state <> 'lost')
    from worker group by pool
  union all
  select 'sessions', jsonb_build_object('troupe.cluster.tenant', tenant, 'troupe.session.state', state), count(distinct session_id)
    from work where state <> 'set_aside' group by tenant, state
  union all
  select 'oldestWait', jsonb_build_object('troupe.cluster.tenant', tenant), extract(epoch from clock_timestamp() - min(since))
    from work where state = 'queued' group by tenant
  union all
  select 'setAside', jsonb_build_object('troupe.cluster.tenant', tenant), count(*) from work where state = 'set_aside' group by tenant
  union all
  select 'takeOvers', jsonb_build_object('troupe.cluster.tenant', tenant), sum(takeovers)
    from troupe.session where takeovers > 0 group by tenant
  union all
  select 'budgetCost', jsonb_build_object('troupe.cluster.tenant', tenant), spent_usd from budget
  union all
  select 'budgetTokens', jsonb_build_object('troupe.cluster.tenant', tenant), spent_tokens from budget
  union all
  select 'budgetUse', jsonb_build_object('troupe.cluster.tenant', tenant, 'troupe.cluster.limit', 'cost'), spent_usd / nullif(cost_usd, 0)
    from budget where cost_usd > 0
  union all
  select 'budgetUse', jsonb_build_object('troupe.cluster.tenant', tenant, 'troupe.cluster.limit', 'tokens'), spent_tokens::float / tokens
    from budget where tokens > 0
  union all
  select 'gateShut', jsonb_build_object('troupe.cluster.limit', name), (coalesce(gate_until > clock_timestamp(), false))::int
    from troupe.rate_limit
)
select gauge, attributes, value from (
  select *, row_number() over (partition by gauge order by value desc) as place from measure) m
where place <= ${MAX_POINTS} and value is not null`;
