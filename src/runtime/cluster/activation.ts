/**
 * Runs one piece of work on a session, as a function of its log: an answered message is not sent again, an interrupted
 * one is continued or reported, and everything else is answered. So an activation may run any number of times, on any
 * worker.
 */

import type { Queries } from "../../engine/lease.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import { cutOff } from "../../session/cut-off.ts";
import type { Outcome, Session } from "../../session/session.ts";
import type { Store } from "../../store/store.ts";
import type { Runtime } from "../runtime.ts";
import type { SessionRequest } from "../session-request.ts";
import continuation from "./continuation.md";
import { noteEnd, noteStart, type WorkOutcome, type WorkRow } from "./work.ts";

export interface ActivationParts {
  readonly queries: Queries;
  readonly runtime: Runtime;
  readonly store: Store;
  readonly worker: string;
  /** Prepares the working folder and returns the request for the session. */
  prepare(work: WorkRow): Promise<SessionRequest>;
  /** Called after the session is closed. */
  finished?(work: WorkRow): Promise<void>;
}

export async function activate(work: WorkRow, parts: ActivationParts): Promise<WorkOutcome> {
  const { queries, store, worker } = parts;
  if (work.outcome !== null) return work.outcome;
  await noteStart(queries, work.id, worker);
  const known = (await store.revision(work.sessionId)) === undefined ? "new" : await stateIn(store, work);
  const outcome = await outcomeOf(known, work, parts);
  await parts.finished?.(work);
  await noteEnd(queries, work.id, outcome);
  return outcome;
}

/** Lets calls that were running when a worker was lost end as interrupted, and does nothing else. */
export async function endCalls(work: WorkRow, { store, runtime, prepare }: ActivationParts): Promise<void> {
  if ((await store.revision(work.sessionId)) === undefined) return;
  const session = await runtime.resumeSession(work.sessionId, await prepare(work));
  await session.close();
}

/** State of the work's message in the log. */
type Known = "new" | "unsent" | "interrupted" | { readonly answer: string };

async function stateIn(store: Store, work: WorkRow): Promise<Known> {
  const { events } = await store.read(work.sessionId);
  const main = events.filter(({ agentId }) => agentId === undefined);
  const from = main.findIndex((event) => event.type === "user.message" && event.data.source === sourceOf(work));
  if (from === -1) return "unsent";
  const since = main.slice(from);
  if (cutOff(since) !== undefined || since.some(isInterruption))
    return answerIn(afterInterruption(since)) ?? "interrupted";
  return answerIn(since) ?? "interrupted";
}

const isInterruption = (event: SessionEvent): boolean =>
  event.type === "session.error" && event.data.errorType === "interrupted";

function afterInterruption(events: readonly SessionEvent[]): readonly SessionEvent[] {
  return events.slice(events.findLastIndex(isInterruption) + 1);
}

function answerIn(events: readonly SessionEvent[]): { answer: string } | undefined {
  if (cutOff(events) !== undefined) return undefined;
  const last = events.findLast((event) => event.type === "assistant.message");
  return last?.type === "assistant.message" && (last.data.toolRequests ?? []).length === 0
    ? { answer: last.data.content }
    : undefined;
}

const sourceOf = ({ id }: WorkRow): string => `work-${id}`;

async function outcomeOf(known: Known, work: WorkRow, parts: ActivationParts): Promise<WorkOutcome> {
  if (typeof known === "object") return { kind: "done", answer: known.answer };
  if (known === "interrupted" && work.onLoss === "stop") return { kind: "lost" };
  const request = await parts.prepare(work);
  const session = await open(known, work, request, parts);
  try {
    const prompt = known === "interrupted" ? continuation.trim() : work.request.prompt;
    return toWorkOutcome(await session.sendAndWait({ prompt, source: sourceOf(work) }));
  } finally {
    await session.close();
  }
}

function open(known: Known, work: WorkRow, request: SessionRequest, { runtime }: ActivationParts): Promise<Session> {
  return known === "new"
    ? runtime.createSession({ ...request, sessionId: work.sessionId })
    : runtime.resumeSession(work.sessionId, request);
}

/** Throws for failures of the database: the activation runs again. */
function toWorkOutcome(outcome: Outcome): WorkOutcome {
  switch (outcome.kind) {
    case "done":
      return { kind: "done", answer: outcome.answer };
    case "failed":
      if (outcome.error instanceof TroupeError && outcome.error.kind === "storage") throw outcome.error;
      return { kind: "failed", message: outcome.error.message };
    default:
      return { kind: outcome.kind, message: "message" in outcome ? String(outcome.message) : outcome.kind };
  }
}
