import * as z from "zod";
import { defined } from "../../lib/defined.ts";

const Quota = z.object({
  entitlement: z.number().default(0),
  percent_remaining: z.number().default(0),
  unlimited: z.boolean().default(false),
  overage_count: z.number().default(0),
  overage_permitted: z.boolean().default(false),
  timestamp_utc: z.string().optional(),
});

const User = z.object({
  login: z.string(),
  copilot_plan: z.string().optional(),
  is_mcp_enabled: z.boolean().optional(),
  endpoints: z.object({ api: z.string().optional() }).optional(),
  quota_snapshots: z.record(z.string(), Quota).optional(),
});

/** A GitHub user, and the API of their models. */
export interface GithubUser {
  readonly login: string;
  readonly plan?: string;
  readonly isMcpEnabled: boolean;
  readonly apiUrl?: string;
  readonly quota: Readonly<Record<string, QuotaSnapshot>>;
}

/** The used part of an allowance, in the terms of the wire. */
interface QuotaSnapshot {
  readonly isUnlimitedEntitlement: boolean;
  readonly entitlementRequests: number;
  readonly usedRequests: number;
  readonly remainingPercentage: number;
  readonly overage: number;
  readonly usageAllowedWithExhaustedQuota: boolean;
  readonly overageAllowedWithExhaustedQuota: boolean;
  readonly resetDate?: string;
}

/** Returns `undefined` if the reply does not describe a user. */
export function readUser(answer: unknown): GithubUser | undefined {
  const parsed = User.safeParse(answer);
  if (!parsed.success) return undefined;
  const {
    login,
    copilot_plan: plan,
    is_mcp_enabled: isMcpEnabled = true,
    endpoints,
    quota_snapshots = {},
  } = parsed.data;
  const apiUrl = endpoints?.api;
  return {
    login,
    isMcpEnabled,
    quota: Object.fromEntries(Object.entries(quota_snapshots).map(([name, quota]) => [name, snapshot(quota)])),
    ...defined({ plan, apiUrl }),
  };
}

function snapshot(quota: z.infer<typeof Quota>): QuotaSnapshot {
  const { entitlement, percent_remaining: remaining, overage_permitted: allowed, timestamp_utc: resetDate } = quota;
  return {
    isUnlimitedEntitlement: quota.unlimited,
    entitlementRequests: entitlement,
    usedRequests: (entitlement * (100 - remaining)) / 100,
    remainingPercentage: remaining,
    overage: quota.overage_count,
    usageAllowedWithExhaustedQuota: allowed,
    overageAllowedWithExhaustedQuota: allowed,
    ...defined({ resetDate }),
  };
}
