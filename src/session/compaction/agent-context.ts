/** The context of one agent. It is measured before each model call and compacted in time. */

import { chooseCut } from "../../context/compact-cut.ts";
import { type Replacements, replacedMessages, replacementsToFit } from "../../context/compact-shorten.ts";
import { messageTokens } from "../../context/compact-tokens.ts";
import { defined } from "../../lib/defined.ts";
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
import type { BoundHooks } from "../turn/hooked-calls.ts";
import type { CompactionEnd, CompactionServices } from "./compaction-call.ts";
import type { CompactionOptions } from "./compaction-options.ts";
import type { ContextReport } from "./context-report.ts";
import type { ContextSize } from "./context-usage.ts";
import { afterOverflow } from "./overflow.ts";

/** The parts of one agent's run that compaction needs. */
export interface CompactionRun {
  readonly log: { readonly directory: string };
  readonly stamp: Stamp;
  readonly model: SessionModel;
  /** The system prompt and tools that the model receives. */
  readonly shown: Pick<PromptAndTools, "system" | "tools">;
  readonly emit: Emit;
  readonly history: History;
  readonly hooks: BoundHooks | undefined;
  readonly cacheKey: string;
  readonly origin: RequestOrigin;
  readonly streaming?: boolean | undefined;
  readonly replies?: "streamed" | "whole" | undefined;
  readonly redactor?: Redactor | undefined;
  limitReached(expected: Expected): LimitReached | undefined;
  usageCounted(): void;
}

/** State of one conversation that lasts across runs. */
export interface ContextState {
  running:
    | {
        readonly kind: "background" | "blocking";
        readonly abort: AbortController;
        readonly end: Promise<CompactionEnd>;
      }
    | undefined;
  /** Expected usage of the running compaction, until a call of the agent reserves it. */
  pending: Expected | undefined;
  calls: number;
  failures: number;
  /** No attempt before this call number. */
  restsUntil: number;
  /** A model's actual limit, if it turned out to be smaller than its window. */
  limit: { readonly model: string; readonly tokens: number } | undefined;
  replaced: Replacements;
}

/** The newest turns are not summarised, up to this share of the conversation's room below the threshold. */
const TAIL_SHARE = 0.25;
const LAST_TURN_SHARE = 0.5;
/** A summary must free at least this share of the background threshold to be worth a model call. */
const WORTH_SHARE = 0.1;
/** The minimum number of messages. Automatic compaction starts with the user's second message. */
const MIN_MESSAGES = { auto: 3, manual: 2 };
const FULL = 0.95;
const SHORTENED_TO = 0.75;
const REST_CALLS = 4;
const MAX_REST_CALLS = 32;
const USUAL_SUMMARY_TOKENS = 2_048;

interface AgentContextParts {
  readonly run: CompactionRun;
  readonly state: ContextState;
  readonly options: CompactionOptions;
  readonly services: CompactionServices;
  readonly running: Set<NonNullable<ContextState["running"]>>;
}

/** The context of one agent during one run. */
export class AgentContext {
  readonly #parts: AgentContextParts;
  /** The model's provider, with one retry on a smaller context if a request is too long. */
  readonly provider: Provider;
  #measured = 0;

  constructor(parts: AgentContextParts) {
    this.#parts = parts;
    this.provider = afterOverflow(parts.run.model.provider, {
      shrink: (signal) => this.#shrink(signal),
      messages: () => this.messages(),
    });
  }

