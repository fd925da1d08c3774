import type { RequestOrigin } from "../../model/provider.ts";

/** Returns the origin of an agent's model requests. The main agent is identified by the session's id. */
export function requestOrigin(
  sessionId: string,
  agent?: { readonly id: string; readonly parentId?: string | undefined },
): RequestOrigin {
  if (!agent) return { sessionId, agentId: sessionId, interactionType: "conversation-agent" };
  const { id: agentId, parentId: parentAgentId = sessionId } = agent;
  return { sessionId, agentId, parentAgentId, interactionType: "conversation-subagent" };
}
