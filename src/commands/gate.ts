/** What some commands ask for: a look at the work before the agent stops. */
import type { SessionEvent } from "../protocol/event.ts";

/**
 * Asked each time the agent would stop by itself, with the events since the message that started its work. Returns what
 * the agent is told instead, or undefined when it may stop. It gives up by itself after a few times.
 */
export type StopGate = (events: readonly SessionEvent[]) => Promise<string | undefined>;
