import { INTERRUPTED } from "../loop/run-calls.ts";
import type { Emit, SessionEvent } from "../protocol/event.ts";
import type { Damage } from "../store/store.ts";
import type { Conversation } from "./conversation.ts";

/**
 * Brings a log that another process left behind into a state the next turn can build on: damage is named once, every
 * call without an answer gets one, an open turn is closed. Nothing is run again. Killed half-way and done again, the
 * result is the same.
 */
export async function recover(what: {
  conversation: Conversation;
  events: readonly SessionEvent[];
  damage: readonly Damage[];
  emit: Emit;
}): Promise<void> {
  const { conversation, events, emit } = what;
  const damage = unreported(what.damage, events);
  if (damage.length > 0) await emit("troupe.log_damage", { damage });
  await closeOpen(conversation, emit);
}

/** Every call has an answer and every turn an end. */
export async function closeOpen(conversation: Conversation, emit: Emit): Promise<void> {
  await closeOpenCalls(conversation, emit);
  const { openTurn: turnId } = conversation;
  if (turnId !== undefined) await emit("assistant.turn_end", { turnId });
}

/** A provider rejects a history with an unanswered call, so this also runs before each message is taken up. */
export async function closeOpenCalls(conversation: Conversation, emit: Emit): Promise<void> {
  for (const { call, started } of conversation.openCalls) {
    const { toolCallId, name: toolName } = call;
    // Every end has its start, also where the process died between the reply and the first tool.
    if (!started) void emit("tool.execution_start", { toolCallId, toolName, arguments: call.arguments });
    await emit("tool.execution_complete", {
      toolCallId,
      success: false,
      error: { message: INTERRUPTED, code: "interrupted" },
    });
  }
}

function unreported(damage: readonly Damage[], events: readonly SessionEvent[]): Damage[] {
  const known = new Set<string>();
  for (const event of events) {
    if (event.type === "troupe.log_damage")
      for (const { kind, offset } of event.data.damage) known.add(`${kind}@${offset}`);
  }
  return damage.filter(({ kind, offset }) => !known.has(`${kind}@${offset}`));
}
