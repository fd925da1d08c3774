/**
 * The queue in front of the engine, and what a tenant's own database role may do. Work waits in `queue` until a slot is
 * free. Then the tenant with the fewest running sessions is next. A tenant's role can submit and read its own work, and
 * never touches the engine's tables.
 */

const QUEUE = `
  alter table troupe.worker add column tenant text;
  alter table troupe.work add column losses integer not null default 0, add column taken_at timestamptz,
    add column set_aside text;
  create table troupe.queue(
    work_id text primary key, session_id text not null, tenant text not null default 'default', pool text not null,
    attempt integer not null default 0, position bigint generated always as identity,
    enqueued_at timestamptz not null default clock_timestamp(), dispatched_at timestamptz, bound boolean not null default false);
  create index queue_waiting on troupe.queue(pool, tenant, position) where dispatched_at is null;
  create index queue_running on troupe.queue(pool, tenant) where dispatched_at is not null;
  create index queue_session on troupe.queue(session_id, position);

  create function troupe.workflow_id(p_work text, p_attempt integer) returns text language sql immutable as $$
    select case when p_attempt = 0 then p_work else p_work || '#' || p_attempt end
  $$;
`;

/** The role decides, not a setting: a role can change its own settings. */
const TENANTS = `
  create table troupe.tenant_role(role name primary key, tenant text not null, pools text[]);
  create function troupe.my_tenant() returns text language sql stable as $$
    select tenant from troupe.tenant_role where role = current_user
  $$;
  create function troupe.may_submit(p_tenant text, p_pool text) returns boolean language sql stable as $$
    select exists (select 1 from troupe.tenant_role
      where role = current_user and tenant = p_tenant and (pools is null or p_pool = any(pools)))
  $$;

  alter table troupe.tenant_role enable row level security;
  create policy own on troupe.tenant_role for select using (role = current_user);
  alter table troupe.session enable row level security;
  create policy own on troupe.session for select using (tenant = (select troupe.my_tenant()));
  alter table troupe.event enable row level security;
  create policy own on troupe.event for select
    using (exists (select 1 from troupe.session s where s.id = session_id));
  alter table troupe.file enable row level security;
  create policy own on troupe.file for select
    using (exists (select 1 from troupe.session s where s.id = session_id));
  alter table troupe.snapshot enable row level security;
  create policy own on troupe.snapshot for select
    using (exists (select 1 from troupe.session s where s.id = session_id));
  alter table troupe.work enable row level security;
  create policy own on troupe.work for select using (tenant = (select troupe.my_tenant()));
  create policy submit on troupe.work for insert with check (troupe.may_submit(tenant, pool));
  alter table troupe.queue enable row level security;
  create policy own on troupe.queue for select using (tenant = (select troupe.my_tenant()));
  create policy submit on troupe.queue for insert with check (troupe.may_submit(tenant, pool) and exists (
    select 1 from troupe.work w where w.id = work_id and w.session_id = queue.session_id and w.tenant = queue.tenant
      and w.pool = queue.pool));
  alter table troupe.budget enable row level security;
  create policy own on troupe.budget for select using (tenant = (select troupe.my_tenant()));
`;

/**
 * A tenant whose work ran in the last ten minutes keeps one slot free for its next session, so that it does not wait until
 * a session of another tenant ends. At most half of the slots are kept free.
 */
export const dispatching = `
  create table troupe.tenant_seen(pool text, tenant text, at timestamptz not null, primary key(pool, tenant));
  alter table troupe.tenant_seen enable row level security;
  create or replace function troupe.dispatch(p_pool text)
  returns table(work_id text, session_id text, tenant text, attempt integer, bound boolean)
  language plpgsql as $$
  #variable_conflict use_column
  declare r record; slots integer; free integer; kept integer; own integer; is_bound boolean;
  begin
    perform pg_advisory_xact_lock(7405120, hashtext(p_pool));
    delete from troupe.queue q using dbos.workflow_status s
      where q.pool = p_pool and q.dispatched_at is not null
        and s.workflow_uuid = troupe.workflow_id(q.work_id, q.attempt)
        and s.status not in ('ENQUEUED', 'PENDING', 'DELAYED');
    -- The process that dispatched it ended before it reached the engine.
    update troupe.queue q set dispatched_at = null
      where q.pool = p_pool and q.dispatched_at < clock_timestamp() - interval '10 s'
        and not exists (select 1 from dbos.workflow_status s
                        where s.workflow_uuid = troupe.workflow_id(q.work_id, q.attempt));
    select coalesce(sum(w.concurrency), 0) into slots from troupe.worker w
      where w.pool = p_pool and w.tenant is null and not w.draining and w.expires_at > clock_timestamp();
    select slots - count(*) into free from troupe.queue q
      where q.pool = p_pool and q.dispatched_at is not null and not q.bound;
    for r in
      select q.work_id, q.session_id, t.tenant, q.attempt, t.places, t.running_bound,
             t.running + row_number() over (partition by t.tenant order by q.position) as share, q.position
      from (
        select n.tenant,
          (select count(*) from troupe.queue o
            where o.pool = p_pool and o.tenant = n.tenant and o.dispatched_at is not null)::integer as running,
          (select count(*) from troupe.queue o
            where o.pool = p_pool and o.tenant = n.tenant and o.dispatched_at is not null and o.bound)::integer as running_bound,
          (select coalesce(sum(w.concurrency), 0) from troupe.worker w
            where w.pool = p_pool and w.tenant = n.tenant and not w.draining
              and w.expires_at > clock_timestamp())::integer as places
        from (select distinct tenant from troupe.queue o where o.pool = p_pool and o.dispatched_at is null) n
      ) t
      cross join lateral (
        select o.* from troupe.queue o
        where o.pool = p_pool and o.tenant = t.tenant and o.dispatched_at is null
          and not exists (select 1 from troupe.queue before where before.session_id = o.session_id
            and (before.dispatched_at is not null or before.position < o.position))
        order by o.position limit greatest(free, 0) + greatest(t.places - t.running_bound, 0)
      ) q
      order by share, q.position
    loop
      select count(*) into own from troupe.queue o
        where o.pool = p_pool and o.tenant = r.tenant and o.dispatched_at is not null and o.bound;
      is_bound := own < r.places;
      if not is_bound then
        -- First come the tenants that run nothing. When they have their slots, it is known who keeps one free.
        if r.share > 1 and kept is null then
          select least(count(*), slots / 2) into kept from troupe.tenant_seen s
            where s.pool = p_pool and s.at > clock_timestamp() - interval '10 min'
              and not exists (select 1 from troupe.queue o
                where o.pool = p_pool and o.tenant = s.tenant and o.dispatched_at is not null)
              and not exists (select 1 from troupe.worker w
                where w.pool = p_pool and w.tenant = s.tenant and w.expires_at > clock_timestamp());
        end if;
        continue when free <= coalesce(kept, 0);
        free := free - 1;
      end if;
      update troupe.queue o set dispatched_at = clock_timestamp(), bound = is_bound where o.work_id = r.work_id;
      insert into troupe.tenant_seen as s values(p_pool, r.tenant, clock_timestamp())
        on conflict (pool, tenant) do update set at = excluded.at where s.at < excluded.at - interval '10 s';
      return query select r.work_id, r.session_id, r.tenant, r.attempt, is_bound;
    end loop;
  end $$;
`;

