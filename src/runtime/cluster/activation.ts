/**
 * Runs one piece of work on a session, as a function of its log: an answered message is not sent again, an interrupted
 * one is continued or reported, one that waits for a person is parked, and everything else is answered. So an activation
 * may run any number of times, on any worker.
 */

import { isClaimed } from "../../engine/dbos-engine.ts";
import type { Claim } from "../../engine/engine.ts";
import { deferred } from "../../lib/deferred.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import type { RequestKind } from "../../session/requests/requests.ts";
import type { Outcome, Session } from "../../session/session.ts";
import type { Database } from "../../store/postgres/database.ts";
import { changes, topics } from "../../store/postgres/notifications.ts";
import { release, takeSession } from "../../store/postgres/postgres.ts";
import type { Store } from "../../store/store.ts";
import type { Runtime } from "../runtime.ts";
import type { SessionRequest } from "../session-request.ts";
import { isWorkTreeOf } from "./checkout.ts";
import { lostClaim, type SessionClaim } from "./claims.ts";
import continuation from "./continuation.md";
import { afterReason } from "./due-work.ts";
import { answerIn, type MessageState, sourceOf, stateOf } from "./message-state.ts";
import { attachRows } from "./parking.ts";
import { endRequests, hasOpenRequest, isAnswered } from "./requests.ts";
import {
  abortReason,
  findWork,
  hasJoined,
  noteAbortOfAgents,
  openWork,
  recordEnd,
  recordSetAside,
  recordStart,
  recordWaiting,
  tenantOf,
  type WorkOutcome,
  type WorkRow,
} from "./work.ts";
import type { WorkspaceKeeper } from "./workspace-keeper.ts";

export interface ActivationParts {
  readonly database: Database;
  readonly runtime: Runtime;
  readonly store: Store;
  readonly worker: string;
  /** The right to work on the session. What is stored of the work is stored while it is valid. */
  readonly claim: SessionClaim;
  /** Aborts when this worker has lost the session and has got it again, for another activation, or gives it up. */
  readonly replaced: AbortSignal;
  /** True when the worker stops, and another one shall continue the session. */
  isStopping(): boolean;
  /** While `work` runs, the session starts no call and gets no result of one. */
  pause(work: () => Promise<void>): Promise<void>;
  /** Time without an answer after which a session that waits for a person is parked. */
  readonly parkMs: number;
  /** Prepares the working folder and the request for the session. */
  prepare(work: WorkRow): Promise<PreparedWork>;
  /** Kinds of requests of this work that people may answer. */
  kinds(work: WorkRow): readonly RequestKind[];
  /** Hands another activation of this work to the engine. */
  submit(work: WorkRow, reason: string): Promise<void>;
}

interface PreparedWork {
  readonly request: SessionRequest;
  /** For the model: what has changed because the session moved to another machine. */
  readonly notice?: string;
  /** Returns the keeper of the working folder, if its files travel. */
  keeperOf(session: Session): WorkspaceKeeper | undefined;
}

/** Returns "waiting" if the work waits for a response. Another activation is submitted with the response. */
export async function activate(work: WorkRow, parts: ActivationParts): Promise<WorkOutcome | "waiting"> {
  const { database, claim } = parts;
  if (work.outcome !== null) return work.outcome;
  const owner = await tenantOf(database, work.sessionId);
  if (owner !== undefined && owner !== work.tenant) {
    throw new TroupeError("usage", `Session ${work.sessionId} belongs to another tenant.`);
  }
  if (await isBehind(work, database)) {
    await recordWaiting(database, work.id, claim);
    // The earlier message may have ended meanwhile.
    if (await isBehind(work, database)) return "waiting";
  }
  for (;;) {
    const losses = await recordStart(database, work.id, parts);
    if (losses === undefined) return endedBy(work, parts);
    if (losses >= MAX_LOSSES) {
      const outcome = await setAside(work, losses, parts);
      // Afterwards: if opening the log is what ends workers, no other one tries.
      await endCalls(work, parts);
      return outcome;
    }
    const outcome = await takenOutcome(work, parts);
    if (outcome !== "waiting") return outcome;
    await recordWaiting(database, work.id, claim);
    // An answer or an end that came meanwhile found no parked work. An answer that arrives later submits an activation.
    const isDue =
      (await isAnswered(database, work.id)) ||
      (await hasJoined(database, work.id)) ||
      (await findWork(database, work.id))?.abortAt;
    if (!isDue) return "waiting";
  }
}

