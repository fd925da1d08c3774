/**
 * Inbox entries that sidekicks sent to the main agent, derived from the log. Each entry is announced once, even across
 * restarts.
 */
import { quotedLine, wrapInTag } from "../../lib/quoting.ts";
import type { EventData, EventOf, SessionEvent } from "../../protocol/event.ts";
import type { InboxReader } from "../../tools/memory/inbox.ts";
import type { SystemNotice } from "../turn/pending-messages.ts";

export interface LoggedInboxEntry extends Readonly<EventData<"troupe.inbox_entry">> {
  readonly sentAt: string;
  /** The run that sent it. */
  readonly agentId: string | undefined;
  /** `due`: not announced yet. `announced`: a notification is in the main agent's conversation. */
  readonly state: "due" | "announced" | "read";
}

const READ_INBOX = "read_inbox";

export class InboxEntries implements InboxReader {
  readonly #entries = new Map<string, LoggedInboxEntry>();
  /** The main agent's `read_inbox` calls → entry id. */
  readonly #reading = new Map<string, string>();

  constructor(events: Iterable<SessionEvent> = []) {
    this.refill(events);
  }

  /** Rebuilds the entries from these events. */
  refill(events: Iterable<SessionEvent>): void {
    this.#entries.clear();
    this.#reading.clear();
    for (const event of events) this.apply(event);
  }

  get(entryId: string): LoggedInboxEntry | undefined {
    return this.#entries.get(entryId);
  }

  get ids(): readonly string[] {
    return [...this.#entries.keys()].reverse();
  }

  /** All entries, oldest first. */
  get all(): readonly LoggedInboxEntry[] {
    return [...this.#entries.values()];
  }

  apply(event: SessionEvent): void {
    if (event.type === "troupe.inbox_entry") this.#take(event);
    if (event.agentId !== undefined) return;
    switch (event.type) {
      case "system.notification":
        if (event.data.kind.type === "new_inbox_message") this.#mark(event.data.kind.entryId, "announced");
        break;
      case "tool.execution_start": {
        const entryId = event.data.toolName === READ_INBOX ? entryIdIn(event.data.arguments) : undefined;
        if (entryId !== undefined) this.#reading.set(event.data.toolCallId, entryId);
        break;
      }
      case "tool.execution_complete": {
        const entryId = this.#reading.get(event.data.toolCallId);
        this.#reading.delete(event.data.toolCallId);
        if (entryId !== undefined && event.data.success) this.#mark(entryId, "read");
        break;
      }
      default:
    }
  }

  #take({ data, timestamp, agentId }: EventOf<"troupe.inbox_entry">): void {
    if (this.#entries.has(data.entryId)) return;
    this.#entries.set(data.entryId, { ...data, sentAt: timestamp, agentId, state: "due" });
  }

  #mark(entryId: string, state: "announced" | "read"): void {
    const entry = this.#entries.get(entryId);
    if (entry && entry.state !== "read") this.#entries.set(entryId, { ...entry, state });
  }
}

/**
 * Returns the notification of an entry: its id and one line. The sender's text is escaped so that it cannot pass for
 * ours.
 */
export function entryNotice({ entryId, senderName, senderType, summary }: LoggedInboxEntry): SystemNotice {
  const sentence =
    `Inbox entry "${entryId}" from the ${quotedLine(senderType)} "${quotedLine(senderName)}": "${quotedLine(summary)}" ` +
    `If that helps with your task, read it: read_inbox with entry_id "${entryId}". Else ignore it.`;
  return {
    content: wrapInTag("system_notification", {}, sentence),
    kind: { type: "new_inbox_message", entryId, senderName, senderType, summary },
  };
}

function entryIdIn(args: unknown): string | undefined {
  const id = typeof args === "object" && args !== null && "entry_id" in args ? args.entry_id : undefined;
  return typeof id === "string" ? id.trim() : undefined;
}
