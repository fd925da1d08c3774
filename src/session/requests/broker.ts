/**
 * The broker for everything that waits for a client: permissions, answers, forms, client tools, plan approvals, tokens.
 *
 * Clients attach for the kinds they can answer. A request is announced, the first response counts, and its end is always
 * announced. Without a client a request ends at once; after the last client leaves, it ends after a grace period.
 * Nothing waits forever, and nothing is pending after `close`.
 */
import type { SessionMode } from "../../commands/command.ts";
import { type Deferred, deferred } from "../../lib/deferred.ts";
import type { Redactor } from "../../lib/redact/redact.ts";
import { redactEventData } from "../../lib/redact/redact-event.ts";
import type { Stamp } from "../../lib/stamp.ts";
import type { Emit, EventData } from "../../protocol/event.ts";
import type { EventLog } from "../event-log.ts";
import { isSameRequest, type PendingRequest, toolCallOf, waitsForLater } from "./pending-requests.ts";
import {
  type AnswersByKind,
  type AnyAnswer,
  type AnyRequest,
  type AnyRequestOutcome,
  announce,
  completedData,
  eventsOf,
  type RequestData,
  type RequestKind,
} from "./requests.ts";

/** The result of a request. "unavailable": no client answered. "cancelled": the caller gave up, or the session closed. */
export type RequestOutcome<K extends RequestKind> = AnswersByKind[K] | "unavailable" | "cancelled";

/** The result of answering: only the first response to an open request counts. */
export type AnswerReceipt = "accepted" | "already answered" | "expired" | "unknown";

export interface Answerer {
  readonly kinds: readonly RequestKind[];
  /**
   * Called for every request of these kinds; returns undefined to decline. The signal aborts when the request has ended
   * otherwise. An answerer without this method watches the events and calls `answer`.
   */
  handle?(request: AnyRequest, signal: AbortSignal): Promise<AnyAnswer | undefined>;
}

export interface BrokerOptions {
  readonly emit: Emit;
  readonly stamp: Stamp;
  /** Time that a request stays open after the last client that could answer has left. */
  readonly graceMs?: number;
  /** Announces a request again that is already in the log. */
  readonly remind?: (data: EventData<"permission.requested">) => void;
  /** The session's mode, included in each permission request. */
  readonly agentMode?: () => SessionMode;
  /** Redacts a request as the log does. */
  readonly redact?: (data: object) => object;
}

export interface RequestOptions {
  /** Emits as the agent that asks, if it is not the main agent. */
  readonly emit?: Emit;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** The call that waits for it, if the request does not name it. */
  readonly toolCallId?: string;
}

const GRACE_MS = 30_000;
const TIMEOUT_MS = 24 * 60 * 60 * 1000;
const MAX_PENDING = 1000;
const MAX_REMEMBERED = 1000;

interface Entry {
  request: AnyRequest;
  /** The main agent's call that waits for it. */
  readonly toolCallId: string | undefined;
  readonly end: Deferred<AnyRequestOutcome>;
  /** Set when it has ended. */
  outcome?: AnyRequestOutcome;
  /** Stops timers and handlers when the request has ended. */
  readonly ended: AbortController;
  readonly declined: Set<Answerer>;
  isAnnounced: boolean;
  /** Set while no client is attached. */
  grace: AbortController | undefined;
}

export class Broker {
  readonly #options: BrokerOptions;
  readonly #answerers = new Set<Answerer>();
  readonly #pending = new Map<string, Entry>();
  readonly #running = new Set<Promise<unknown>>();
  /** Results of recent requests, for late answers. */
  readonly #past = new Map<string, AnswerReceipt>();
  /** Requests of an earlier process that have not been made again yet. */
  readonly #adopted = new Map<Entry, PendingRequest>();
  readonly #keptPending = new Set<string>();
  #isClosed = false;
  #closedFor: string | undefined;

  readonly #reminded = new Set<string>();

