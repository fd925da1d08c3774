/**
 * Lets people answer a session that runs on a worker. Its requests become rows, and the first response in a row counts. A
 * session in which everything waits, for a response or for agents on other workers, is parked after a while: it is closed,
 * its slot is free, and the answer or the end of an agent starts a new activation.
 */

import { redactEventData } from "../../lib/redact/redact-event.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import { PermissionResult } from "../../protocol/request-events.ts";
import { waitsForLater } from "../../session/requests/pending-requests.ts";
import { type AnyAnswer, type AnyRequest, eventsOf, type RequestKind } from "../../session/requests/requests.ts";
import type { Session } from "../../session/session.ts";
import type { Database } from "../../store/postgres/database.ts";
import { changes, topics } from "../../store/postgres/notifications.ts";
import { addRequest, answerTo } from "./requests.ts";

export interface ParkingOptions {
  readonly database: Database;
  readonly workId: string;
  /** Kinds of requests that somebody answers. */
  readonly kinds: readonly RequestKind[];
  /** Time without an answer after which the session is parked. */
  readonly parkMs: number;
  /** Called, perhaps several times, when everything in the session has waited for `parkMs`. */
  onPark(): void;
}

/** Poll interval at a session that waits but cannot be parked yet. */
const LOOK_MS = 1_000;
const SHORTEST_LOOK_MS = 50;

export interface AttachedRows {
  /** Whether everything in the session waits, for a response or for agents on other workers. */
  canPark(): boolean;
  detach(): void;
}

/** Attaches the rows to the session as somebody who answers. */
export function attachRows(session: Session, options: ParkingOptions): AttachedRows {
  const { database, workId, kinds } = options;
  const running = new Set<string>();
  /** Calls that ask a question, by the id of the request. */
  const questions = new Map<string, string>();
  let isResting = false;
  const follow = (event: SessionEvent): void => {
    if (event.agentId !== undefined) return;
    if (event.type === "assistant.idle") isResting = true;
    if (event.type === "assistant.turn_start" || event.type === "user.message") isResting = false;
    if (event.type === "tool.execution_start") running.add(event.data.toolCallId);
    if (event.type === "tool.execution_complete") running.delete(event.data.toolCallId);
    if (event.type === "troupe.question") questions.set(event.data.requestId, event.data.toolCallId);
  };
  session.events.forEach(follow);
  const unsubscribe = session.subscribe(follow);
  const canPark = (): boolean => {
    const pending = session.requests.pending();
    const { tasks } = session.agents;
    const waiting = new Set<string | undefined>(tasks?.detachable.calls);
    for (const request of pending) waiting.add(callOf(request) ?? questions.get(request.requestId));
    if (tasks?.isBusyHere || !pending.every(({ kind }) => waitsForLater(kind))) return false;
    if (running.size > 0 || pending.length > 0) return [...running].every((call) => waiting.has(call));
    // The main agent has answered and waits for agents in the background.
    return tasks?.isBusy === true && (isResting || !session.queue.isWorking);
  };
  const stopLooking = parkLater(canPark, options);
  const detach = session.requests.attach({
    kinds,
    async handle(request, signal): Promise<AnyAnswer | undefined> {
      await addRequest(database, session.id, redactRequest(session, request), workId);
      const since = performance.now();
      const how = { signal, pollMs: Math.min(options.parkMs, LOOK_MS) };
      for await (const _ of changes(database.notifications, [topics.session(session.id)], how)) {
        const answer = await answerTo(database, session.id, request.requestId);
        if (answer) return usable(request, answer);
        if (performance.now() - since >= options.parkMs && canPark()) options.onPark();
      }
      return undefined;
    },
  });
  return {
    canPark,
    detach() {
      stopLooking();
      unsubscribe();
      detach();
    },
  };
}

/** Parks a session that has waited long enough, for agents on other workers too. */
function parkLater(canPark: () => boolean, { parkMs, onPark }: ParkingOptions): () => void {
  let since: number | undefined;
  const look = (): void => {
    since = canPark() ? (since ?? performance.now()) : undefined;
    if (since !== undefined && performance.now() - since >= parkMs) onPark();
  };
  const timer = setInterval(look, Math.min(Math.max(parkMs, SHORTEST_LOOK_MS), LOOK_MS)).unref();
  return () => clearInterval(timer);
}

/**
 * Returns an answer in the form in which this worker may use it. Roles that insert rows choose the contents: an answer
 * that is not a decision denies the call, and one that would change the settings of this worker applies to the call only.
 */
function usable({ kind }: AnyRequest, answer: AnyAnswer): AnyAnswer {
  if (kind !== "permission") return answer;
  const { data } = PermissionResult.safeParse(answer);
  if (!data) return { kind: "denied-interactively-by-user", feedback: "The stored response is not a decision." };
  return data.kind === "approved-for-location" ? { kind: "approved" } : data;
}

/** Rows have what the log has: no secrets. */
function redactRequest(session: Session, request: AnyRequest): AnyRequest {
  const { redactor } = session.record;
  if (!redactor) return request;
  return redactEventData(redactor, eventsOf(request.kind)[0], request) as AnyRequest;
}

/** Returns the call that waits for the request. */
function callOf(request: AnyRequest): string | undefined {
  if (request.kind === "permission") return request.permissionRequest.toolCallId;
  return "toolCallId" in request ? request.toolCallId : undefined;
}