/**
 * Rights of a tenant's role beyond submitting and reading: answer requests, send messages through a gateway, follow and
 * end its own work. The ids of work that it chooses hold no separator of the engine: they would name the work of others.
 */
export const tenantActions = `
  create function troupe.is_foreign(p_session text, p_tenant text) returns boolean
  language sql stable security definer set search_path = pg_catalog as $$
    select exists (select 1 from troupe.session s where s.id = p_session and s.tenant <> p_tenant)
  $$;

  drop policy submit on troupe.work;
  create policy submit on troupe.work for insert
    with check (troupe.may_submit(tenant, pool) and parent is null and id !~ '[~#]');
  create policy stop on troupe.work for update using (tenant = (select troupe.my_tenant()) and outcome is null);
  drop policy submit on troupe.queue;
  create policy submit on troupe.queue for insert with check (exists (
    select 1 from troupe.work w where w.id = split_part(work_id, '~', 1) and w.session_id = queue.session_id
      and w.tenant = queue.tenant and w.pool = queue.pool and w.tenant = (select troupe.my_tenant())
      and (w.id = work_id or w.waiting_at is not null)));

  alter table troupe.request enable row level security;
  create policy own on troupe.request for select
    using (exists (select 1 from troupe.session s where s.id = session_id));
  alter table troupe.answer enable row level security;
  create policy own on troupe.answer for select
    using (exists (select 1 from troupe.session s where s.id = session_id));
  create policy answer on troupe.answer for insert with check (exists (
    select 1 from troupe.request r where r.session_id = answer.session_id and r.id = request_id and r.kind = answer.kind
      and r.ended_at is null));
  alter table troupe.remote_session enable row level security;
  create policy own on troupe.remote_session using (tenant = (select troupe.my_tenant()))
    with check (tenant = (select troupe.my_tenant()) and not troupe.is_foreign(id, tenant));
  alter table troupe.watch enable row level security;
  create policy own on troupe.watch using (
    exists (select 1 from troupe.session s where s.id = session_id)
    or exists (select 1 from troupe.remote_session r where r.id = session_id)
    or exists (select 1 from troupe.work w where w.session_id = watch.session_id));

  create function troupe.grant_tenant(p_role name) returns void language plpgsql as $$
  begin
    execute format('grant usage on schema troupe to %I', p_role);
    execute format('grant select on troupe.migration, troupe.tenant_role, troupe.session, troupe.event, troupe.file,
      troupe.snapshot, troupe.work, troupe.queue, troupe.budget, troupe.request, troupe.answer, troupe.remote_session,
      troupe.watch to %I', p_role);
    execute format('grant insert(id, session_id, tenant, pool, on_loss, request, parent), update(abort_at)
      on troupe.work to %I', p_role);
    execute format('grant insert(work_id, session_id, tenant, pool) on troupe.queue to %I', p_role);
    execute format('grant insert(session_id, request_id, kind, answer) on troupe.answer to %I', p_role);
    execute format('grant insert(id, tenant, options), update(options, changed_at) on troupe.remote_session to %I', p_role);
    execute format('grant insert(session_id, until), update(until) on troupe.watch to %I', p_role);
  end $$;
  revoke execute on function troupe.grant_tenant(name) from public;
  do $$
  declare r name;
  begin
    for r in select t.role from troupe.tenant_role t join pg_roles p on p.rolname = t.role loop
      perform troupe.grant_tenant(r);
    end loop;
  end $$;
`;

export const tenants = QUEUE + TENANTS;