  constructor(options: BrokerOptions) {
    this.#options = options;
  }

  /** Makes a request. Resolves once its end is durably announced. Rejects only if announcing fails. */
  request<K extends RequestKind>(
    kind: K,
    data: RequestData<K>,
    options: RequestOptions = {},
  ): Promise<RequestOutcome<K>> {
    if (options.signal?.aborted) return Promise.resolve("cancelled");
    const cannotBeAnswered = this.#isClosed || this.#pending.size >= MAX_PENDING || !this.canAnswer(kind);
    const adopted = this.#takeAdopted(kind, data, options);
    if (cannotBeAnswered && !adopted) return Promise.resolve("unavailable");
    const running = adopted ? this.#resume(adopted, data, options) : this.#run(kind, data, options);
    const settled = running.catch(() => undefined).finally(() => this.#running.delete(settled));
    this.#running.add(settled);
    // `answer` has checked the answer against the kind.
    return running as Promise<RequestOutcome<K>>;
  }

  /** Returns an id for a decision that is made without asking but announced like a request. */
  newRequestId(): string {
    return this.#options.stamp.id("request");
  }

  /** The session's current mode, as permission requests name it. */
  get mode(): { readonly agentMode?: SessionMode } {
    const { agentMode } = this.#options;
    return agentMode ? { agentMode: agentMode() } : {};
  }

  /** Whether any attached client could answer. */
  canAnswer(kind: RequestKind): boolean {
    return this.#presentFor(kind).length > 0;
  }

  answer<K extends RequestKind>(kind: K, requestId: string, answer: AnswersByKind[K]): AnswerReceipt {
    const entry = this.#pending.get(requestId);
    if (entry && entry.request.kind !== kind) return "unknown";
    if (entry && this.#end(entry, answer as AnyAnswer)) return "accepted";
    return this.#past.get(requestId) ?? "unknown";
  }

  /** Returns open requests, oldest first, for a client that attaches later. */
  pending(kind?: RequestKind): readonly AnyRequest[] {
    const all = [...this.#pending.values()].map(({ request }) => request);
    return kind === undefined ? all : all.filter((request) => request.kind === kind);
  }

  /** Attaches a client, which may also answer pending requests. Returns a function that detaches it. */
  attach(answerer: Answerer): () => void {
    this.#answerers.add(answerer);
    for (const entry of this.#pending.values()) {
      if (!answerer.kinds.includes(entry.request.kind)) continue;
      entry.grace?.abort();
      entry.grace = undefined;
      entry.declined.delete(answerer);
      this.#passTo(entry, answerer);
    }
    return () => {
      if (!this.#answerers.delete(answerer)) return;
      for (const entry of this.#pending.values()) this.#endIfUnanswerable(entry);
    };
  }

  /** Adopts requests of an earlier process. They are pending under their old ids and can be answered. */
  adopt(requests: readonly PendingRequest[]): void {
    for (const earlier of requests) {
      const request = { ...earlier.data, kind: earlier.kind, requestId: earlier.requestId } as AnyRequest;
      const entry = newEntry(request, earlier.toolCallId);
      this.#adopted.set(entry, earlier);
      if (earlier.answer) entry.end.resolve(earlier.answer);
      else this.#pending.set(earlier.requestId, entry);
    }
  }

  /**
   * Returns a denial that was given to an adopted request of this call. It stays valid even if the call would be
   * allowed now. If the call will not be asked about again (`asks` is false), ends its adopted requests.
   */
  refusedBefore(
    data: RequestData<"permission">,
    { emit, asks }: { readonly emit: Emit; readonly asks: boolean },
  ): AnswersByKind["permission"] | undefined {
    if (this.#adopted.size === 0 || emit !== this.#options.emit) return undefined;
    const toolCallId = toolCallOf(data, {});
    const ofCall = [...this.#adopted].filter(
      ([, earlier]) => earlier.kind === "permission" && earlier.toolCallId === toolCallId,
    );
    for (const [entry, earlier] of ofCall) {
      if (!isRefusal(entry.outcome)) continue;
      this.#drop(entry, earlier);
      return entry.outcome;
    }
    if (asks) return undefined;
    const asked = this.#options.redact?.(data) ?? data;
    for (const [entry, earlier] of ofCall) if (isSameRequest(earlier, asked) !== "other") this.#drop(entry, earlier);
    return undefined;
  }

  /** Ends adopted requests of a call that has ended. */
  forget(toolCallId: string): void {
    for (const [entry, earlier] of this.#adopted) if (entry.toolCallId === toolCallId) this.#drop(entry, earlier);
  }

  /** Announces pending permission requests to clients again. */
  remind(): void {
    for (const { request, isAnnounced } of this.#pending.values()) if (isAnnounced) this.#remindOf(request);
  }

  /** Marks these calls, and those that wait for a client, as pending for a later process. */
  keepPending(calls: readonly string[] = []): void {
    const pending = [...this.#pending.values()].filter(({ request }) => waitsForLater(request.kind));
    for (const id of [...calls, ...pending.flatMap(({ toolCallId }) => toolCallId ?? [])]) this.#keptPending.add(id);
  }

  staysPending(toolCallId: string): boolean {
    return this.#keptPending.has(toolCallId);
  }

  /** Cancels all pending requests. Resolves when every end has been announced with `reason`. */
  async close(reason?: string): Promise<void> {
    this.#isClosed = true;
    this.#closedFor = reason;
    for (const entry of [...this.#pending.values()]) this.#end(entry, "cancelled");
    await Promise.all(this.#running);
  }

  async #run(kind: RequestKind, data: object, options: RequestOptions): Promise<AnyRequestOutcome> {
    const { emit = this.#options.emit } = options;
    const requestId = this.newRequestId();
    const toolCallId = emit === this.#options.emit ? toolCallOf(data, options) : undefined;
    const entry = newEntry({ ...data, kind, requestId } as AnyRequest, toolCallId);
    this.#pending.set(requestId, entry);
    return this.#waitForEnd(entry, options, async () => {
      const isQuestion = kind === "user_input" || kind === "exit_plan_mode";
      if (isQuestion && toolCallId !== undefined) void emit("troupe.question", { requestId, kind, toolCallId });
      await announce(emit, eventsOf(kind)[0], { ...data, ...(kind === "permission" && this.mode), requestId });
    });
  }

  /** Continues an adopted request, which may already be answered. Announces it again unless it is a client tool. */
  async #resume({ entry, earlier }: Adopted, data: object, options: RequestOptions): Promise<AnyRequestOutcome> {
    if (earlier.answer) return earlier.answer;
    const { kind, requestId } = earlier;
    entry.request = { ...data, kind, requestId } as AnyRequest;
    return this.#waitForEnd(entry, options, async () => {
      if (!this.#pending.has(requestId)) return;
      if (kind === "permission") this.#remindOf(entry.request);
      else if (kind !== "external_tool")
        await announce(this.#options.emit, `${kind}.requested`, { ...data, requestId });
    });
  }

  async #waitForEnd(entry: Entry, options: RequestOptions, ask: () => Promise<void>): Promise<AnyRequestOutcome> {
    const { timeoutMs = TIMEOUT_MS, signal, emit = this.#options.emit } = options;
    const { kind, requestId } = entry.request;
    const cancel = (): void => void this.#end(entry, "cancelled");
    signal?.addEventListener("abort", cancel, { once: true });
    try {
      await ask();
      entry.isAnnounced = true;
      void this.#endAfter(entry, timeoutMs, entry.ended.signal);
      if (this.#pending.has(requestId)) {
        for (const answerer of this.#presentFor(kind)) this.#passTo(entry, answerer);
        this.#endIfUnanswerable(entry);
      }
      const outcome = await entry.end.promise;
      await announce(emit, eventsOf(kind)[1], { requestId, ...completedData(kind, outcome, this.#closedFor) });
      return outcome;
    } finally {
      signal?.removeEventListener("abort", cancel);
      this.#end(entry, "cancelled");
    }
  }

  /** Returns the adopted request that equals this one. A request that the call has changed replaces the adopted one. */
  #takeAdopted(kind: RequestKind, data: object, options: RequestOptions): Adopted | undefined {
    if (this.#adopted.size === 0 || (options.emit ?? this.#options.emit) !== this.#options.emit) return undefined;
    const toolCallId = toolCallOf(data, options);
    const asked = this.#options.redact?.(data) ?? data;
    for (const [entry, earlier] of this.#adopted) {
      if (earlier.kind !== kind || earlier.toolCallId !== toolCallId) continue;
      const sameness = isSameRequest(earlier, asked);
      if (sameness === "same") {
        this.#adopted.delete(entry);
        return { entry, earlier };
      }
      if (sameness === "changed") this.#drop(entry, earlier);
    }
    return undefined;
  }

  #drop(entry: Entry, { kind, requestId, answer }: PendingRequest): void {
    this.#adopted.delete(entry);
    if (answer) return;
    this.#end(entry, "cancelled");
    const outcome = entry.outcome ?? "cancelled";
    const why = "The call no longer needs this permission.";
    void announce(this.#options.emit, `${kind}.completed`, { requestId, ...completedData(kind, outcome, why) });
  }

  #remindOf(request: AnyRequest): void {
    if (request.kind !== "permission") return;
    const { kind: _, ...data } = request;
    this.#reminded.add(request.requestId);
    this.#options.remind?.(data);
  }

  /** Whether the request was announced again. */
  wasReminded(requestId: string): boolean {
    return this.#reminded.has(requestId);
  }

  /** Returns false if it has already ended. */
  #end(entry: Entry, outcome: AnyRequestOutcome): boolean {
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

  #passTo(entry: Entry, answerer: Answerer): void {
    if (!answerer.handle || !entry.isAnnounced) return;
    const decline = (): void => {
      entry.declined.add(answerer);
      this.#endIfUnanswerable(entry);
    };
    Promise.resolve()
      .then(() => answerer.handle?.(entry.request, entry.ended.signal))
      .then((answer) => (answer === undefined ? decline() : void this.#end(entry, answer)), decline);
  }

  /** Ends the request at once if all attached clients have declined, and after the grace period if none is attached. */
  #endIfUnanswerable(entry: Entry): void {
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

/** Creates a session's broker. Its log stores and announces the requests. */
export function newBroker(
  log: EventLog,
  { stamp, redactor }: { readonly stamp: Stamp; readonly redactor?: Redactor | undefined },
  { emit, agentMode }: Required<Pick<BrokerOptions, "emit" | "agentMode">>,
): Broker {
  return new Broker({
    emit,
    stamp,
    agentMode,
    remind: (data) => log.announce("permission.requested", data),
    ...(redactor && { redact: (data: object) => redactEventData(redactor, "permission.requested", data) }),
  });
}

interface Adopted {
  readonly entry: Entry;
  readonly earlier: PendingRequest;
}

const isRefusal = (outcome: AnyRequestOutcome | undefined): outcome is AnswersByKind["permission"] =>
  typeof outcome === "object" && "kind" in outcome && outcome.kind.startsWith("denied");

function newEntry(request: AnyRequest, toolCallId: string | undefined): Entry {
  const state = { declined: new Set<Answerer>(), isAnnounced: false, grace: undefined };
  return { request, toolCallId, end: deferred(), ended: new AbortController(), ...state };
}

/** The open requests to clients, as surfaces see them. */
export type RequestPort = Pick<
  Broker,
  "answer" | "pending" | "request" | "canAnswer" | "remind" | "wasReminded" | "newRequestId" | "mode" | "attach"
>;
