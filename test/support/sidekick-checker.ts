import type { SessionEvent } from "../../src/protocol/event.ts";

/**
 * What is wrong with the sidekicks of a session, from nothing but its log; empty when all is well. Each entry is told
 * once, after it was sent, to the main agent; who has ended does nothing more; at the end nobody is at work.
 */
export function checkSidekicks(events: readonly SessionEvent[]): string[] {
  const problems: string[] = [];
  const sent = new Set<string>();
  const told = new Set<string>();
  const atWork = new Set<string>();
  for (const { type, data, agentId = "" } of events) {
    if (type === "troupe.sidekick_triggered") atWork.add(agentId);
    else if (agentId.includes("#") && !atWork.has(agentId)) problems.push(`${agentId} is not at work: ${type}`);
    if (type === "troupe.sidekick_ended") atWork.delete(agentId);
    if (type === "troupe.inbox_entry") {
      if (sent.has(data.entryId)) problems.push(`${data.entryId} was sent twice`);
      sent.add(data.entryId);
    }
    if (type !== "system.notification" || data.kind.type !== "new_inbox_message") continue;
    const { entryId } = data.kind;
    if (agentId !== "") problems.push(`${entryId} was told to ${agentId}`);
    if (!sent.has(entryId)) problems.push(`${entryId} was told before it was sent`);
    if (told.has(entryId)) problems.push(`${entryId} was told twice`);
    told.add(entryId);
  }
  return [...problems, ...[...atWork].map((id) => `${id} never ended`)];
}
