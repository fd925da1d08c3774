import type { Stamp } from "../lib/stamp.ts";
import type { PendingTurn } from "../loop/run.ts";
import { INTERRUPTED } from "../loop/run-calls.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { Emit, SessionEvent } from "../protocol/event.ts";
import type { Damage } from "../store/damage.ts";
import type { SessionLog } from "../store/store.ts";
import type { Conversation } from "./conversation.ts";
import { cutOff, sayCutOff } from "./cut-off.ts";
import type { EventLog } from "./event-log.ts";
import type { Broker } from "./requests/broker.ts";
import { pendingWork } from "./requests/pending-work.ts";

/** Another process may have it. */
export function requireFree({ sessionId, heldBy }: Pick<SessionLog, "sessionId" | "heldBy">): void {
  if (!heldBy) return;
  const where = heldBy.host === undefined ? "" : ` on ${heldBy.host}`;
  throw new TroupeError("storage", `Session ${sessionId} is in use by process ${heldBy.pid}${where}.`, {
    hint: heldBy.advice ?? "End that process first, or start a new session.",
  });
}

/**
 * Brings a log that another process left behind into a state the next turn can build on: damage is named once, every
 * call without an answer gets one, an open turn is closed, a message that was under way gets an outcome. Nothing is run
 * again. Killed half-way and done again, the result is the same. With `pending`, calls that wait for someone outside stay
 * open, and a message that was under way is answered: returns the turn to go on with.
 */
export async function recover(what: {
  conversation: Conversation;
  /** All that was ever said, and as the log reads now. */
  events: { readonly said: readonly SessionEvent[]; readonly view: readonly SessionEvent[] };
  damage: readonly Damage[];
  log: Pick<EventLog, "emit">;
  pending?: { readonly broker: Broker; readonly cwd: string } | undefined;
}): Promise<PendingTurn | undefined> {
  const { conversation, events, log, pending } = what;
  const emit: Emit = (type, data) => log.emit(undefined, type, data);
  const damage = unreported(what.damage, events.said);
  if (damage.length > 0) await emit("troupe.log_damage", { damage });
  const left = pending && pendingWork(events.view, conversation, pending.cwd);
  await cancelPermissions(events.view, log, new Set(left?.requests.map(({ requestId }) => requestId)));
  if (!left) {
    await closeOpen(conversation, emit);
    const cut = cutOff(events.view);
    if (cut && pending) return { turnId: cut.turnId ?? "", content: "", calls: [], isCutOff: true };
    if (cut) await sayCutOff(emit);
    return undefined;
  }
  const waiting = new Set(left.turn.calls.map(({ call }) => call.toolCallId));
  await closeOpenCalls(conversation, emit, (toolCallId) => !waiting.has(toolCallId));
  pending.broker.adopt(left.requests);
  return left.turn;
}

/** Ends the permission requests that nobody can answer any more: clients would show them as open. */
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

/** Makes the log whole before the session ends. A disk that is full for a moment gets a second to have room again. */
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

/** Every call has an answer and every turn an end. */
export async function closeOpen(conversation: Conversation, emit: Emit): Promise<void> {
  await closeOpenCalls(conversation, emit);
  const { openTurn: turnId } = conversation;
  if (turnId !== undefined) await emit("assistant.turn_end", { turnId });
}

/** A provider rejects a history with an unanswered call, so this also runs before each message is taken up. */
export async function closeOpenCalls(
  conversation: Conversation,
  emit: Emit,
  isMeant: (toolCallId: string) => boolean = () => true,
): Promise<void> {
  for (const { call, started } of conversation.openCalls) {
    const { toolCallId, name: toolName } = call;
    if (!isMeant(toolCallId)) continue;
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
