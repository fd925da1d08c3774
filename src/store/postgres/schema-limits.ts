/**
 * Tables and functions for limits that all workers share: request rates, concurrency and budgets of tenants. The functions
 * run each decision in one round trip, under the lock of one row.
 *
 * Blocks belong to a worker and count only while its lease is valid. A worker reports absolute numbers, so a repeated call
 * changes nothing.
 */

/** True while a worker counts. Right after a start of the server nobody could renew a lease, so everybody counts. */
const ALIVE = `
  create table troupe.lock(name text primary key, expires_at timestamptz not null);
  create function troupe.is_alive(p_worker text, p_lease_ms float) returns boolean language sql stable as $$
    select exists (select 1 from troupe.worker w where w.id = p_worker and w.expires_at > clock_timestamp())
      or clock_timestamp() < pg_postmaster_start_time() + 2 * p_lease_ms * interval '1 ms'
  $$;
`;

/**
 * A request that is granted in a slot is sent before the slot ends. The sum over all slots that can reach into the last
 * window bounds what the provider counts in any window. \`margin\` is the longest way of a request to the provider.
 */
const RATES = `
  create table troupe.rate_limit(
    name text primary key, requests integer, window_ms integer not null default 60000, concurrency integer,
    gate_until timestamptz, prober text, probe_until timestamptz);
  create table troupe.rate_slot(name text not null, slot bigint not null, granted integer not null, primary key(name, slot));
  create table troupe.rate_block(
    name text not null, worker text not null, line text not null, held integer not null default 0,
    wanted integer not null default 0, seen_at timestamptz not null, primary key(name, worker, line));

  create function troupe.draw_requests(p_names text[], p_worker text, p_held integer, p_want integer, p_lease_ms float)
  returns table(name text, granted integer, valid_ms float, wait_ms float, reason text, probe boolean)
  language plpgsql as $$
  #variable_conflict use_column
  declare
    l troupe.rate_limit; at timestamptz; ms float; size integer; margin float; target bigint;
    used integer; oldest bigint; others integer; total integer; room integer; give integer := p_want;
    is_probe boolean := false; why text; pause float := 250; valid float := 500;
  begin
    select r.* into l from troupe.rate_limit r
      where r.name = any(p_names) and (r.requests is not null or r.concurrency is not null)
      order by array_position(p_names, r.name) limit 1;
    if not found then
      insert into troupe.rate_limit(name) values (p_names[1]) on conflict do nothing;
      l.name := p_names[1];
    end if;
    select r.* into l from troupe.rate_limit r where r.name = l.name for update;
    at := clock_timestamp();
    ms := extract(epoch from at) * 1000;
    if not troupe.is_alive(p_worker, p_lease_ms) then
      return query select l.name, 0, 0::float, 1000::float, 'lease'::text, false;
      return;
    end if;
    delete from troupe.rate_block b where b.name = l.name and not troupe.is_alive(b.worker, p_lease_ms);
    select count(distinct b.worker) into others from troupe.rate_block b
      where b.name = l.name and b.worker <> p_worker and b.wanted > 0 and b.seen_at > at - interval '2 s';

    if l.gate_until is not null and p_want > 0 then
      if l.gate_until > at then
        give := 0; why := 'gate'; pause := extract(epoch from l.gate_until - at) * 1000;
      elsif l.prober is not null and l.probe_until > at and troupe.is_alive(l.prober, p_lease_ms) then
        give := 0; why := 'gate';
      else
        give := 1; is_probe := true;
      end if;
    end if;

    if l.requests is not null and give > 0 then
      size := greatest(l.window_ms / 12, 100);
      margin := least(l.window_ms / 10, 2000);
      target := floor((ms + size / 2) / size);
      valid := (target + 1) * size - ms;
      delete from troupe.rate_slot s where s.name = l.name and (s.slot + 1) * size + margin <= ms - l.window_ms;
      select coalesce(sum(s.granted), 0), min(s.slot) into used, oldest from troupe.rate_slot s where s.name = l.name;
      if used >= l.requests then
        give := 0; why := 'rate'; pause := (oldest + 1) * size + margin + l.window_ms - ms;
      else
        give := least(give, ceil((l.requests - used)::float / (others + 1))::integer);
      end if;
    end if;

    if l.concurrency is not null and give > 0 then
      select coalesce(sum(b.held), 0) into total from troupe.rate_block b
        where b.name = l.name and not (b.worker = p_worker and b.line = p_names[1]);
      room := greatest(l.concurrency - total - p_held, 0);
      if others > 0 then
        select coalesce(sum(b.held), 0) into total from troupe.rate_block b
          where b.name = l.name and b.worker = p_worker and b.line <> p_names[1];
        room := least(room, greatest(ceil(l.concurrency::float / (others + 1))::integer - total - p_held, 0));
      end if;
      if room < give then why := 'concurrency'; end if;
      give := least(give, room);
    end if;

    if give > 0 and is_probe then
      update troupe.rate_limit r set prober = p_worker, probe_until = at + interval '60 s' where r.name = l.name;
    end if;
    if give > 0 and l.requests is not null then
      insert into troupe.rate_slot as s (name, slot, granted) values (l.name, target, give)
        on conflict (name, slot) do update set granted = s.granted + give;
    end if;
    insert into troupe.rate_block as b (name, worker, line, held, wanted, seen_at)
      values (l.name, p_worker, p_names[1], p_held + give, p_want - give, at)
      on conflict (name, worker, line) do update set held = p_held + give, wanted = p_want - give, seen_at = at;
    return query select l.name, give, valid, pause, why, is_probe and give > 0;
  end $$;
`;

/** Amounts are absolute: what the worker has settled since it started, and what its running calls hold. */
const BUDGETS = `
  create table troupe.budget(
    tenant text primary key, cost_usd numeric, tokens bigint, period text not null default 'total',
    since timestamptz not null default clock_timestamp(),
    spent_usd numeric not null default 0, spent_tokens bigint not null default 0);
  create table troupe.budget_block(
    tenant text not null, worker text not null, settled_usd numeric not null default 0,
    settled_tokens bigint not null default 0, held_usd numeric not null default 0, held_tokens bigint not null default 0,
    seen_at timestamptz not null default clock_timestamp(), primary key(tenant, worker));
`;

export const sharedLimits = ALIVE + RATES + BUDGETS;
