/** Connects model calls with the budget of a tenant, which all workers share. */

import { BudgetSpent, type SharedBudgets } from "../../engine/shared-budgets.ts";
import { ModelError } from "../../model/model-error.ts";
import type { SharedBudget } from "../../model/shared-budget.ts";

export function tenantBudget(budgets: Pick<SharedBudgets, "reserve">, tenant: string): SharedBudget {
  return {
    async reserve(expected, signal) {
      try {
        return await budgets.reserve(tenant, expected, signal);
      } catch (error) {
        throw error instanceof BudgetSpent ? budgetSpent(error, tenant) : error;
      }
    },
  };
}

const budgetSpent = ({ message, limit }: BudgetSpent, tenant: string): ModelError =>
  new ModelError(message, {
    kind: "quota",
    provider: "troupe",
    code: limit === "price" ? "price_unknown" : "tenant_budget",
    retryable: false,
    hint: `The work so far is kept. Raise the limit with "troupe cluster budget set ${tenant}", then send another message.`,
  });
