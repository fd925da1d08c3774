import type { EventData } from "../protocol/event.ts";
import type { Budget } from "./budget.ts";
import advice from "./limits-status.md";

/** What a session may cost, in the unit of the wire. */
export const USD_PER_CREDIT = 0.01;

/** Told with each prompt where a session has such a limit, so that the agent can be sparing in time. */
export function creditsStatus(credits: number, budget: Pick<Budget, "run">): EventData<"user.message"> {
  const used = (budget.run.costUsd ?? 0) / USD_PER_CREDIT;
  const left = Math.max(0, Math.round((credits - used) * 10) / 10);
  const status = `Remaining session limits: ${left} AI credits. ${advice.trim()}`;
  return {
    content: `<session_limits_status>\n${status}\n</session_limits_status>`,
    source: CREDITS_SOURCE,
  };
}

const CREDITS_SOURCE = "session-limits";
