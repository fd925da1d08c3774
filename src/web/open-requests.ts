/**
 * Requests that no log has: forms, and those of sessions that are parked until they are answered. Whoever begins to watch a
 * session while one is open is told of it.
 */
import type { SessionEvent } from "../protocol/event.ts";

const ASKED = /\.(?:requested|oauth_required)$/;
const DONE = /\.(?:completed|oauth_completed)$/;

export class OpenRequests {
  /** Texts of events, by session and request. */
  readonly #open = new Map<string, Map<string, string>>();

  onEvent(sessionId: string, event: SessionEvent): void {
    const id = requestOf(event);
    if (event.ephemeral !== true || id === undefined) return;
    const open = this.#open.get(sessionId);
    if (ASKED.test(event.type)) this.#open.set(sessionId, (open ?? new Map()).set(id, JSON.stringify(event)));
    else if (DONE.test(event.type) && open?.delete(id) && open.size === 0) this.#open.delete(sessionId);
  }

  /** Takes all requests of a session that are open now. Returns events for those who know of the ones before. */
  replace(sessionId: string, asked: readonly SessionEvent[]): readonly SessionEvent[] {
    const before = this.#open.get(sessionId);
    const now = new Map(asked.map((event) => [requestOf(event) ?? event.id, event]));
    const added = [...now].filter(([id]) => !before?.has(id)).map(([, event]) => event);
    const ended = [...(before?.keys() ?? [])].filter((id) => !now.has(id)).map(endOf);
    for (const event of [...added, ...ended]) this.onEvent(sessionId, event);
    return [...added, ...ended];
  }

  of(sessionId: string): readonly string[] {
    return [...(this.#open.get(sessionId)?.values() ?? [])];
  }

  forget(sessionId: string): void {
    this.#open.delete(sessionId);
  }
}

const requestOf = ({ data }: SessionEvent): string | undefined =>
  "requestId" in data && typeof data.requestId === "string" ? data.requestId : undefined;

/** Returns an event that closes a request of any kind in views. */
function endOf(requestId: string): SessionEvent {
  const event = {
    id: crypto.randomUUID(),
    timestamp: new Date().toISOString(),
    parentId: null,
    ephemeral: true,
  } as const;
  return { ...event, type: "user_input.completed", data: { requestId } };
}
