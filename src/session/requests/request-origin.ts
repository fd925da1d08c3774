import type { RequestOrigin } from "../../model/provider.ts";

/** Whose requests they are: those of an agent, or of the main one, which goes by the id of its session. */
export function originOf(
  sessionId: string,
  agent?: { readonly id: string; readonly parentId?: string | undefined },
): RequestOrigin {
  if (!agent) return { sessionId, agentId: sessionId, interactionType: "conversation-agent" };
  const { id: agentId, parentId: parentAgentId = sessionId } = agent;
  return { sessionId, agentId, parentAgentId, interactionType: "conversation-subagent" };
}
