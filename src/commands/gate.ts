import type { SessionEvent } from "../protocol/event.ts";

/**
 * Runs each time the agent would stop, with the events of its calls since the message that started its work. Returns
 * the next message for the agent, or undefined if it may stop. Each gate limits how often it sends a message.
 */
export type StopGate = (events: readonly SessionEvent[]) => Promise<string | undefined>;
