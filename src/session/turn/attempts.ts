import type { LoopOutcome } from "../../loop/loop.ts";
import type { PendingTurn, Run } from "../../loop/run.ts";
import type { EventData, SessionEvent } from "../../protocol/event.ts";
import { offerMoreCredits } from "../budget/credits.ts";
import type { Expected } from "../budget/reservations.ts";
import type { ModelSwitch } from "../model-switch.ts";
import type { RunSettings } from "../run-settings.ts";
import { transcriptOf } from "../transcript.ts";
import type { AnswerRunnerParts } from "./answer-runner.ts";
import { gatedStop } from "./gated-stop.ts";
import type { BoundHooks } from "./hooked-calls.ts";
import { hookPrompt, promptIsHooked } from "./hooked-prompt.ts";
import { hookedStop, isRetried } from "./hooked-run.ts";
import type { LimitedTools } from "./limited-tools.ts";
import type { AnswerRules } from "./pending-messages.ts";
import { formPrompt, shownAs } from "./prompt-form.ts";
import { startRun } from "./start-run.ts";

/** The rules of a message, and its id if one started the run. */
export type RunRules = AnswerRules & {
  readonly messageId?: string | undefined;
  readonly limits?: LimitedTools | undefined;
};

interface AttemptsOptions {
  readonly rules: RunRules;
  readonly signal: AbortSignal;
  /** The turn of an earlier process that the first attempt resumes. */
  readonly toResume: PendingTurn | undefined;
}

/**
 * The runs that answer one message. There is more than one if a hook retries a failed model call, or if the user grants
 * more credits or another model after a limit.
 */
export class Attempts {
  readonly #parts: AnswerRunnerParts & { readonly modelSwitch: ModelSwitch };
  readonly #rules: RunRules;
  readonly #signal: AbortSignal;
  #toResume: PendingTurn | undefined;
  #stop: { readonly beforeStopping: Run["beforeStopping"]; end(): void } | undefined;
  #retries = 0;

  constructor(
    parts: AnswerRunnerParts & { readonly modelSwitch: ModelSwitch },
    { rules, signal, toResume }: AttemptsOptions,
  ) {
    this.#parts = parts;
    this.#rules = rules;
    this.#signal = signal;
    this.#toResume = toResume;
  }

  /** Returns the next run. */
  next(): Run {
    const { settings, emit, hooks, history, budget, pending, broker } = this.#parts;
    const { log, limits = {} } = settings;
    const [rules, signal, left] = [this.#rules, this.#signal, this.#toResume];
    this.#stop ??= this.#newStop();
    return startRun({
      ...settings,
      ports: { ...settings.ports, ...this.#agentPorts() },
      emit,
      hooks,
      history,
      broker,
      signal,
      pendingMessages: {
        deliver: (say) => pending.deliver(say, (prompt) => steeringMessages(prompt, { hooks, signal, settings })),
      },
      source: "top_level",
      cacheKey: log.sessionId,
      limitReached: (expected: Expected) => budget.reserve(undefined, { limits }, expected),
      usageCounted: () => budget.release(undefined),
      clientCalls: broker,
      turnsBefore: left && (Number(left.turnId) + 1 || 1),
      limitedTools: rules.limits,
      requestHeaders: rules.headers,
      responseFormat: rules.responseFormat,
      trace: rules.trace,
      originatingMessageId: rules.messageId,
      beforeStopping: this.#stop.beforeStopping,
    });
  }

  /** Returns the final outcome, or undefined if another attempt follows. */
  async judge(outcome: LoopOutcome): Promise<LoopOutcome | undefined> {
    const { settings, hooks, emit, budget, broker, modelSwitch } = this.#parts;
    const signal = this.#signal;
    if (await isRetried(outcome, { hooks, emit, signal, retries: this.#retries++ })) return undefined;
    this.close();
    if (outcome.kind === "limit") {
      const offer = { credits: settings.credits, budget, broker, emit, signal };
      if (await offerMoreCredits(outcome.reached, offer)) return undefined;
      return signal.aborted ? { kind: "aborted" } : outcome;
    }
    if (outcome.kind !== "error") return outcome;
    const isSwitched = await modelSwitch.offer(outcome.error, {
      modelSelection: settings.modelSelection,
      broker,
      signal,
    });
    if (signal.aborted) return { kind: "aborted" };
    return isSwitched ? undefined : outcome;
  }

  /** Releases the budget of the last attempt. The next one starts without its retries and blocks. */
  close(): void {
    this.#stop?.end();
    this.#stop = undefined;
    this.#toResume = undefined;
    this.#retries = 0;
    this.#parts.budget.release(undefined);
  }

  #agentPorts() {
    const { agents } = this.#rules;
    return agents ? this.#parts.agentPortsFor(agents) : this.#parts.agentPorts;
  }

  #newStop() {
    const { settings, log, emit, hooks } = this.#parts;
    const signal = this.#signal;
    const otherwise = hookedStop({ hooks, emit, signal, transcriptPath: transcriptOf(settings.log) });
    const { gate } = this.#rules;
    if (!gate) return { beforeStopping: otherwise, end: () => undefined };
    const seen = log.collect(isMainCall);
    const events = () => seen.events;
    const beforeStopping = gatedStop({ gate: gate.ask, name: gate.name, events, emit, otherwise });
    return { beforeStopping, end: () => seen.stop() };
  }
}

/** Gates judge by the calls of the main agent. Other events of a long answer are not held for them. */
const isMainCall = ({ agentId, type }: SessionEvent): boolean =>
  agentId === undefined && (type === "tool.execution_start" || type === "tool.execution_complete");

/** Runs the prompt hooks for a message to a working agent. */
async function steeringMessages(
  prompt: EventData<"user.message">,
  context: { hooks: BoundHooks | undefined; signal: AbortSignal; settings: RunSettings },
): Promise<readonly EventData<"user.message">[]> {
  const { hooks, signal, settings } = context;
  const form = (words: string): Promise<string> => formPrompt(words, prompt.attachments, settings);
  if (!promptIsHooked(hooks, false)) return [await shownAs(prompt, form)];
  const { before, prompt: message, after, answer } = await hookPrompt(hooks, prompt, { signal, form });
  // A hook cannot answer instead of a working model; its answer is passed on as context.
  const hookAnswer = answer ? [{ content: answer, source: "hook-userPromptSubmitted" }] : [];
  return [...before, message, ...after, ...hookAnswer];
}
