/** The context of one agent: measured before each model call, and made smaller in time. */
import { chooseCut } from "../../context/compact-cut.ts";
import { type Replacements, replacedMessages, replacementsToFit } from "../../context/compact-shorten.ts";
import { messageTokens } from "../../context/compact-tokens.ts";
import type { Redactor } from "../../lib/redact/redact.ts";
import type { Stamp } from "../../lib/stamp.ts";
import type { LimitReached } from "../../loop/run.ts";
import { noUsage, type Provider, type RequestOrigin, type Usage } from "../../model/provider.ts";
import type { CompactionTrigger } from "../../protocol/context-events.ts";
import type { Emit } from "../../protocol/event.ts";
import type { Message } from "../../protocol/message.ts";
import type { Expected } from "../budget/reservations.ts";
import type { History } from "../history.ts";
import type { PromptAndTools, SessionModel } from "../session-model.ts";
import type { SessionHooks } from "../turn/hooked-calls.ts";
import type { CompactionDesk, CompactionEnd } from "./compaction-call.ts";
import type { CompactionOptions } from "./compaction-options.ts";
import type { ContextReport } from "./context-report.ts";
import type { ContextUsage } from "./context-usage.ts";
import { afterOverflow } from "./overflow.ts";

/** What belongs to one agent; the parts of its run have all of it. */
export interface CompactionPlace {
  readonly log: { readonly directory: string };
  readonly stamp: Stamp;
  readonly model: SessionModel;
  /** What the model is told and given. */
  readonly shown: Pick<PromptAndTools, "system" | "tools">;
  readonly emit: Emit;
  readonly history: History;
  readonly hooks: SessionHooks | undefined;
  readonly cacheKey: string;
  readonly origin: RequestOrigin;
  readonly streaming?: boolean;
  readonly replies?: "streamed" | "whole";
  readonly redactor?: Redactor;
  limitReached(expected: Expected): LimitReached | undefined;
  settled(): void;
}

/** What is known of one conversation from run to run. */
export interface ContextState {
  running:
    | {
        readonly kind: "background" | "blocking";
        readonly abort: AbortController;
        readonly end: Promise<CompactionEnd>;
      }
    | undefined;
  /** What the one under way may use, as long as no call of the agent has set it aside. */
  pending: Expected | undefined;
  calls: number;
  failures: number;
  /** No attempt before this call. */
  restsUntil: number;
  /** What a model turned out to take, smaller than its window was thought to be. */
  limit: { readonly model: string; readonly tokens: number } | undefined;
  replaced: Replacements;
}

/** Of the room a conversation has before a summary is begun: as much of the newest turns is not summarised. */
const TAIL_SHARE = 0.25;
const LAST_TURN_SHARE = 0.5;
/** What cannot win this much of the share at which a summary is begun is not worth a call. */
const WORTH_SHARE = 0.1;
/** By itself from the second message of the user on. */
const MIN_MESSAGES = { auto: 3, manual: 2 };
const FULL = 0.95;
const SHORTENED_TO = 0.75;
const REST_CALLS = 4;
const MAX_REST_CALLS = 32;
const USUAL_SUMMARY_TOKENS = 2_048;

interface AgentContextParts {
  readonly place: CompactionPlace;
  readonly state: ContextState;
  readonly options: CompactionOptions;
  readonly desk: CompactionDesk;
  readonly running: Set<NonNullable<ContextState["running"]>>;
}

/** The context of one agent, during one run of it. */
export class AgentContext {
  readonly #parts: AgentContextParts;
  /** Asks once more, with less, when a request was too long. */
  readonly provider: Provider;
  #measured = 0;

  constructor(parts: AgentContextParts) {
    this.#parts = parts;
    this.provider = afterOverflow(parts.place.model.provider, {
      shrink: (signal) => this.#shrink(signal),
      messages: () => this.messages(),
    });
  }

