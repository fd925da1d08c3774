/** The limits on agents of a session: from the environment, settings and the plan of the account. */
import type { AgentPoolOptions } from "../../session/agents/agent-pool-options.ts";
import type { GivenSubagents } from "../../session/session-options.ts";
import type { Workspace } from "../workspace/workspace.ts";

export interface AgentLimitParts {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly settings: Workspace["settings"]["effective"];
  /** Limits that a client of the session sets while it is open. They only lower the others. */
  given?(): GivenSubagents;
  /** Fixed limits of a session that runs an agent of another one. */
  readonly most?: { readonly maxDepth: number; readonly maxTotal: number } | undefined;
  /** The plan of the session's GitHub account; undefined without one. */
  readonly accountPlan?: (() => Promise<string | undefined>) | undefined;
  warn(message: string): void;
}

export interface TaskLimitSettings {
  readonly limits: AgentPoolOptions["limits"];
  /**
   * Resolves when the default of the account's plan is known. Must be awaited before an agent starts. Never rejects.
   */
  ready(): Promise<void>;
}

/** Agents that one message may start in total. */
const MAX_TOTAL = 256;
const MAX_DEPTH = 6;
const MAX_DEPTH_EVER = 128;
/** For sessions without an account, and for plans that are not in the table. */
const MAX_CONCURRENCY = 32;

/** Agents that run at once by default, by the plan of the account. */
const CONCURRENCY_OF_PLAN: ReadonlyMap<string, number> = new Map([
  ...["free", "free_limited", "edu", "individual_edu", "free_educational"].map((plan) => [plan, 2] as const),
  ...["pro", "pro_plus", "individual", "individual_pro"].map((plan) => [plan, 4] as const),
  ...["max", "individual_max"].map((plan) => [plan, 8] as const),
  ["business", 16],
  ["enterprise", 32],
]);

export function agentLimits(parts: AgentLimitParts): TaskLimitSettings {
  const { environment, given } = parts;
  const { subagents } = parts.settings;
  const depth = environment.TROUPE_SUBAGENT_MAX_DEPTH ?? environment.COPILOT_SUBAGENT_MAX_DEPTH;
  const concurrent = environment.TROUPE_SUBAGENT_MAX_CONCURRENT ?? environment.COPILOT_SUBAGENT_MAX_CONCURRENT;
  const { most } = parts;
  const mostDeep = Math.min(
    within(depth, MAX_DEPTH_EVER) ?? subagents?.maxDepth ?? MAX_DEPTH,
    most?.maxDepth ?? MAX_DEPTH_EVER,
  );
  const wanted = within(concurrent, 256) ?? subagents?.maxConcurrency;
  let mostAtOnce = wanted ?? MAX_CONCURRENCY;
  let asked: Promise<void> | undefined;
  const askPlan = async (): Promise<void> => {
    const plan = await parts.accountPlan?.().catch(() => undefined);
    mostAtOnce = CONCURRENCY_OF_PLAN.get(plan?.toLowerCase() ?? "") ?? MAX_CONCURRENCY;
  };
  return {
    async ready() {
      if (wanted !== undefined || !parts.accountPlan) return;
      asked ??= askPlan();
      await asked;
    },
    limits: {
      get maxDepth() {
        return Math.min(mostDeep, given?.().maxDepth ?? mostDeep);
      },
      get maxConcurrency() {
        return Math.min(mostAtOnce, given?.().maxConcurrency ?? mostAtOnce);
      },
      maxTotal: Math.min(within(environment.TROUPE_SUBAGENT_MAX_TOTAL, 10_000) ?? MAX_TOTAL, most?.maxTotal ?? 10_000),
      whenFull: whenFull(parts) ?? subagents?.whenFull ?? "queue",
    },
  };
}

/** The environment's choice between queueing and refusing a start above the cap. */
function whenFull({ environment, warn }: AgentLimitParts): "queue" | "reject" | undefined {
  const given = environment.TROUPE_SUBAGENT_WHEN_FULL?.trim().toLowerCase();
  if (given === undefined || given === "") return undefined;
  if (given === "queue" || given === "reject") return given;
  warn(`TROUPE_SUBAGENT_WHEN_FULL is ${JSON.stringify(given.slice(0, 40))}; it can be queue or reject.`);
  return undefined;
}

function within(value: string | undefined, most: number): number | undefined {
  const given = Number(value);
  return value && Number.isInteger(given) && given >= 1 ? Math.min(given, most) : undefined;
}
