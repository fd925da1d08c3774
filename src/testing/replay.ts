/** Steps from a recorded session: the same replies again, without the model that gave them. */
import type { Json } from "../lib/json.ts";
import { forAgent, type PlainStep, type Step } from "../model/faux/faux-plan.ts";
import { calls, type Moves, says, thinks, together } from "../model/faux/faux-step.ts";
import type { ModelRequest } from "../model/provider.ts";
import type { EventOf, SessionEvent } from "../protocol/event.ts";

export interface ReplayOptions {
  /**
   * Which requests are an agent's, by the id its events carry. Agents of a recording that are left out take the shared
   * steps in the order of the log, as the main agent does.
   */
  readonly agents?: Readonly<Record<string, string | ((request: ModelRequest) => boolean)>>;
}

/** One step for each reply in the log, with text, reasoning and calls as they were, ids included. */
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
