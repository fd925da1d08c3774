/**
 * Database roles of tenants. A role can submit, read, answer and end the work of its tenant, and nothing else: see
 * `store/postgres/schema-tenants.ts`.
 */

import { TroupeError } from "../../protocol/errors.ts";
import type { Database } from "../../store/postgres/database.ts";

export interface TenantRoleRow {
  readonly role: string;
  readonly tenant: string;
  /** The pools that it may submit to; null: all. */
  readonly pools: string | null;
}

/** Gives an existing role the rights of a tenant. Policies on the rows limit it to this tenant. */
export async function setTenantRole(
  database: Database,
  { role, tenant, pools }: { readonly role: string; readonly tenant: string; readonly pools: readonly string[] },
): Promise<void> {
  await database.transaction(async (queries) => {
    const { rows } = await queries.query<{ unsafe: boolean }>(
      `select rolsuper or rolbypassrls
              or pg_has_role(oid, (select relowner from pg_class where oid = 'troupe.work'::regclass), 'member') as unsafe
       from pg_roles where rolname = $1`,
      [role],
    );
    const found = rows[0];
    if (!found) throw noRole(role);
    if (found.unsafe) throw tooMighty(role);
    await queries.query("select troupe.grant_tenant($1)", [role]);
    await queries.query(
      `insert into troupe.tenant_role(role, tenant, pools) values($1, $2, $3)
       on conflict (role) do update set tenant = excluded.tenant, pools = excluded.pools`,
      [role, tenant, pools.length > 0 ? pools : null],
    );
  });
}

export async function listTenantRoles(database: Database): Promise<readonly TenantRoleRow[]> {
  const { rows } = await database.query<TenantRoleRow>(
    `select role::text, tenant, array_to_string(pools, ', ') as pools from troupe.tenant_role order by tenant, role`,
  );
  return rows;
}

/** Takes all rights away again. */
export async function removeTenantRole(database: Database, role: string): Promise<void> {
  await database.transaction(async (queries) => {
    await queries.query("delete from troupe.tenant_role where role = $1", [role]);
    const { rows } = await queries.query<{ name: string }>(
      "select quote_ident(rolname) as name from pg_roles where rolname = $1",
      [role],
    );
    const name = rows[0]?.name;
    if (name === undefined) return;
    await queries.query(`revoke all on all tables in schema troupe from ${name}`);
    await queries.query(`revoke usage on schema troupe from ${name}`);
  });
}

const noRole = (role: string): TroupeError =>
  new TroupeError("usage", `The database has no role ${role}.`, {
    hint: `Create it first: create role ${role} login password '…'`,
  });

const tooMighty = (role: string): TroupeError =>
  new TroupeError("usage", `Policies do not limit the role ${role}: it owns the tables or bypasses row security.`, {
    hint: "Use a role of its own for each tenant.",
  });
