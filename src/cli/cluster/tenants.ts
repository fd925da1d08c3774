/** `troupe cluster tenant` and `troupe cluster retry`. */

import { type Cluster, retryWork } from "../../runtime/cluster/cluster.ts";
import { listTenantRoles, removeTenantRole, setTenantRole } from "../../runtime/cluster/tenants.ts";
import { type Arguments, unknownSubcommand, usage } from "../args.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { printMessage } from "../output/print-message.ts";
import { show } from "./tables.ts";

const ACTIONS = ["list", "set", "remove"];

export async function tenantCommand(given: Arguments, { database }: Cluster): Promise<ExitCode> {
  const [, , action = "list", tenant] = given.words;
  if (action === "list")
    return show(given, { tenants: [...(await listTenantRoles(database))].map((row) => ({ ...row })) });
  if (!ACTIONS.includes(action)) throw unknownSubcommand("cluster tenant", action, ACTIONS);
  const role = given.text("role");
  if (role === undefined) throw usage(`Name the database role: troupe cluster tenant ${action} … --role <role>`);
  if (action === "remove") {
    await removeTenantRole(database, role);
    printMessage(`role ${role} has no rights any more`);
    return exitCodes.done;
  }
  if (tenant === undefined) throw usage("Name the tenant: troupe cluster tenant set <tenant> --role <role>");
  await setTenantRole(database, { role, tenant, pools: given.list("pool") });
  printMessage(`role ${role} can submit and read jobs of tenant ${tenant}`);
  return exitCodes.done;
}

export async function retryCommand(cluster: Cluster, id: string | undefined): Promise<ExitCode> {
  if (id === undefined) throw usage("Name the job to run again: troupe cluster retry <job id>");
  printMessage(`job ${await retryWork(cluster, id)} runs again`);
  return exitCodes.done;
}
