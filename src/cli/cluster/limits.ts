/** `troupe cluster limit` and `troupe cluster budget`: limits that all workers share. */

import type { Cluster } from "../../runtime/cluster/cluster.ts";
import { budgetPeriods, listBudgets, listRates, setBudget, setRate } from "../../runtime/cluster/limits.ts";
import { type Arguments, unknownSubcommand, usage } from "../args.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { printMessage } from "../output/print-message.ts";
import { show } from "./tables.ts";

const ACTIONS = ["list", "set", "remove"];

export async function limitCommand(given: Arguments, { database }: Cluster): Promise<ExitCode> {
  const [, , action = "list", name] = given.words;
  if (action === "list") return show(given, { limits: [...(await listRates(database))].map(roundGate) });
  if (!ACTIONS.includes(action)) throw unknownSubcommand("cluster limit", action, ACTIONS);
  if (name === undefined) throw usage("Name the limit: troupe cluster limit set <provider/model> …");
  const isSet = action === "set";
  const requestsPerMinute = isSet ? (given.amount("requests-per-minute", "whole") ?? null) : null;
  const concurrency = isSet ? (given.amount("concurrency", "whole") ?? null) : null;
  if (isSet && requestsPerMinute === null && concurrency === null) {
    throw usage("Give a limit: --requests-per-minute, --concurrency or both.");
  }
  await setRate(database, name, { requestsPerMinute, concurrency });
  printMessage(isSet ? `${name} is limited for all workers` : `${name} has no shared limit any more`);
  return exitCodes.done;
}

const roundGate = ({ gateMs, ...row }: Awaited<ReturnType<typeof listRates>>[number]) => ({
  ...row,
  gate: gateMs === null ? "open" : `shut, next try in ${Math.ceil(gateMs / 1000)} s`,
});

export async function budgetCommand(given: Arguments, { database }: Cluster): Promise<ExitCode> {
  const [, , action = "list", tenant] = given.words;
  if (action === "list") return show(given, { budgets: [...(await listBudgets(database))].map((row) => ({ ...row })) });
  if (!ACTIONS.includes(action)) throw unknownSubcommand("cluster budget", action, ACTIONS);
  if (tenant === undefined) throw usage("Name the tenant: troupe cluster budget set <tenant> …");
  const isSet = action === "set";
  const costUsd = isSet ? (given.amount("max-cost", "any") ?? null) : null;
  const tokens = isSet ? (given.amount("max-tokens", "whole") ?? null) : null;
  if (isSet && costUsd === null && tokens === null) throw usage("Give a limit: --max-cost, --max-tokens or both.");
  await setBudget(database, tenant, { costUsd, tokens, period: given.choice("per", budgetPeriods) ?? "total" });
  printMessage(isSet ? `tenant ${tenant} has a budget` : `tenant ${tenant} has no limit any more`);
  return exitCodes.done;
}