  /** Before each model call: begins a summary, or waits for one. */
  async beforeModelCall(signal: AbortSignal): Promise<void> {
    const { state, options } = this.#parts;
    state.calls++;
    const share = fullness(await this.#measure());
    if (options.enabled && share >= options.bufferThreshold) {
      if (state.running) await ended(state.running.end, signal);
      else if (this.#isDue()) await this.#compact({ trigger: "threshold", kind: "blocking", signal });
    } else if (options.enabled && share >= options.backgroundThreshold && !state.running && this.#isDue()) {
      void this.#compact({ trigger: "threshold", kind: "background" }).catch(() => undefined);
    }
    if (fullness(await this.#measure("shown")) >= FULL) await this.#shorten(SHORTENED_TO);
  }

  /** The conversation as it goes into a request. */
  async messages(): Promise<readonly Message[]> {
    return replacedMessages(await this.#parts.place.history.messages(), this.#parts.state.replaced);
  }

  /** As of the last reading of the history. */
  usage(): ContextUsage {
    const { place, desk, state } = this.#parts;
    const { model, shown, history } = place;
    const usage = desk.meter.measure({ model, offer: shown, history });
    if (state.limit?.model !== model.model) return usage;
    return { ...usage, tokenLimit: Math.min(usage.tokenLimit, state.limit.tokens) };
  }

  /** What fills the window, for people. */
  async report(): Promise<ContextReport> {
    const { place, desk, options } = this.#parts;
    const { contextReport } = await import("./context-report.ts");
    const messages = await this.messages();
    const { model, shown } = place;
    return contextReport({ model, shown, messages, usage: this.usage(), meter: desk.meter, options });
  }

  /** A request is on its way that was measured so. */
  sent({ currentTokens }: Pick<ContextUsage, "currentTokens">): void {
    this.#measured = this.#parts.state.replaced.size > 0 ? 0 : currentTokens;
  }

  /** What the provider counted of the request sent last. */
  counted(usage: Usage): void {
    const { desk, place } = this.#parts;
    if (this.#measured > 0) desk.meter.learn(place.model, { measured: this.#measured, reported: usage.inputTokens });
  }

  /** The expected use of the next call, together with that of a summary under way. */
  withPending(expected: Expected): Expected {
    const { pending } = this.#parts.state;
    if (!pending) return expected;
    return {
      tokens: () => expected.tokens() + pending.tokens(),
      costUsd: () => sumOf(expected.costUsd(), pending.costUsd()),
    };
  }

  /** At a person's wish, now. One that is being written by itself is given up for it. */
  async compact(
    wish: { readonly focus?: string; readonly trigger?: CompactionTrigger; readonly signal?: AbortSignal } = {},
  ): Promise<CompactionEnd> {
    const { state } = this.#parts;
    const { focus, trigger = "manual", signal } = wish;
    if (state.running?.kind === "blocking") return refused("A compaction is under way already.");
    await this.cancelBackground();
    const { messagesLength } = await this.#measure();
    if (messagesLength < MIN_MESSAGES.manual || this.#cut("all") < 1) {
      return refused("There is too little in the conversation to summarise.");
    }
    return this.#compact({ trigger, kind: "blocking", focus, extent: "all", ...(signal && { signal }) });
  }

  /** True when there was one. */
  async cancelBackground(): Promise<boolean> {
    const { running } = this.#parts.state;
    if (running?.kind !== "background") return false;
    running.abort.abort();
    await running.end.catch(() => undefined);
    return true;
  }

  /** True when a person's wish, or one the agent waits for, was under way. */
  abortBlocking(): boolean {
    const { running } = this.#parts.state;
    if (running?.kind !== "blocking") return false;
    running.abort.abort();
    return true;
  }

  async #compact(how: Attempt): Promise<CompactionEnd> {
    const { place, state, running } = this.#parts;
    const expected = this.#expected();
    const reached = how.limits === "none" ? undefined : place.limitReached(expected);
    if (reached) return refused(reached.message);
    // The agent's own calls go on beside it and set aside for both.
    if (how.kind === "background") {
      place.settled();
      state.pending = expected;
    }
    const abort = new AbortController();
    const signal = how.signal ? AbortSignal.any([how.signal, abort.signal]) : abort.signal;
    const entry = { kind: how.kind, abort, end: this.#attempt(how, signal) };
    state.running = entry;
    running.add(entry);
    try {
      return await entry.end;
    } finally {
      running.delete(entry);
      state.running = undefined;
      state.pending = undefined;
      if (how.kind === "blocking" && how.limits !== "none") place.settled();
    }
  }

  async #attempt(how: Attempt, signal: AbortSignal): Promise<CompactionEnd> {
    const { place, state, desk, options } = this.#parts;
    const { trigger, focus } = how;
    const { compactOnce } = await import("./compaction-call.ts");
    const usage = await this.#measure();
    const end = await compactOnce(place, desk, { trigger, focus, signal, usage, cut: this.#cut(how.extent) });
    if (end.success) state.replaced = new Map();
    const isEnough = end.success && fullness(await this.#measure()) < options.backgroundThreshold;
    state.failures = isEnough ? 0 : state.failures + 1;
    if (!isEnough) state.restsUntil = state.calls + Math.min(MAX_REST_CALLS, REST_CALLS * 2 ** (state.failures - 1));
    return end;
  }

  /** Whether a summary is worth a model call now. */
  #isDue(): boolean {
    const { place, state, options } = this.#parts;
    const { history } = place;
    if (state.calls < state.restsUntil || history.length < MIN_MESSAGES.auto) return false;
    const cut = this.#cut();
    const won = history.sizes.slice(0, cut).reduce((sum, size) => sum + size, 0);
    return cut >= 2 && won >= WORTH_SHARE * options.backgroundThreshold * this.usage().tokenLimit;
  }

  #cut(extent: Attempt["extent"] = "all but the newest"): number {
    const { place, desk, options } = this.#parts;
    const { history, model } = place;
    const { conversation, sizes } = history;
    const { tokenLimit, systemTokens, toolDefinitionsTokens } = this.usage();
    const begins = tokenLimit * options.backgroundThreshold - systemTokens - toolDefinitionsTokens;
    const room = extent === "all" ? 0 : Math.max(0, begins) / desk.meter.factor(model);
    const open = new Set(conversation.openCalls.map(({ call }) => call.toolCallId));
    return chooseCut(
      conversation.entries.map(({ message }) => message),
      sizes,
      {
        tailTokens: room * TAIL_SHARE,
        lastTurnTokens: room * LAST_TURN_SHARE,
        isOpen: (toolCallId) => open.has(toolCallId),
      },
    );
  }

  /** A provider said that the request is too long, so its window is smaller than we thought. */
  async #shrink(signal: AbortSignal): Promise<void> {
    const { state, options, place } = this.#parts;
    const { currentTokens, tokenLimit } = await this.#measure();
    state.limit = { model: place.model.model, tokens: Math.min(tokenLimit, currentTokens) };
    if (state.running) await ended(state.running.end, signal);
    else if (options.enabled && this.#cut() >= 1) {
      await this.#compact({ trigger: "context_limit_retry", kind: "blocking", signal, limits: "none" });
    }
    if (fullness(await this.#measure("shown")) >= FULL) await this.#shorten(SHORTENED_TO);
  }

  /** The last resort: the conversation stays whole, the request does not. */
  async #shorten(share: number): Promise<void> {
    const { place, state, desk } = this.#parts;
    const before = await this.#measure("shown");
    const room = share * before.tokenLimit - before.systemTokens - before.toolDefinitionsTokens;
    const messages = await place.history.messages();
    const replaced = replacementsToFit(messages, Math.max(0, room / desk.meter.factor(place.model)), state.replaced);
    if (replaced.size === state.replaced.size) return;
    state.replaced = replaced;
    const after = await this.#measure("shown");
    const tokensRemoved = before.conversationTokens - after.conversationTokens;
    await place.emit("session.truncation", {
      performedBy: "troupe",
      tokenLimit: before.tokenLimit,
      preTruncationTokensInMessages: before.conversationTokens,
      preTruncationMessagesLength: before.messagesLength,
      postTruncationTokensInMessages: after.conversationTokens,
      postTruncationMessagesLength: after.messagesLength,
      tokensRemovedDuringTruncation: tokensRemoved,
      messagesRemovedDuringTruncation: before.messagesLength - after.messagesLength,
    });
  }

  /** The whole conversation, or what of it is shown to the model. */
  async #measure(what: "whole" | "shown" = "whole"): Promise<ContextUsage> {
    const { place, desk, state } = this.#parts;
    await place.history.messages();
    if (what === "whole" || state.replaced.size === 0) return this.usage();
    const messages = await this.messages();
    const tokens = messages.reduce((sum, message) => sum + messageTokens(message), 0);
    const { model, shown } = place;
    const { tokenLimit } = this.usage();
    return { ...desk.meter.measure({ model, offer: shown, history: { tokens, length: messages.length } }), tokenLimit };
  }

  #expected(): Expected {
    const { model } = this.#parts.place;
    const { currentTokens: inputTokens } = this.usage();
    const outputTokens = USUAL_SUMMARY_TOKENS;
    return {
      tokens: () => inputTokens + outputTokens,
      costUsd: () => model.costOf({ ...noUsage, inputTokens, outputTokens }),
    };
  }
}

interface Attempt {
  readonly trigger: CompactionTrigger;
  readonly kind: "background" | "blocking";
  readonly focus?: string | undefined;
  readonly extent?: "all" | "all but the newest";
  /** "none": a call of the agent is under way and has set aside already. */
  readonly limits?: "none";
  readonly signal?: AbortSignal;
}

const refused = (error: string): CompactionEnd => ({ success: false, error, started: false });

const fullness = ({ currentTokens, tokenLimit }: ContextUsage): number => currentTokens / tokenLimit;

const sumOf = (a: number | null, b: number | null): number | null => (a === null || b === null ? null : a + b);

/** It has ended, or nobody waits for it any more. */
async function ended(end: Promise<unknown>, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const stop = (): void => resolve();
    signal.addEventListener("abort", stop, { once: true });
    end.then(stop, stop).finally(() => signal.removeEventListener("abort", stop));
  });
}
/** Of a conversation nobody has looked at yet. */
export function freshState(): ContextState {
  return {
    running: undefined,
    pending: undefined,
    calls: 0,
    failures: 0,
    restsUntil: 0,
    limit: undefined,
    replaced: new Map(),
  };
}