/** Returns the outcome that somebody else has stored. Throws if there is none: then the claim was lost. */
async function endedBy({ id, sessionId }: WorkRow, { database }: EndParts): Promise<WorkOutcome> {
  const outcome = (await findWork(database, id))?.outcome;
  if (outcome) return outcome;
  throw lostClaim(sessionId);
}

/** True if an earlier message of the session waits for a response. */
async function isBehind(work: WorkRow, database: Database): Promise<boolean> {
  for (const { id, waitingAt } of await openWork(database, work.sessionId)) {
    if (id === work.id) return false;
    if (waitingAt !== null) return true;
  }
  return false;
}

type EndParts = Pick<ActivationParts, "database" | "submit"> & { readonly claim?: Claim };
type Ended = Pick<WorkRow, "id" | "sessionId" | "parent">;

/** Ends work with the reason that its workers were lost. `troupe cluster retry` takes it back. */
export async function setAside(work: Ended, losses: number, parts: EndParts): Promise<WorkOutcome> {
  const message = `Suspended: ${losses} workers in a row were lost while they ran this job, the last ones while they ran nothing else.`;
  const outcome: WorkOutcome = { kind: "failed", message };
  await recordSetAside(parts.database, work.id, message);
  await endWork(work, outcome, parts);
  return outcome;
}

/** Lets calls that were running when a worker was lost end as interrupted, and does nothing else. */
async function endCalls(work: WorkRow, { store, runtime, prepare }: ActivationParts): Promise<void> {
  if ((await store.revision(work.sessionId)) === undefined) return;
  const session = await runtime.resumeSession(work.sessionId, (await prepare(work)).request);
  await session.close();
}

/**
 * Stores the outcome and withdraws open requests. Then submits the next message of the session if it waited behind this
 * one, and the work that waits for this one's agent. Agents of work without an answer are ended too. Does nothing if the
 * claim is no longer valid: whoever has it now decides.
 */
export async function endWork(work: Ended, outcome: WorkOutcome, { database, submit, claim }: EndParts): Promise<void> {
  if (outcome.kind !== "done") {
    if (claim && !(await isClaimed(database, claim))) return;
    for (const agent of await noteAbortOfAgents(database, work.id))
      if (agent.waitingAt !== null) await submit(agent, abortReason(agent));
  }
  await endRequests(database, work.id, { claim });
  if (!(await recordEnd(database, work.id, outcome, claim))) return;
  const parent = work.parent === null ? undefined : await findWork(database, work.parent);
  if (parent?.waitingAt != null) await submit(parent, work.id);
  const next = (await openWork(database, work.sessionId)).find(({ waitingAt }) => waitingAt !== null);
  if (next) await submit(next, afterReason(work));
}

/** Work that loses this many workers in a row is set aside: the last of them ran nothing else. */
const MAX_LOSSES = 5;
/** After this many, work runs alone, so that a further loss is its own and not a neighbour's. */
const SUSPECT_LOSSES = 2;

/** Whether the work may be what ends its workers. May be true too early: the losses are counted when it starts. */
export const isSuspect = ({ losses, worker }: WorkRow, workerId: string): boolean =>
  losses + (worker !== null && worker !== workerId ? 1 : 0) >= SUSPECT_LOSSES;

/**
 * Takes the session, then reads its log: what the previous worker wrote until then counts, and it writes nothing more.
 * Returns the outcome of the work, which is stored.
 */
async function takenOutcome(work: WorkRow, parts: ActivationParts): Promise<WorkOutcome | "waiting"> {
  const { database, store, worker, claim } = parts;
  const { sessionId } = work;
  const taken = await takeSession(database, sessionId, { worker, claim });
  claim.taken = taken?.lastSeq ? taken.epoch : undefined;
  const state = taken?.lastSeq ? stateOf((await store.read(sessionId)).events, sourceOf(work)) : "new";
  try {
    const outcome = await outcomeOf(state, work, parts);
    if (outcome !== "waiting") await endWork(work, outcome, parts);
    return outcome;
  } finally {
    // Without an activity the session was not opened, and so not closed.
    if (taken) await release(database, { sessionId, ...taken }).catch(() => undefined);
  }
}

