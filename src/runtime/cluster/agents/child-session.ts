/** The request for a session that runs an agent of another session: the agent leads it, with what that session allows. */

import { defined } from "../../../lib/defined.ts";
import type { EventData } from "../../../protocol/event.ts";
import type { Limits } from "../../../session/budget/budget.ts";
import { flagsWithin, movedCeiling } from "../../permissions/ceiling.ts";
import type { SessionRequest } from "../../session-request.ts";
import type { ChildRequest } from "../work.ts";

/** `own`: the request of the worker. `used`: what the work has used so far, on other workers too. */
export function childRequest(
  own: SessionRequest,
  child: ChildRequest,
  used: EventData<"troupe.task_returned">["usage"],
): SessionRequest {
  const { agent, model, reasoningEffort, ceiling, cwd: from, tools } = child;
  const moved = movedCeiling(ceiling, { from, to: own.cwd });
  const { name: _name, mode: _mode, ...rest } = own;
  return {
    ...rest,
    model: {
      ...own.model,
      ...(model !== "" && { name: model }),
      reasoningEffort: undefined,
      ...effortOf(reasoningEffort),
    },
    agents: { ...own.agents, main: agent.name, limits: child.agents },
    // Later than the agents of a program, so that it wins over one of the same name.
    workspace: { ...own.workspace, agents: [...(own.workspace?.agents ?? []).filter(isOther(agent.name)), agent] },
    tools: { ...own.tools, choice: { ...own.tools?.choice, available: tools, hiddenFromMain: [], onlyListed: [] } },
    permissions: flagsWithin(own.permissions ?? {}, moved),
    // The limits of the session that started it are in the allowance.
    limits: remainingLimits(child.allowance, used),
  };
}

type Effort = NonNullable<NonNullable<SessionRequest["model"]>["reasoningEffort"]>;

const effortOf = (effort: string | undefined) => defined({ reasoningEffort: effort as Effort | undefined });

const isOther =
  (name: string) =>
  (given: unknown): boolean =>
    (given as { readonly name?: unknown } | null)?.name !== name;

function remainingLimits({ turns, tokens, costUsd }: Limits, used: EventData<"troupe.task_returned">["usage"]): Limits {
  const usedTokens = used.inputTokens + used.outputTokens;
  return {
    ...(turns !== undefined && { turns: Math.max(0, turns - used.calls) }),
    ...(tokens !== undefined && { tokens: Math.max(0, tokens - usedTokens) }),
    ...(costUsd !== undefined && { costUsd: Math.max(0, costUsd - (used.costUsd ?? costUsd)) }),
  };
}
