/**
 * A session's credit limit, in the wire's unit. It is reported to the agent, enforced if prices are known, and can be
 * raised on request.
 */
import { wrapInTag } from "../../lib/quoting.ts";
import type { LimitReached } from "../../loop/run.ts";
import type { Emit, EventData, SessionEvent } from "../../protocol/event.ts";
import type { Broker } from "../requests/broker.ts";
import type { Budget, Limits } from "./budget.ts";
import advice from "./limits-status.md";
import { roundedUsd } from "./reservations.ts";

const USD_PER_CREDIT = 0.01;
const NANO = 1e9;

export class Credits {
  #maxCredits: number | undefined;
  readonly #canEnforce: boolean;

  /** `canEnforce`: the model's price is known, so the limit can be enforced and not only reported. */
  constructor(maxCredits: number | undefined, { canEnforce }: { readonly canEnforce: boolean }) {
    this.#maxCredits = maxCredits;
    this.#canEnforce = canEnforce;
  }

  get most(): number | undefined {
    return this.#maxCredits;
  }

  change(maxCredits: number | undefined): void {
    this.#maxCredits = maxCredits;
  }

  /** Returns the limits with the smaller of the cost limit and the credit limit. */
  within(limits: Limits): Limits {
    if (this.#maxCredits === undefined || !this.#canEnforce) return limits;
    return {
      ...limits,
      costUsd: Math.min(limits.costUsd ?? Number.POSITIVE_INFINITY, this.#maxCredits * USD_PER_CREDIT),
    };
  }

  /** Whether the credit limit ended the work, and not another cost limit. */
  isReached({ limit, allowed }: LimitReached): boolean {
    return (
      limit === "cost" &&
      this.#canEnforce &&
      this.#maxCredits !== undefined &&
      allowed >= this.#maxCredits * USD_PER_CREDIT
    );
  }
}

/**
 * Returns the message that accompanies each prompt of a session with a credit limit, so that the agent can economise.
 */
export function creditsStatus(maxCredits: number, budget: Pick<Budget, "run">): EventData<"user.message"> {
  const left = Math.max(0, Math.round((maxCredits - creditsOf(budget.run.costUsd ?? 0)) * 10) / 10);
  const status = `Remaining session limits: ${left} AI credits. ${advice.trim()}`;
  return {
    content: wrapInTag("session_limits_status", {}, status),
    source: CREDITS_SOURCE,
  };
}

const CREDITS_SOURCE = "session-limits";

const creditsOf = (costUsd: number): number => roundedUsd(costUsd / USD_PER_CREDIT);

/** Returns billionths of a credit; undefined if the price of a call is unknown. */
export function nanoCredits(costUsd: number | null): number | undefined {
  return costUsd === null ? undefined : Math.round(creditsOf(costUsd) * NANO);
}

interface CreditPorts {
  readonly credits: Credits | undefined;
  readonly budget: Pick<Budget, "run">;
  readonly broker: Broker;
  readonly emit: Emit;
  readonly signal: AbortSignal;
}

/** Asks the client to raise the credit limit that ended the work. Returns true if the work may continue. */
export async function offerMoreCredits(reached: LimitReached, ports: CreditPorts): Promise<boolean> {
  const { credits, budget, broker, emit, signal } = ports;
  const most = credits?.most;
  if (!credits || most === undefined || !credits.isReached(reached)) return false;
  const used = creditsOf(budget.run.costUsd ?? 0);
  const data = { maxAiCredits: most, usedAiCredits: used };
  const answer = await broker.request("session_limits_exhausted", data, { signal });
  if (typeof answer === "string" || answer.action === "cancel") return false;
  const { action, additionalAiCredits = 0, maxAiCredits = most } = answer;
  const next = action === "unset" ? undefined : action === "set" ? maxAiCredits : most + additionalAiCredits;
  credits.change(next);
  await emit("session.session_limits_changed", limitsData(next));
  return next === undefined || next > used;
}

export function limitsData(maxCredits: number | undefined): EventData<"session.session_limits_changed"> {
  return { sessionLimits: maxCredits === undefined ? null : { maxAiCredits: maxCredits } };
}

/** Emits the limits if they differ from the last logged ones. */
export async function emitLimits(credits: Credits | undefined, events: readonly SessionEvent[], emit: Emit) {
  const most = credits?.most;
  if (lastLogged(events) !== most) await emit("session.session_limits_changed", limitsData(most));
}

function lastLogged(events: readonly SessionEvent[]): number | undefined {
  for (const event of [...events].reverse()) {
    switch (event.type) {
      case "session.start":
      case "session.resume":
      case "session.session_limits_changed":
        return event.data.sessionLimits?.maxAiCredits;
    }
  }
  return undefined;
}

/** Emits the session's total cost whenever it has increased. */
export class CostEmitter {
  readonly #budget: Pick<Budget, "session">;
  #last: number;

  constructor(budget: Pick<Budget, "session">, events: readonly SessionEvent[]) {
    this.#budget = budget;
    this.#last = events.findLast((event) => event.type === "session.usage_checkpoint")?.data.totalNanoAiu ?? 0;
  }

  async emitIfHigher(emit: Emit): Promise<void> {
    const totalNanoAiu = nanoCredits(this.#budget.session.costUsd);
    if (totalNanoAiu === undefined || totalNanoAiu <= this.#last) return;
    this.#last = totalNanoAiu;
    await emit("session.usage_checkpoint", { totalNanoAiu });
  }
}