async function outcomeOf(known: MessageState, work: WorkRow, parts: ActivationParts): Promise<WorkOutcome | "waiting"> {
  if (typeof known === "object") return { kind: "done", answer: known.answer };
  const isAborted = (await findWork(parts.database, work.id))?.abortAt != null;
  if (isAborted && known !== "interrupted" && known !== "waits") return ABORTED;
  const isPending =
    !isAborted && (known === "waits" || (known === "interrupted" && (await hasOpenRequest(parts.database, work.id))));
  if (known === "interrupted" && work.onLoss === "stop" && !isPending && !isAborted) return { kind: "lost" };
  const { request, notice, keeperOf } = await parts.prepare(work);
  const session =
    known === "new"
      ? await parts.runtime
          .createSession({ ...request, sessionId: work.sessionId })
          .catch(createdMeanwhile(work, parts))
      : await parts.runtime.resumeSession(work.sessionId, {
          ...request,
          ...(isPending && { resume: { continuesPending: true, isOwnFolder: isWorkTreeOf(work.sessionId) } }),
        });
  let isOver = false;
  const keeper = keeperOf(session);
  const giveUp = async (): Promise<void> => {
    if (parts.isStopping()) await handOver(work, keeper, parts).catch(() => undefined);
    await session.close({ leavesPending: true }).catch(() => undefined);
  };
  parts.replaced.addEventListener("abort", giveUp);
  try {
    if (parts.replaced.aborted) throw lostClaim(work.sessionId);
    isOver = isAborted;
    if (isAborted) return ABORTED;
    const prompt = isPending ? undefined : promptOf(known, work);
    const outcome = await converse(session, work, { ...parts, prompt, notice, keeper });
    if (parts.replaced.aborted) throw lostClaim(work.sessionId);
    isOver = outcome !== "waiting";
    return outcome;
  } finally {
    parts.replaced.removeEventListener("abort", giveUp);
    // Agents on other workers continue if another activation follows.
    await session.close(isOver ? undefined : { leavesPending: true });
  }
}

/**
 * Stores the working folder, then takes the right to write from this session. What happens while it is closed, such as the
 * ends of its calls, is not stored: the next worker continues it as after a loss of this one.
 */
async function handOver(
  { sessionId }: WorkRow,
  keeper: WorkspaceKeeper | undefined,
  { database, worker, claim, pause }: ActivationParts,
): Promise<void> {
  await pause(async () => {
    await keeper?.keepIfPossible();
    const taken = await takeSession(database, sessionId, { worker, claim });
    if (taken) await release(database, { sessionId, ...taken });
  });
}

const ABORTED: WorkOutcome = { kind: "aborted", message: "aborted" };

const promptOf = (known: MessageState, work: WorkRow): string =>
  known === "interrupted" ? continuation.trim() : work.request.prompt;

/** Sends the prompt, or resumes pending calls if there is none. Parks the session when everything in it waits. */
async function converse(
  session: Session,
  work: WorkRow,
  parts: ActivationParts & {
    readonly prompt: string | undefined;
    readonly notice: string | undefined;
    readonly keeper: WorkspaceKeeper | undefined;
  },
): Promise<WorkOutcome | "waiting"> {
  const { database, prompt, notice, keeper, parkMs } = parts;
  let parked = deferred<"waiting">();
  const ended = new AbortController();
  const kinds = parts.kinds(work);
  const onPark = (): void => parked.resolve("waiting");
  const rows = attachRows(session, { database, workId: work.id, kinds, parkMs, onPark });
  const unsubscribe = session.subscribe(({ type }) => type === "assistant.turn_end" && keeper?.soon());
  const aborting = abortWhenAsked(session, work.id, { database, signal: ended.signal });
  try {
    if (notice !== undefined && prompt !== undefined) {
      await session.record.emit("system.notification", { content: notice, kind: { type: "unclassified" } });
    }
    if (prompt !== undefined) await withdrawCopies(session, sourceOf(work));
    const answering =
      prompt === undefined ? resumePending(session) : session.sendAndWait({ prompt, source: sourceOf(work) });
    answering.catch(() => undefined);
    for (let isParked = false; !isParked; ) {
      const outcome = await Promise.race([answering, parked.promise]);
      await keeper?.finish();
      if (outcome !== "waiting") return toWorkOutcome(outcome);
      // Somebody may have answered meanwhile.
      isParked = rows.canPark();
      if (!isParked) parked = deferred();
    }
    const kept = session.requests.pending().map(({ requestId }) => requestId);
    await session.close({ leavesPending: true });
    await endRequests(database, work.id, { except: kept, claim: parts.claim });
    return "waiting";
  } finally {
    ended.abort();
    keeper?.stop();
    unsubscribe();
    rows.detach();
    await aborting;
  }
}

