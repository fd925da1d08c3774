/** What a consolidation is shown of a session: what was said, and the latest summary. Read from the log, bounded. */
import { clip } from "../../lib/text.ts";
import type { SessionEvent } from "../../protocol/event.ts";

export interface SessionEvidence {
  readonly sessionId: string;
  /** The last ones, oldest first. */
  readonly turns: readonly EvidenceTurn[];
  /** How many before them were left out. */
  readonly leftOut: number;
  readonly checkpoint?: string;
}

interface EvidenceTurn {
  /** Counts the messages of the person, from 1. */
  readonly number: number;
  readonly user: string;
  readonly assistant: string;
}

const MAX_MESSAGE = 3000;
const MAX_TURNS = 48_000;
const MAX_CHECKPOINT = 16_000;

export function evidenceOf(sessionId: string, events: readonly SessionEvent[]): SessionEvidence {
  const all = turnsOf(events);
  let room = MAX_TURNS;
  const turns = [...all].reverse().filter(({ user, assistant }) => {
    room -= user.length + assistant.length;
    return room >= 0;
  });
  const summary = events.findLast(
    ({ type, agentId, data }) => type === "session.compaction_complete" && agentId === undefined && data.success,
  );
  const checkpoint = summary?.type === "session.compaction_complete" ? summary.data.summaryContent : undefined;
  return {
    sessionId,
    turns: turns.reverse(),
    leftOut: all.length - turns.length,
    ...(checkpoint !== undefined && { checkpoint: clip(checkpoint, MAX_CHECKPOINT) }),
  };
}

/** Messages that a person sent to the main agent. */
export function userMessages(events: readonly SessionEvent[]): number {
  return events.filter(isOfPerson).length;
}

function turnsOf(events: readonly SessionEvent[]): EvidenceTurn[] {
  const turns: { number: number; user: string; assistant: string }[] = [];
  for (const event of events) {
    if (isOfPerson(event)) {
      turns.push({
        number: turns.length + 1,
        user: clip(String(event.data.content ?? ""), MAX_MESSAGE),
        assistant: "",
      });
      continue;
    }
    const current = turns.at(-1);
    if (event.type !== "assistant.message" || event.agentId !== undefined || !current || !event.data.content) continue;
    // The last words of a turn say most.
    const said = [current.assistant, String(event.data.content)].filter(Boolean).join("\n\n");
    current.assistant = said.length <= MAX_MESSAGE ? said : `…${said.slice(-MAX_MESSAGE + 1)}`;
  }
  return turns;
}

function isOfPerson(event: SessionEvent): event is Extract<SessionEvent, { type: "user.message" }> {
  return event.type === "user.message" && event.agentId === undefined && event.data.source === undefined;
}
