/**
 * Requests to a person that are announced by events which are not stored: questions, forms, plans, sign-ins. They are
 * kept while they are open, for clients that join later.
 */
import type { SessionEvent } from "../../protocol/event.ts";

const MAX_OPEN = 1_000;
const ASKING = /^(?:user_input|elicitation|exit_plan_mode|session_limits_exhausted)\.requested$|^mcp\.oauth_required$/;
const ANSWERED =
  /^(?:user_input|elicitation|exit_plan_mode|session_limits_exhausted)\.completed$|^mcp\.oauth_completed$/;

export class OpenRequestEvents {
  readonly #events = new Map<string, SessionEvent>();

  /** The events that announced what is open now, oldest first. */
  get events(): readonly SessionEvent[] {
    return [...this.#events.values()];
  }

  follow(event: SessionEvent): void {
    const { requestId } = event.data as { readonly requestId?: unknown };
    if (typeof requestId !== "string") return;
    if (ANSWERED.test(event.type)) this.#events.delete(requestId);
    else if (ASKING.test(event.type) && this.#events.size < MAX_OPEN) this.#events.set(requestId, event);
  }

  clear(): void {
    this.#events.clear();
  }
}
