/**
 * One place for everything that waits for someone outside: a permission, an answer, a form, a tool that a client runs,
 * a plan to approve, a token. Whoever can answer attaches for the kinds it knows; a request is announced, the first answer wins,
 * and its end is announced too, whatever it is. With nobody there a request ends at once, and with everybody gone soon
 * after: nothing waits for ever, and nothing stays pending when the broker closes.
 */
import { type Deferred, deferred } from "../lib/deferred.ts";
import type { Json } from "../lib/json.ts";
import type { Stamp } from "../lib/stamp.ts";
import type { Emit, EventData } from "../protocol/event.ts";
import type { PlanAction, User } from "../tools/user.ts";

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
}

export interface RequestOptions {
  /** Whose request it is, when not the main agent's: it is told as that one's. */
  readonly emit?: Emit;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

const GRACE_MS = 30_000;
const TIMEOUT_MS = 24 * 60 * 60 * 1000;
const MAX_PENDING = 1000;
const MAX_REMEMBERED = 1000;

interface Entry {
  readonly request: AnyRequest;
  readonly end: Deferred<AnyOutcome>;
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
  #isClosed = false;
  #closedFor: string | undefined;

  constructor(options: BrokerOptions) {
    this.#options = options;
  }

  /** Resolves once the end is announced, as durably as its event demands. Rejects only when announcing fails. */
  request<K extends RequestKind>(kind: K, data: RequestData<K>, options: RequestOptions = {}): Promise<Outcome<K>> {
    if (options.signal?.aborted) return Promise.resolve("cancelled");
    const isFutile = this.#isClosed || this.#pending.size >= MAX_PENDING || !this.canAnswer(kind);
    if (isFutile) return Promise.resolve("unavailable");
    const running = this.#run(kind, data, options);
    const settled = running.catch(() => undefined).finally(() => this.#running.delete(settled));
    this.#running.add(settled);
    // What was answered has been checked against the kind in `answer`.
    return running as Promise<Outcome<K>>;
  }

  /** For what is decided without asking, and told as if it had been asked. */
  newRequestId(): string {
    return this.#options.stamp.id("request");
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

  /** Cancels what is pending; resolves when every end has been announced. `reason` is told with it. */
  async close(reason?: string): Promise<void> {
    this.#isClosed = true;
    this.#closedFor = reason;
    for (const entry of [...this.#pending.values()]) this.#end(entry, "cancelled");
    await Promise.all(this.#running);
  }

  async #run(kind: RequestKind, data: object, options: RequestOptions): Promise<AnyOutcome> {
    const { timeoutMs = TIMEOUT_MS, signal, emit = this.#options.emit } = options;
    const { stamp } = this.#options;
    const requestId = stamp.id("request");
    const request = { ...data, kind, requestId } as AnyRequest;
    const entry: Entry = {
      request,
      end: deferred(),
      ended: new AbortController(),
      declined: new Set(),
      isAnnounced: false,
      grace: undefined,
    };
    const cancel = (): void => void this.#end(entry, "cancelled");
    signal?.addEventListener("abort", cancel, { once: true });
    this.#pending.set(requestId, entry);
    try {
      const [asked, done] = eventsOf(kind);
      await announce(emit, asked, { ...data, requestId });
      entry.isAnnounced = true;
      void this.#endAfter(entry, timeoutMs, entry.ended.signal);
      for (const answerer of this.#presentFor(kind)) this.#hand(entry, answerer);
      this.#checkHope(entry);
      const outcome = await entry.end.promise;
      await announce(emit, done, { requestId, ...completedData(kind, outcome, this.#closedFor) });
      return outcome;
    } finally {
      signal?.removeEventListener("abort", cancel);
      this.#end(entry, "cancelled");
    }
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

/** The plan of plan mode: its text, and what an approval leads to. */
export interface PlanPort {
  content(): Promise<string>;
  approved?(action: PlanAction): Promise<void>;
}

/** The person, as the tools see one. */
export function brokerUser(broker: Broker, plan: PlanPort): User {
  return {
    async ask({ question, choices, allowFreeform, toolCallId }, signal) {
      const data = { question, allowFreeform, toolCallId, ...(choices && { choices: [...choices] }) };
      return availableOr(await broker.request("user_input", data, { signal }), signal);
    },
    async reviewPlan({ summary, actions, recommendedAction }, signal) {
      const data = { summary, actions: [...actions], recommendedAction, planContent: await plan.content() };
      const decision = availableOr(await broker.request("exit_plan_mode", data, { signal }), signal);
      if (decision !== "unavailable" && decision.approved)
        await plan.approved?.(decision.selectedAction ?? "interactive");
      return decision;
    },
  };
}

function availableOr<A>(outcome: A | "unavailable" | "cancelled", signal: AbortSignal): A | "unavailable" {
  signal.throwIfAborted();
  return outcome === "cancelled" ? "unavailable" : outcome;
}

/** What is told when it is asked, and when it has ended. */
function eventsOf(kind: RequestKind): [asked: keyof BrokerEvents, done: keyof BrokerEvents] {
  if (kind === "mcp_oauth") return ["mcp.oauth_required", "mcp.oauth_completed"];
  return [`${kind}.requested`, `${kind}.completed`];
}

/** The names of an event and of its data belong together because both come from the kind. */
function announce(emit: Emit, type: keyof BrokerEvents, data: object): Promise<void> {
  return emit(type, data as BrokerEvents[keyof BrokerEvents]);
}

function completedData(kind: RequestKind, outcome: AnyOutcome, reason: string | undefined): object {
  if (kind === "sampling" || kind === "external_tool") return {};
  // What was brought is for the one who asked: nobody is told a token.
  if (kind === "mcp_oauth") return { outcome: typeof outcome === "object" && isToken(outcome) ? "token" : "cancelled" };
  if (typeof outcome === "object") return kind === "permission" ? { result: outcome } : outcome;
  switch (kind) {
    case "permission":
      if (outcome !== "cancelled") return { result: { kind: COULD_NOT_ASK } };
      return { result: { kind: "cancelled", ...(reason !== undefined && { reason }) } };
    case "elicitation":
      return { action: "cancel" };
    case "exit_plan_mode":
      return { approved: false };
    case "auto_mode_switch":
      return { response: "no" };
    case "user_input":
      return {};
  }
}

const isToken = (answer: AnyAnswer): boolean => "kind" in answer && answer.kind === "token";

const COULD_NOT_ASK = "denied-no-approval-rule-and-could-not-request-from-user";

export type RequestKind = keyof Answers;
export type RequestData<K extends RequestKind> = Omit<BrokerEvents[AskedAs<K>], "requestId">;
export type AnyRequest = {
  [K in RequestKind]: { readonly kind: K; readonly requestId: string } & RequestData<K>;
}[RequestKind];
type AnyAnswer = Answers[RequestKind];
type AnyOutcome = AnyAnswer | "unavailable" | "cancelled";

export interface Answers {
  permission: PermissionResult;
  user_input: { readonly answer: string; readonly wasFreeform: boolean };
  elicitation: { readonly action: "accept" | "decline" | "cancel"; readonly content?: Record<string, Json> };
  sampling: { readonly action: "success" | "failure" | "cancelled"; readonly result?: Json; readonly error?: string };
  external_tool: { readonly result?: Json; readonly error?: string };
  exit_plan_mode: {
    readonly approved: boolean;
    readonly selectedAction?: PlanAction;
    readonly autoApproveEdits?: boolean;
    readonly feedback?: string;
  };
  /** Whether to go on with a model that the provider chooses, where a limit is reached. */
  auto_mode_switch: { readonly response: "yes" | "yes_always" | "no" };
  mcp_oauth:
    | { readonly kind: "token"; readonly accessToken: string; readonly tokenType?: string; readonly expiresIn?: number }
    | { readonly kind: "cancelled" };
}

/** What is said of requests, in the shape of the wire. */
type BrokerEvents = { [T in AskedAs<RequestKind> | EndedAs<RequestKind>]: EventData<T> };
type AskedAs<K extends RequestKind> = K extends "mcp_oauth"
  ? "mcp.oauth_required"
  : `${Exclude<K, "mcp_oauth">}.requested`;
type EndedAs<K extends RequestKind> = K extends "mcp_oauth"
  ? "mcp.oauth_completed"
  : `${Exclude<K, "mcp_oauth">}.completed`;

export type PermissionRequest = EventData<"permission.requested">["permissionRequest"];
type PermissionResult = EventData<"permission.completed">["result"];
