/**
 * Draws from the budget of a tenant, in one round trip and under the lock of its row. The calls of a lost worker are
 * charged as they were reserved: the provider may have been paid, and nobody knows how much.
 */
export const budgets = `
  alter table troupe.budget_block add column lost_usd numeric not null default 0,
    add column lost_tokens bigint not null default 0;

  create or replace function troupe.draw_budget(
    p_tenant text, p_worker text, p_settled_usd numeric, p_settled_tokens bigint, p_held_usd numeric, p_held_tokens bigint,
    p_want_usd numeric[], p_want_tokens bigint[], p_lease_ms float)
  returns table(granted integer, verdict text, cost_usd numeric, tokens bigint, spent_usd numeric, spent_tokens bigint, period text)
  language plpgsql as $$
  #variable_conflict use_column
  declare
    b troupe.budget; at timestamptz; usd numeric; tok bigint; held_usd numeric; held_tokens bigint;
    given integer := 0; say text := 'granted'; is_alone boolean;
  begin
    insert into troupe.budget(tenant) values (p_tenant) on conflict do nothing;
    select x.* into b from troupe.budget x where x.tenant = p_tenant for update;
    at := clock_timestamp();
    if b.period <> 'total' and date_trunc(b.period, at at time zone 'utc') > (b.since at time zone 'utc') then
      b.spent_usd := 0; b.spent_tokens := 0; b.since := at;
    end if;
    insert into troupe.budget_block(tenant, worker) values (p_tenant, p_worker) on conflict do nothing;
    -- A worker that comes back reports what its calls really used, in place of what they were charged as lost.
    select greatest(b.spent_usd + p_settled_usd - x.settled_usd - x.lost_usd, 0),
           greatest(b.spent_tokens + p_settled_tokens - x.settled_tokens - x.lost_tokens, 0)
      into b.spent_usd, b.spent_tokens from troupe.budget_block x where x.tenant = p_tenant and x.worker = p_worker;
    with gone as (
      select x.worker, x.held_usd as usd, x.held_tokens as tokens from troupe.budget_block x
      where x.tenant = p_tenant and x.worker <> p_worker and (x.held_usd > 0 or x.held_tokens > 0)
        and not troupe.is_alive(x.worker, p_lease_ms)
    ), charged as (
      update troupe.budget_block x
      set held_usd = 0, held_tokens = 0, lost_usd = x.lost_usd + g.usd, lost_tokens = x.lost_tokens + g.tokens
      from gone g where x.tenant = p_tenant and x.worker = g.worker returning g.usd, g.tokens
    )
    select b.spent_usd + coalesce(sum(c.usd), 0), b.spent_tokens + coalesce(sum(c.tokens), 0)
      into b.spent_usd, b.spent_tokens from charged c;
    delete from troupe.budget_block x where x.tenant = p_tenant and x.seen_at < at - interval '7 days';
    select p_held_usd + coalesce(sum(x.held_usd), 0), p_held_tokens + coalesce(sum(x.held_tokens), 0)
      into held_usd, held_tokens from troupe.budget_block x where x.tenant = p_tenant and x.worker <> p_worker;
    if not troupe.is_alive(p_worker, p_lease_ms) then say := 'wait'; end if;
    while say = 'granted' and given < coalesce(array_length(p_want_usd, 1), 0) loop
      usd := p_want_usd[given + 1]; tok := p_want_tokens[given + 1];
      is_alone := held_usd = 0 and held_tokens = 0;
      if b.cost_usd is not null and usd is null then say := 'price';
      elsif b.spent_usd >= b.cost_usd then say := 'cost';
      elsif b.spent_tokens >= b.tokens then say := 'tokens';
      elsif not is_alone and (b.spent_usd + held_usd + usd > b.cost_usd or b.spent_tokens + held_tokens + tok > b.tokens)
        then say := 'wait';
      else
        given := given + 1;
        held_usd := held_usd + coalesce(usd, 0); held_tokens := held_tokens + tok;
        p_held_usd := p_held_usd + coalesce(usd, 0); p_held_tokens := p_held_tokens + tok;
      end if;
    end loop;
    update troupe.budget x set spent_usd = b.spent_usd, spent_tokens = b.spent_tokens, since = b.since where x.tenant = p_tenant;
    update troupe.budget_block x set settled_usd = p_settled_usd, settled_tokens = p_settled_tokens,
      held_usd = p_held_usd, held_tokens = p_held_tokens, lost_usd = 0, lost_tokens = 0, seen_at = at where x.tenant = p_tenant and x.worker = p_worker;
    return query select given, say, b.cost_usd, b.tokens, b.spent_usd, b.spent_tokens, b.period;
  end $$;
`;
