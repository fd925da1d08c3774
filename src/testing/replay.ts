/** Steps from a recorded session: the same replies again, without the original model. */
import type { Json } from "../lib/json.ts";
import { forAgent, type PlainStep, type Step } from "../model/faux/faux-plan.ts";
import { calls, type Moves, says, thinks, together } from "../model/faux/faux-step.ts";
import type { ModelRequest } from "../model/provider.ts";
import type { EventOf, SessionEvent } from "../protocol/event.ts";

export interface ReplayOptions {
  /**
   * Assigns requests to agents, by the id in their events. Omitted agents of a recording take the shared steps in log
   * order, like the main agent.
   */
  readonly agents?: Readonly<Record<string, string | ((request: ModelRequest) => boolean)>>;
}

/** Returns one step for each reply in the log, with the same text, reasoning and calls, ids included. */
export function replaySteps(events: Iterable<SessionEvent>, options: ReplayOptions = {}): Step[] {
  const shared: Moves[] = [];
  const byAgent = new Map<string, PlainStep[]>();
  for (const event of events) {
    if (event.type !== "assistant.message") continue;
    const agentId = event.agentId;
    if (agentId === undefined || options.agents?.[agentId] === undefined) shared.push(replyOf(event));
    else byAgent.set(agentId, [...(byAgent.get(agentId) ?? []), replyOf(event)]);
  }
  const keyed = [...byAgent].map(([agentId, steps]) => forAgent(options.agents?.[agentId] ?? agentId, ...steps));
  return [...shared, ...keyed];
}

function replyOf({ data }: EventOf<"assistant.message">): Moves {
  const { content, toolRequests, reasoningText } = data;
  const wanted = toolRequests.map(({ name, arguments: args = {}, toolCallId }): [string, Json, string] => [
    name,
    args,
    toolCallId,
  ]);
  return together(
    ...(reasoningText === undefined ? [] : [thinks(reasoningText)]),
    says(content === "" ? [] : content),
    ...(wanted.length === 0 ? [] : [calls(...wanted)]),
  );
}