  /** Called before each model call. Starts a compaction or waits for one, depending on the thresholds. */
  async beforeModelCall(signal: AbortSignal): Promise<void> {
    const { state, options } = this.#parts;
    state.calls++;
    const share = fullness(await this.#measure());
    if (options.enabled && share >= options.bufferThreshold) {
      if (state.running) await untilEnded(state.running.end, signal);
      else if (this.#isDue()) await this.#compact({ trigger: "threshold", kind: "blocking", signal });
    } else if (options.enabled && share >= options.backgroundThreshold && !state.running && this.#isDue()) {
      void this.#compact({ trigger: "threshold", kind: "background" }).catch(() => undefined);
    }
    if (fullness(await this.#measure("shown")) >= FULL) await this.#shorten(SHORTENED_TO);
  }

  /** Returns the conversation as it is sent in a request. */
  async messages(): Promise<readonly Message[]> {
    return replacedMessages(await this.#parts.run.history.messages(), this.#parts.state.replaced);
  }

  /** Returns the usage as of the last reading of the history. */
  usage(): ContextSize {
    const { run, services, state } = this.#parts;
    const { model, shown, history } = run;
    const usage = services.meter.measure({ model, promptAndTools: shown, history });
    if (state.limit?.model !== model.model) return usage;
    return { ...usage, tokenLimit: Math.min(usage.tokenLimit, state.limit.tokens) };
  }

  /** Returns a breakdown of the context for users. */
  async report(): Promise<ContextReport> {
    const { run, services, options } = this.#parts;
    const { contextReport } = await import("./context-report.ts");
    const messages = await this.messages();
    const { model, shown } = run;
    return contextReport({ model, shown, messages, usage: this.usage(), meter: services.meter, options });
  }

  /** Records the measured size of a request that is being sent. */
  sent({ currentTokens }: Pick<ContextSize, "currentTokens">): void {
    this.#measured = this.#parts.state.replaced.size > 0 ? 0 : currentTokens;
  }

  /** Calibrates the estimate with the provider's count for the last request. */
  counted(usage: Usage): void {
    const { services, run } = this.#parts;
    if (this.#measured > 0) services.meter.learn(run.model, { measured: this.#measured, reported: usage.inputTokens });
  }

  /** Returns the expected usage of the next call plus that of a running compaction. */
  withPending(expected: Expected): Expected {
    const { pending } = this.#parts.state;
    if (!pending) return expected;
    return {
      tokens: () => expected.tokens() + pending.tokens(),
      costUsd: () => sumOf(expected.costUsd(), pending.costUsd()),
    };
  }

  /** Compacts now, on request. Cancels a background compaction. Refuses if a blocking one is running. */
  async compact(
    request: { readonly focus?: string; readonly trigger?: CompactionTrigger; readonly signal?: AbortSignal } = {},
  ): Promise<CompactionEnd> {
    const { state } = this.#parts;
    const { focus, trigger = "manual", signal } = request;
    if (state.running?.kind === "blocking") return refused("A compaction is under way already.");
    await this.cancelBackground();
    const { messagesLength } = await this.#measure();
    if (messagesLength < MIN_MESSAGES.manual || this.#cut("all") < 1) {
      return refused("There is too little in the conversation to summarise.");
    }
    return this.#compact({ trigger, kind: "blocking", focus, extent: "all", ...defined({ signal }) });
  }

  /** Cancels a background compaction. Returns true if there was one. */
  async cancelBackground(): Promise<boolean> {
    const { running } = this.#parts.state;
    if (running?.kind !== "background") return false;
    running.abort.abort();
    await running.end.catch(() => undefined);
    return true;
  }

  /** Aborts a blocking compaction. Returns true if there was one. */
  abortBlocking(): boolean {
    const { running } = this.#parts.state;
    if (running?.kind !== "blocking") return false;
    running.abort.abort();
    return true;
  }

  async #compact(attempt: Attempt): Promise<CompactionEnd> {
    const { run, state, running } = this.#parts;
    const expected = this.#expected();
    const reached = attempt.limits === "none" ? undefined : run.limitReached(expected);
    if (reached) return refused(reached.message);
    // The agent's own calls continue meanwhile and reserve for both.
    if (attempt.kind === "background") {
      run.usageCounted();
      state.pending = expected;
    }
    const abort = new AbortController();
    const signal = attempt.signal ? AbortSignal.any([attempt.signal, abort.signal]) : abort.signal;
    const entry = { kind: attempt.kind, abort, end: this.#attempt(attempt, signal) };
    state.running = entry;
    running.add(entry);
    try {
      return await entry.end;
    } finally {
      running.delete(entry);
      state.running = undefined;
      state.pending = undefined;
      if (attempt.kind === "blocking" && attempt.limits !== "none") run.usageCounted();
    }
  }

  async #attempt(attempt: Attempt, signal: AbortSignal): Promise<CompactionEnd> {
    const { run, state, services, options } = this.#parts;
    const { trigger, focus } = attempt;
    const { compactOnce } = await import("./compaction-call.ts");
    const usage = await this.#measure();
    const end = await compactOnce(run, services, { trigger, focus, signal, usage, cut: this.#cut(attempt.extent) });
    if (end.success) state.replaced = new Map();
    const isEnough = end.success && fullness(await this.#measure()) < options.backgroundThreshold;
    state.failures = isEnough ? 0 : state.failures + 1;
    if (!isEnough) state.restsUntil = state.calls + Math.min(MAX_REST_CALLS, REST_CALLS * 2 ** (state.failures - 1));
    return end;
  }

  /** Whether a summary is currently worth a model call. */
  #isDue(): boolean {
    const { run, state, options } = this.#parts;
    const { history } = run;
    if (state.calls < state.restsUntil || history.length < MIN_MESSAGES.auto) return false;
    const cut = this.#cut();
    const won = history.sizes.slice(0, cut).reduce((sum, size) => sum + size, 0);
    return cut >= 2 && won >= WORTH_SHARE * options.backgroundThreshold * this.usage().tokenLimit;
  }

  #cut(extent: Attempt["extent"] = "all but the newest"): number {
    const { run, services, options } = this.#parts;
    const { history, model } = run;
    const { conversation, sizes } = history;
    const { tokenLimit, systemTokens, toolDefinitionsTokens } = this.usage();
    const begins = tokenLimit * options.backgroundThreshold - systemTokens - toolDefinitionsTokens;
    const room = extent === "all" ? 0 : Math.max(0, begins) / services.meter.factor(model);
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

  /** Handles a provider's error that the request is too long: lowers the known limit and makes the context smaller. */
  async #shrink(signal: AbortSignal): Promise<void> {
    const { state, options, run } = this.#parts;
    const { currentTokens, tokenLimit } = await this.#measure();
    state.limit = { model: run.model.model, tokens: Math.min(tokenLimit, currentTokens) };
    if (state.running) await untilEnded(state.running.end, signal);
    else if (options.enabled && this.#cut() >= 1) {
      await this.#compact({ trigger: "context_limit_retry", kind: "blocking", signal, limits: "none" });
    }
    if (fullness(await this.#measure("shown")) >= FULL) await this.#shorten(SHORTENED_TO);
  }

  /** Last resort: replaces old parts in requests. The conversation itself stays complete. */
  async #shorten(share: number): Promise<void> {
    const { run, state, services } = this.#parts;
    const before = await this.#measure("shown");
    const room = share * before.tokenLimit - before.systemTokens - before.toolDefinitionsTokens;
    const messages = await run.history.messages();
    const replaced = replacementsToFit(messages, Math.max(0, room / services.meter.factor(run.model)), state.replaced);
    if (replaced.size === state.replaced.size) return;
    state.replaced = replaced;
    const after = await this.#measure("shown");
    const tokensRemoved = before.conversationTokens - after.conversationTokens;
    await run.emit("session.truncation", {
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

  /** Measures the whole conversation, or only the part that the model is shown. */
  async #measure(extent: "whole" | "shown" = "whole"): Promise<ContextSize> {
    const { run, services, state } = this.#parts;
    await run.history.messages();
    if (extent === "whole" || state.replaced.size === 0) return this.usage();
    const messages = await this.messages();
    const tokens = messages.reduce((sum, message) => sum + messageTokens(message), 0);
    const { model, shown } = run;
    const { tokenLimit } = this.usage();
    return {
      ...services.meter.measure({ model, promptAndTools: shown, history: { tokens, length: messages.length } }),
      tokenLimit,
    };
  }

  #expected(): Expected {
    const { model } = this.#parts.run;
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
  /** "none": a running call of the agent has already reserved the amount. */
  readonly limits?: "none";
  readonly signal?: AbortSignal;
}

const refused = (error: string): CompactionEnd => ({ success: false, error, started: false });

const fullness = ({ currentTokens, tokenLimit }: ContextSize): number => currentTokens / tokenLimit;

const sumOf = (a: number | null, b: number | null): number | null => (a === null || b === null ? null : a + b);

/** Resolves when `end` settles or the signal aborts. */
async function untilEnded(end: Promise<unknown>, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const stop = (): void => resolve();
    signal.addEventListener("abort", stop, { once: true });
    end.then(stop, stop).finally(() => signal.removeEventListener("abort", stop));
  });
}
/** Returns the state of a new conversation. */
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
