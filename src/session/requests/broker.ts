/**
 * One place for everything that waits for someone outside: a permission, an answer, a form, a tool that a client runs,
 * a plan to approve, a token. Whoever can answer attaches for the kinds it knows; a request is announced, the first answer wins,
 * and its end is announced too, whatever it is. With nobody there a request ends at once, and with everybody gone soon
 * after: nothing waits for ever, and nothing stays pending when the broker closes.
 */
import type { SessionMode } from "../../commands/command.ts";
import { type Deferred, deferred } from "../../lib/deferred.ts";
import type { Redactor } from "../../lib/redact/redact.ts";
import { redactEventData } from "../../lib/redact/redact-event.ts";
import type { Stamp } from "../../lib/stamp.ts";
import type { Emit, EventData } from "../../protocol/event.ts";
import type { EventLog } from "../event-log.ts";
import { isSameRequest, type LeftRequest, toolCallOf, waitsForLater } from "./pending-requests.ts";
import {
  type Answers,
  type AnyAnswer,
  type AnyOutcome,
  type AnyRequest,
  announce,
  completedData,
  eventsOf,
  type RequestData,
  type RequestKind,
} from "./requests.ts";

/** What came of a request. "unavailable": nobody answered; "cancelled": the one who asked gave up, or the session ended. */
export type Outcome<K extends RequestKind> = Answers[K] | "unavailable" | "cancelled";

/** What becomes of an answer: only the first to a request that is still open counts. */
export type Acceptance = "accepted" | "already answered" | "expired" | "unknown";

export interface Answerer {
  readonly kinds: readonly RequestKind[];
  /**
   * Asked for every request of these kinds; undefined means that it cannot tell. The signal aborts when the request has
   * ended without it. One without this method watches the events and calls `answer`.
   */
  handle?(request: AnyRequest, signal: AbortSignal): Promise<AnyAnswer | undefined>;
}

export interface BrokerOptions {
  readonly emit: Emit;
  readonly stamp: Stamp;
  /** How long a request outlives the last one who could answer it. */
  readonly graceMs?: number;
  /** Tells clients of a request again that is in the log already. */
  readonly remind?: (data: EventData<"permission.requested">) => void;
  /** The mode of the session, told with each permission request. */
  readonly agentMode?: () => SessionMode;
  /** A request as the log would have it. */
  readonly redact?: (data: object) => object;
}

export interface RequestOptions {
  /** Whose request it is, when not the main agent's: it is told as that one's. */
  readonly emit?: Emit;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** The call that waits for it, where the request itself does not say. */
  readonly toolCallId?: string;
}

const GRACE_MS = 30_000;
const TIMEOUT_MS = 24 * 60 * 60 * 1000;
const MAX_PENDING = 1000;
const MAX_REMEMBERED = 1000;

interface Entry {
  request: AnyRequest;
  /** The call of the main agent that waits for it. */
  readonly toolCallId: string | undefined;
  readonly end: Deferred<AnyOutcome>;
  /** Set when it has ended. */
  outcome?: AnyOutcome;
  /** Stops timers and handlers once the request has ended. */
  readonly ended: AbortController;
  readonly declined: Set<Answerer>;
  isAnnounced: boolean;
  /** Set while nobody is there. */
  grace: AbortController | undefined;
}

export class Broker {
  readonly #options: BrokerOptions;
  readonly #answerers = new Set<Answerer>();
  readonly #pending = new Map<string, Entry>();
  readonly #running = new Set<Promise<unknown>>();
  /** How the latest requests ended, for those who answer too late. */
  readonly #past = new Map<string, Acceptance>();
  /** Asked by an earlier life of the session, and not asked again so far. */
  readonly #adopted = new Map<Entry, LeftRequest>();
  readonly #left = new Set<string>();
  #isClosed = false;
  #closedFor: string | undefined;

  readonly #reminded = new Set<string>();

  constructor(options: BrokerOptions) {
    this.#options = options;
  }

