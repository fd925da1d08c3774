import type { Stamp } from "../lib/stamp.ts";
import type { PendingTurn } from "../loop/run.ts";
import { INTERRUPTED } from "../loop/run-calls.ts";
import type { Emit, SessionEvent } from "../protocol/event.ts";
import type { Damage } from "../store/damage.ts";
import type { Conversation } from "./conversation.ts";
import { cutOff, sayCutOff } from "./cut-off.ts";
import type { EventLog } from "./event-log.ts";
import type { Broker } from "./requests/broker.ts";
import { type CurrentFolder, pendingWork } from "./requests/pending-work.ts";

/**
 * Recovers a log that another process left behind, so that the next answer can build on it.
 * - Reports damage once.
 * - Answers every open call, closes an open turn, and gives a message in progress an outcome.
 * - Runs nothing again. Can be interrupted and repeated with the same result.
 *
 * With `pending`, calls that wait for a client stay open and a message in progress is answered: returns the turn to
 * resume.
 */
export async function recover(parts: {
  conversation: Conversation;
  /** `all`: all events of the log. `visible`: the visible ones, without those that a rewind has hidden. */
  events: { readonly all: readonly SessionEvent[]; readonly visible: readonly SessionEvent[] };
  damage: readonly Damage[];
  log: Pick<EventLog, "emit">;
  pending?: (CurrentFolder & { readonly broker: Broker }) | undefined;
}): Promise<PendingTurn | undefined> {
  const { conversation, events, log, pending } = parts;
  const emit: Emit = (type, data) => log.emit(undefined, type, data);
  const damage = unreported(parts.damage, events.all);
  if (damage.length > 0) await emit("troupe.log_damage", { damage });
  const left = pending && pendingWork(events.visible, conversation, pending);
  await cancelPermissions(events.visible, log, new Set(left?.requests.map(({ requestId }) => requestId)));
  if (!left) {
    await closeOpen(conversation, emit);
    const cut = cutOff(events.visible);
    if (cut && pending) return { turnId: cut.turnId ?? "", content: "", calls: [], isCutOff: true };
    if (cut) await sayCutOff(emit);
    return undefined;
  }
  const waiting = new Set(left.turn.calls.map(({ call }) => call.toolCallId));
  await closeOpenCalls(conversation, emit, (toolCallId) => !waiting.has(toolCallId));
  pending.broker.adopt(left.requests);
  return left.turn;
}

/** Ends permission requests that can no longer be answered, because clients would show them as open. */
async function cancelPermissions(
  events: readonly SessionEvent[],
  log: Pick<EventLog, "emit">,
  waiting: ReadonlySet<string>,
): Promise<void> {
  const open = new Map<string, string | undefined>();
  for (const event of events) {
    if (event.type === "permission.requested") open.set(event.data.requestId, event.agentId);
    else if (event.type === "permission.completed") open.delete(event.data.requestId);
  }
  const result = { kind: "cancelled", reason: "The process ended before it was answered." } as const;
  for (const [requestId, agentId] of open) {
    if (!waiting.has(requestId)) await log.emit(agentId, "permission.completed", { requestId, result });
  }
}

/** Repairs the log before the session ends. Retries for about a second in case a full disk gets room again. */
export async function repairAtEnd(log: { repair(): Promise<void> }, stamp: Stamp): Promise<void> {
  for (const pauseMs of [50, 150, 300, 500]) {
    const isRepaired = await log.repair().then(
      () => true,
      () => false,
    );
    if (isRepaired) return;
    await stamp.sleep(pauseMs);
  }
  await log.repair();
}

/** Gives every open call a result and ends an open turn. */
export async function closeOpen(conversation: Conversation, emit: Emit): Promise<void> {
  await closeOpenCalls(conversation, emit);
  const { openTurn: turnId } = conversation;
  if (turnId !== undefined) await emit("assistant.turn_end", { turnId });
}

/**
 * Gives open calls an error result. Also runs before each message is accepted, because providers reject a history with
 * an unanswered call.
 */
async function closeOpenCalls(
  conversation: Conversation,
  emit: Emit,
  isMeant: (toolCallId: string) => boolean = () => true,
): Promise<void> {
  for (const { call, started } of conversation.openCalls) {
    const { toolCallId, name: toolName } = call;
    if (!isMeant(toolCallId)) continue;
    // Every end needs a start, even if the process ended between the reply and the first tool.
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