/** Withdraws the message where the previous worker has queued it and was lost before it was answered: it is sent again. */
async function withdrawCopies({ queue }: Session, source: string): Promise<void> {
  for (const copy of queue.waiting.queued) if (copy.source === source) await queue.withdraw(copy.messageId);
}

/** Whether somebody wants to end the work is also looked up, in case a notification is lost. */
const ABORT_POLL_MS = 10_000;

async function abortWhenAsked(
  session: Session,
  workId: string,
  { database, signal }: { readonly database: Database; readonly signal: AbortSignal },
): Promise<void> {
  try {
    for await (const _ of changes(database.notifications, [topics.work(workId)], { signal, pollMs: ABORT_POLL_MS })) {
      if ((await findWork(database, workId))?.abortAt == null) continue;
      session.abort();
      return;
    }
  } catch {
    // The database is unreachable. If this lasts, the job fails.
  }
}

const AGENTS_MS = 600_000;

/** Resumes calls that waited when the session was parked or its worker lost. Returns the outcome of their message. */
async function resumePending(session: Session): Promise<Outcome> {
  let outcome = answerOutcome(session.events);
  const stop = session.subscribe((event) => {
    if (event.agentId === undefined) outcome = outcomeIn(event) ?? outcome;
  });
  session.queue.resume();
  for (const { queue, agents } = session; queue.isWorking || agents.tasks?.isBusy; ) {
    await queue.whenIdle();
    if (!queue.isWorking) await agents.tasks?.waitForAll(AGENTS_MS, queue.closed);
    if (queue.closed.aborted) break;
  }
  stop();
  // Without an outcome the log could not be written: the activation runs again.
  return outcome ?? { kind: "failed", error: new TroupeError("storage", "The message has no outcome.") };
}

/** Returns the outcome of a message that was answered before agents in the background had ended. */
function answerOutcome(events: readonly SessionEvent[]): Outcome | undefined {
  const found = answerIn(events.filter(({ agentId }) => agentId === undefined));
  return found && { kind: "done", ...found };
}

function outcomeIn(event: SessionEvent): Outcome | undefined {
  switch (event.type) {
    case "assistant.message":
      if ((event.data.toolRequests ?? []).length > 0) return undefined;
      return { kind: "done", answer: event.data.content };
    case "session.error":
      if (event.data.errorType === "notification") return undefined;
      return { kind: "failed", error: new Error(event.data.message) };
    case "troupe.limit_reached":
      return { kind: "failed", error: new Error(event.data.message) };
    case "abort":
      return { kind: "aborted" };
    default:
      return undefined;
  }
}

/** An activation that lost its claim in an outage may create the session after this one has looked. This one runs again. */
const createdMeanwhile =
  ({ sessionId }: WorkRow, { store }: ActivationParts) =>
  async (error: unknown): Promise<never> => {
    if ((await store.revision(sessionId)) === undefined) throw error;
    throw new TroupeError("storage", `Session ${sessionId} was created meanwhile.`, { cause: error });
  };

const AGAIN: readonly TroupeError["kind"][] = ["storage", "interrupted"];

/** Throws for failures of the database and for a lost session: the activation runs again while its claim is valid. */
function toWorkOutcome(outcome: Outcome): WorkOutcome {
  switch (outcome.kind) {
    case "done":
      return { kind: "done", answer: outcome.answer };
    case "failed":
      if (outcome.error instanceof TroupeError && AGAIN.includes(outcome.error.kind)) throw outcome.error;
      return { kind: "failed", message: outcome.error.message };
    case "error":
      return { kind: "error", message: outcome.error.message };
    case "limit":
      return { kind: "limit", message: outcome.reached.message };
    default:
      return { kind: outcome.kind, message: outcome.kind };
  }
}