  /** Resolves once the end is announced, as durably as its event demands. Rejects only when announcing fails. */
  request<K extends RequestKind>(kind: K, data: RequestData<K>, options: RequestOptions = {}): Promise<Outcome<K>> {
    if (options.signal?.aborted) return Promise.resolve("cancelled");
    const isFutile = this.#isClosed || this.#pending.size >= MAX_PENDING || !this.canAnswer(kind);
    const adopted = this.#takeAdopted(kind, data, options);
    if (isFutile && !adopted) return Promise.resolve("unavailable");
    const running = adopted ? this.#goOn(adopted, data, options) : this.#run(kind, data, options);
    const settled = running.catch(() => undefined).finally(() => this.#running.delete(settled));
    this.#running.add(settled);
    // What was answered has been checked against the kind in `answer`.
    return running as Promise<Outcome<K>>;
  }

  /** For what is decided without asking, and told as if it had been asked. */
  newRequestId(): string {
    return this.#options.stamp.id("request");
  }

  /** The current mode of the session, as permission requests name it. */
  get mode(): { readonly agentMode?: SessionMode } {
    const { agentMode } = this.#options;
    return agentMode ? { agentMode: agentMode() } : {};
  }

  /** Whether anyone is there who could answer. */
  canAnswer(kind: RequestKind): boolean {
    return this.#presentFor(kind).length > 0;
  }

  answer<K extends RequestKind>(kind: K, requestId: string, answer: Answers[K]): Acceptance {
    const entry = this.#pending.get(requestId);
    if (entry && entry.request.kind !== kind) return "unknown";
    if (entry && this.#end(entry, answer as AnyAnswer)) return "accepted";
    return this.#past.get(requestId) ?? "unknown";
  }

  /** Open requests, the oldest first: for a client that comes later. */
  pending(kind?: RequestKind): readonly AnyRequest[] {
    const all = [...this.#pending.values()].map(({ request }) => request);
    return kind === undefined ? all : all.filter((request) => request.kind === kind);
  }

  /** From now on this one may answer, also what is pending already. Returns how to leave. */
  attach(answerer: Answerer): () => void {
    this.#answerers.add(answerer);
    for (const entry of this.#pending.values()) {
      if (!answerer.kinds.includes(entry.request.kind)) continue;
      entry.grace?.abort();
      entry.grace = undefined;
      entry.declined.delete(answerer);
      this.#hand(entry, answerer);
    }
    return () => {
      if (!this.#answerers.delete(answerer)) return;
      for (const entry of this.#pending.values()) this.#checkHope(entry);
    };
  }

  /** What an earlier life of the session asked waits again under its old id, and can be answered from now on. */
  adopt(requests: readonly LeftRequest[]): void {
    for (const left of requests) {
      const request = { ...left.data, kind: left.kind, requestId: left.requestId } as AnyRequest;
      const entry = newEntry(request, left.toolCallId);
      this.#adopted.set(entry, left);
      if (left.answer) entry.end.resolve(left.answer);
      else this.#pending.set(left.requestId, entry);
    }
  }

  /**
   * A no that was given to what an earlier life of the session asked for this call, if there was one: it holds, whatever is
   * allowed by now. Where nobody is going to be asked again (`asks` is false), what was asked before is over.
   */
  refusedBefore(
    data: RequestData<"permission">,
    { emit, asks }: { readonly emit: Emit; readonly asks: boolean },
  ): Answers["permission"] | undefined {
    if (this.#adopted.size === 0 || emit !== this.#options.emit) return undefined;
    const toolCallId = toolCallOf(data, {});
    const ofCall = [...this.#adopted].filter(
      ([, left]) => left.kind === "permission" && left.toolCallId === toolCallId,
    );
    for (const [entry, left] of ofCall) {
      if (!isRefusal(entry.outcome)) continue;
      this.#drop(entry, left);
      return entry.outcome;
    }
    if (asks) return undefined;
    const asked = this.#options.redact?.(data) ?? data;
    for (const [entry, left] of ofCall) if (isSameRequest(left, asked) !== "other") this.#drop(entry, left);
    return undefined;
  }

  /** A call has ended: what was adopted for it and not asked again is over. */
  forget(toolCallId: string): void {
    for (const [entry, left] of this.#adopted) if (entry.toolCallId === toolCallId) this.#drop(entry, left);
  }

  /** Tells clients of the permissions again that wait for them. */
  remind(): void {
    for (const { request, isAnnounced } of this.#pending.values()) if (isAnnounced) this.#remindOf(request);
  }

  /** From here on the calls that wait for someone are left as they are, for a later life of the session. */
  leave(): void {
    for (const { request, toolCallId } of this.#pending.values())
      if (toolCallId !== undefined && waitsForLater(request.kind)) this.#left.add(toolCallId);
  }

  isLeft(toolCallId: string): boolean {
    return this.#left.has(toolCallId);
  }

  /** Cancels what is pending; resolves when every end has been announced. `reason` is told with it. */
  async close(reason?: string): Promise<void> {
    this.#isClosed = true;
    this.#closedFor = reason;
    for (const entry of [...this.#pending.values()]) this.#end(entry, "cancelled");
    await Promise.all(this.#running);
  }

  async #run(kind: RequestKind, data: object, options: RequestOptions): Promise<AnyOutcome> {
    const { emit = this.#options.emit } = options;
    const requestId = this.newRequestId();
    const toolCallId = emit === this.#options.emit ? toolCallOf(data, options) : undefined;
    const entry = newEntry({ ...data, kind, requestId } as AnyRequest, toolCallId);
    this.#pending.set(requestId, entry);
    return this.#until(entry, options, async () => {
      const isQuestion = kind === "user_input" || kind === "exit_plan_mode";
      if (isQuestion && toolCallId !== undefined) void emit("troupe.question", { requestId, kind, toolCallId });
      await announce(emit, eventsOf(kind)[0], { ...data, ...(kind === "permission" && this.mode), requestId });
    });
  }

  /** Asked once more: its answer may be there already. Tools of clients run where they ran; the rest is told again. */
  async #goOn({ entry, left }: Adopted, data: object, options: RequestOptions): Promise<AnyOutcome> {
    if (left.answer) return left.answer;
    const { kind, requestId } = left;
    entry.request = { ...data, kind, requestId } as AnyRequest;
    return this.#until(entry, options, async () => {
      if (!this.#pending.has(requestId)) return;
      if (kind === "permission") this.#remindOf(entry.request);
      else if (kind !== "external_tool")
        await announce(this.#options.emit, `${kind}.requested`, { ...data, requestId });
    });
  }

  async #until(entry: Entry, options: RequestOptions, tell: () => Promise<void>): Promise<AnyOutcome> {
    const { timeoutMs = TIMEOUT_MS, signal, emit = this.#options.emit } = options;
    const { kind, requestId } = entry.request;
    const cancel = (): void => void this.#end(entry, "cancelled");
    signal?.addEventListener("abort", cancel, { once: true });
    try {
      await tell();
      entry.isAnnounced = true;
      void this.#endAfter(entry, timeoutMs, entry.ended.signal);
      if (this.#pending.has(requestId)) {
        for (const answerer of this.#presentFor(kind)) this.#hand(entry, answerer);
        this.#checkHope(entry);
      }
      const outcome = await entry.end.promise;
      await announce(emit, eventsOf(kind)[1], { requestId, ...completedData(kind, outcome, this.#closedFor) });
      return outcome;
    } finally {
      signal?.removeEventListener("abort", cancel);
      this.#end(entry, "cancelled");
    }
  }

  /** What the same call asked before and asks again; whatever it asks otherwise now takes the place of that. */
  #takeAdopted(kind: RequestKind, data: object, options: RequestOptions): Adopted | undefined {
    if (this.#adopted.size === 0 || (options.emit ?? this.#options.emit) !== this.#options.emit) return undefined;
    const toolCallId = toolCallOf(data, options);
    const asked = this.#options.redact?.(data) ?? data;
    for (const [entry, left] of this.#adopted) {
      if (left.kind !== kind || left.toolCallId !== toolCallId) continue;
      const sameness = isSameRequest(left, asked);
      if (sameness === "same") {
        this.#adopted.delete(entry);
        return { entry, left };
      }
      if (sameness === "changed") this.#drop(entry, left);
    }
    return undefined;
  }

  #drop(entry: Entry, { kind, requestId, answer }: LeftRequest): void {
    this.#adopted.delete(entry);
    if (answer) return;
    this.#end(entry, "cancelled");
    const outcome = entry.outcome ?? "cancelled";
    const why = "It is not asked any more";
    void announce(this.#options.emit, `${kind}.completed`, { requestId, ...completedData(kind, outcome, why) });
  }

  #remindOf(request: AnyRequest): void {
    if (request.kind !== "permission") return;
    const { kind: _, ...data } = request;
    this.#reminded.add(request.requestId);
    this.#options.remind?.(data);
  }

  /** Whether the request was told again, to clients that came after it was made. */
  wasReminded(requestId: string): boolean {
    return this.#reminded.has(requestId);
  }

  /** False when it has ended before. */
  #end(entry: Entry, outcome: AnyOutcome): boolean {
    const { requestId } = entry.request;
    if (!this.#pending.delete(requestId)) return false;
    this.#past.set(requestId, typeof outcome === "string" ? "expired" : "already answered");
    for (const oldest of this.#past.keys()) {
      if (this.#past.size <= MAX_REMEMBERED) break;
      this.#past.delete(oldest);
    }
    entry.outcome = outcome;
    entry.end.resolve(outcome);
    entry.ended.abort();
    entry.grace?.abort();
    return true;
  }

  #hand(entry: Entry, answerer: Answerer): void {
    if (!answerer.handle || !entry.isAnnounced) return;
    const decline = (): void => {
      entry.declined.add(answerer);
      this.#checkHope(entry);
    };
    Promise.resolve()
      .then(() => answerer.handle?.(entry.request, entry.ended.signal))
      .then((answer) => (answer === undefined ? decline() : void this.#end(entry, answer)), decline);
  }

  /** Ends at once when all who are there have declined, and after a while when nobody is there. */
  #checkHope(entry: Entry): void {
    const present = this.#presentFor(entry.request.kind);
    if (present.some((answerer) => !entry.declined.has(answerer))) return;
    if (present.length > 0) {
      this.#end(entry, "unavailable");
      return;
    }
    if (entry.grace) return;
    entry.grace = new AbortController();
    void this.#endAfter(entry, this.#options.graceMs ?? GRACE_MS, entry.grace.signal);
  }

  async #endAfter(entry: Entry, milliseconds: number, signal: AbortSignal): Promise<void> {
    await this.#options.stamp.sleep(milliseconds, signal).then(
      () => void this.#end(entry, "unavailable"),
      () => undefined,
    );
  }

  #presentFor(kind: RequestKind): Answerer[] {
    return [...this.#answerers].filter(({ kinds }) => kinds.includes(kind));
  }
}

/** The broker of a session; what it asks is kept and told by its log. */
export function newBroker(
  log: EventLog,
  { stamp, redactor }: { readonly stamp: Stamp; readonly redactor?: Redactor },
  { emit, agentMode }: Required<Pick<BrokerOptions, "emit" | "agentMode">>,
): Broker {
  return new Broker({
    ...{ emit, stamp, agentMode },
    remind: (data) => log.announce("permission.requested", data),
    ...(redactor && { redact: (data: object) => redactEventData(redactor, "permission.requested", data) }),
  });
}

interface Adopted {
  readonly entry: Entry;
  readonly left: LeftRequest;
}

const isRefusal = (outcome: AnyOutcome | undefined): outcome is Answers["permission"] =>
  typeof outcome === "object" && "kind" in outcome && outcome.kind.startsWith("denied");

function newEntry(request: AnyRequest, toolCallId: string | undefined): Entry {
  const nobody = { declined: new Set<Answerer>(), isAnnounced: false, grace: undefined };
  return { request, toolCallId, end: deferred(), ended: new AbortController(), ...nobody };
}

/** The open requests to clients, as surfaces see them. */
export type OpenRequests = Pick<
  Broker,
  "answer" | "pending" | "request" | "canAnswer" | "remind" | "wasReminded" | "newRequestId" | "mode"
>;
