/**
 * The part of a session that a consolidation sees: the last turns and the latest summary. Read from the log, bounded.
 */
import { clip } from "../../lib/text.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import { isAsked } from "../../protocol/message.ts";

export interface SessionEvidence {
  readonly sessionId: string;
  /** The last turns, oldest first. */
  readonly turns: readonly EvidenceTurn[];
  /** Number of earlier turns that are omitted. */
  readonly leftOut: number;
  readonly checkpoint?: string;
}

interface EvidenceTurn {
  /** The number of the user message in the session, from 1. */
  readonly number: number;
  readonly user: string;
  readonly assistant: string;
}

const MAX_MESSAGE = 3000;
const MAX_TURNS = 48_000;
const MAX_CHECKPOINT = 16_000;

/** Holds only the evidence in memory, however long the session is. */
export class EvidenceFold {
  #turns: { number: number; user: string; assistant: string }[] = [];
  #count = 0;
  #summary: string | undefined;

  apply(event: SessionEvent): void {
    if (isOfPerson(event)) {
      this.#trim();
      this.#turns.push({
        number: ++this.#count,
        user: clip(String(event.data.content ?? ""), MAX_MESSAGE),
        assistant: "",
      });
      return;
    }
    if (event.agentId !== undefined) return;
    if (event.type === "session.compaction_complete" && event.data.success) this.#summary = event.data.summaryContent;
    const current = this.#turns.at(-1);
    if (event.type !== "assistant.message" || !current || !event.data.content) return;
    // Retains the end of a long reply, which is the most informative part.
    const said = [current.assistant, String(event.data.content)].filter(Boolean).join("\n\n");
    current.assistant = said.length <= MAX_MESSAGE ? said : `…${said.slice(-MAX_MESSAGE + 1)}`;
  }

  evidence(sessionId: string): SessionEvidence {
    this.#trim();
    return {
      sessionId,
      turns: this.#turns,
      leftOut: this.#count - this.#turns.length,
      ...(this.#summary !== undefined && { checkpoint: clip(this.#summary, MAX_CHECKPOINT) }),
    };
  }

  /** Drops the oldest turns that exceed the limit. */
  #trim(): void {
    let room = MAX_TURNS;
    const from = this.#turns.findLastIndex(({ user, assistant }) => {
      room -= user.length + assistant.length;
      return room < 0;
    });
    this.#turns = this.#turns.slice(from + 1);
  }
}

function isOfPerson(event: SessionEvent): event is Extract<SessionEvent, { type: "user.message" }> {
  return event.type === "user.message" && event.agentId === undefined && isAsked(event.data.source);
}
