/**
 * Lets people answer a session that runs on a worker. Its requests become rows, and the first answer in a row counts. A
 * session in which everything waits for an answer is parked after a while: it is closed, its slot is free, and the
 * answer starts a new activation.
 */

import { redactEventData } from "../../lib/redact/redact-event.ts";
import type { SessionEvent } from "../../protocol/event.ts";
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
  /** Called once, when everything in the session waits for an answer. */
  onPark(): void;
}

/** Time between two looks at a session that waits but cannot be parked yet. */
const LOOK_MS = 1_000;

/** Attaches the rows to the session as somebody who answers. Returns a function that detaches them. */
export function attachRows(session: Session, options: ParkingOptions): () => void {
  const { database, workId, kinds } = options;
  const running = new Set<string>();
  /** Calls that ask a question, by the id of the request. */
  const questions = new Map<string, string>();
  const follow = (event: SessionEvent): void => {
    if (event.agentId !== undefined) return;
    if (event.type === "tool.execution_start") running.add(event.data.toolCallId);
    if (event.type === "tool.execution_complete") running.delete(event.data.toolCallId);
    if (event.type === "troupe.question") questions.set(event.data.requestId, event.data.toolCallId);
  };
  session.events.forEach(follow);
  const unsubscribe = session.subscribe(follow);
  const canPark = (): boolean => {
    const pending = session.requests.pending();
    const waiting = new Set(pending.map((request) => callOf(request) ?? questions.get(request.requestId)));
    const areAllKept = pending.length > 0 && pending.every(({ kind }) => waitsForLater(kind));
    return areAllKept && !session.agents.tasks?.isBusy && [...running].every((call) => waiting.has(call));
  };
  const detach = session.requests.attach({
    kinds,
    async handle(request, signal): Promise<AnyAnswer | undefined> {
      await addRequest(database, session.id, redacted(session, request), workId);
      const since = performance.now();
      const how = { signal, pollMs: Math.min(options.parkMs, LOOK_MS) };
      for await (const _ of changes(database.notifications, [topics.session(session.id)], how)) {
        const answer = await answerTo(database, session.id, request.requestId);
        if (answer) return answer;
        if (performance.now() - since >= options.parkMs && canPark()) options.onPark();
      }
      return undefined;
    },
  });
  return () => {
    unsubscribe();
    detach();
  };
}

/** Rows have what the log has: no secrets. */
function redacted(session: Session, request: AnyRequest): AnyRequest {
  const { redactor } = session.history;
  if (!redactor) return request;
  return redactEventData(redactor, eventsOf(request.kind)[0], request) as AnyRequest;
}

/** Returns the call that waits for the request. */
function callOf(request: AnyRequest): string | undefined {
  if (request.kind === "permission") return request.permissionRequest.toolCallId;
  return "toolCallId" in request ? request.toolCallId : undefined;
}
