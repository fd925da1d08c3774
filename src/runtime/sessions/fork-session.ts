import { join } from "node:path";
import { defined } from "../../lib/defined.ts";
import type { Stamp } from "../../lib/stamp.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import { EventLog } from "../../session/event-log.ts";
import { type ForkFacts, forkedEvents, forkedFiles, forkFacts } from "../../session/rewind/fork.ts";
import type { Session } from "../../session/session.ts";
import type { SessionSummary, Store } from "../../store/store.ts";
import { summaryOfEvents } from "../../store/summary.ts";
import { requireFreeName } from "./select-session.ts";

export interface ForkRequest {
  readonly sessionId: string;
  /** The first event that is not copied (default: copies all). */
  readonly toEventId?: string;
  readonly name?: string;
  /** The session, if it is open in this process. It may be working. */
  readonly session?: Session;
}

export interface Forked {
  readonly sessionId: string;
  readonly name?: string;
}

/**
 * Creates a session with the conversation of another, up to an event. Both logs mention it; the other session is
 * otherwise unchanged.
 */
export async function forkSession(
  request: ForkRequest,
  { stateRoot, store, stamp }: { stateRoot: string; store: Store; stamp: Stamp },
): Promise<Forked> {
  const { sessionId, toEventId, session } = request;
  if (request.name !== undefined) await requireFreeName(store, request.name);
  await session?.record.log.flush();
  const facts = await forkFacts((what) => store.scan(sessionId, what), toEventId);
  const forkId = stamp.id("session");
  const now = new Date(stamp.now()).toISOString();
  const source = summaryOfEvents(await wholeHeads(request, store, facts), sessionId, now);
  const name = request.name ?? (await forkName(store, source));
  const own = facts.heads.filter(({ type }) => type !== "troupe.session_named");
  const newFork = { sessionId: forkId, name, now, newId: () => stamp.id("event") };
  const message = `Forked from ${called(source)}.`;
  await store.fork(sessionId, {
    sessionId: forkId,
    events: forkedEvents({ ...newFork, message }, facts),
    summary: {
      ...summaryOfEvents(own, forkId, now),
      createdAt: now,
      turns: facts.turns,
      ...defined({ name }),
    },
    copies: await forkedFiles(join(stateRoot, "session-state", sessionId), facts),
  });
  await tellSource(`Forked this session into ${called({ sessionId: forkId, name })}.`, { request, store, stamp });
  return { sessionId: forkId, ...defined({ name }) };
}

/** Returns the head events of the whole source, because its name may be set after the event where the fork ends. */
async function wholeHeads({ sessionId, toEventId }: ForkRequest, store: Store, facts: ForkFacts) {
  return toEventId === undefined ? facts.heads : (await forkFacts((what) => store.scan(sessionId, what))).heads;
}

/** Notes the fork in the source's log, unless another process holds it. */
async function tellSource(
  message: string,
  { request, store, stamp }: { request: ForkRequest; store: Store; stamp: Stamp },
): Promise<void> {
  const data = { infoType: "fork", message };
  if (request.session) return request.session.record.emit("session.info", data);
  const log = await store.open(request.sessionId);
  try {
    if (log.heldBy) return;
    const noFold = (_: SessionEvent): void => undefined;
    const events = new EventLog({ store: log, stamp, fold: noFold, onListenerDefect: noFold as () => void });
    await events.emit(undefined, "session.info", data);
  } finally {
    await log.close();
  }
}

const MAX_FORKS = 1000;

async function forkName(store: Store, { name, title }: SessionSummary): Promise<string | undefined> {
  const base = name ?? title;
  if (base === undefined) return undefined;
  const taken = new Set((await store.list()).map((summary) => summary.name?.toLowerCase()));
  for (let number = 1; number <= MAX_FORKS; number++) {
    const wanted = number === 1 ? `${base} (fork)` : `${base} (fork ${number})`;
    if (!taken.has(wanted.toLowerCase())) return wanted;
  }
  throw new TroupeError("usage", `There are too many forks named "${base} (fork)".`, { hint: "Give this one a name." });
}

const called = ({
  sessionId,
  name,
  title,
}: Pick<SessionSummary, "sessionId"> & { name?: string | undefined; title?: string }) =>
  name === undefined && title === undefined ? sessionId : `"${name ?? title}" (${sessionId})`;
