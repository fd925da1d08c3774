/**
 * This folder turns messages into runs of the loop: accepting and queueing messages, running turns and hooks, and
 * concluding with an outcome. `TurnRunner` is its main part.
 */
import type { Redactor } from "../../lib/redact/redact.ts";
import { continueLoop, type Outcome as LoopOutcome, runLoop } from "../../loop/loop.ts";
import type { PendingTurn } from "../../loop/run.ts";
import { type RequestedEnd, runRequestedCall } from "../../loop/run-calls.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { Emit, EventData } from "../../protocol/event.ts";
import type { ToolCall } from "../../protocol/message.ts";
import type { AgentPorts } from "../agents/agent-pool.ts";
import type { Budget } from "../budget/budget.ts";
import { creditsStatus, offerMoreCredits, UsageCheckpoints } from "../budget/credits.ts";
import type { Expected } from "../budget/reservations.ts";
import type { AgentContext } from "../compaction/agent-context.ts";
import type { Conversation } from "../conversation.ts";
import type { EventLog } from "../event-log.ts";
import type { History } from "../history.ts";
import { modelName } from "../model-selection.ts";
import { ModelSwitch } from "../model-switch.ts";
import { closeOpenCalls } from "../recover.ts";
import type { Broker } from "../requests/broker.ts";
import { originOf } from "../requests/request-origin.ts";
import type { RunSettings } from "../run-settings.ts";
import type { SessionOptions } from "../session-options.ts";
import { transcriptOf } from "../transcript.ts";
import { acceptPrompt, takesTime, untilAborted } from "./accept-prompt.ts";
import { conclude } from "./conclude.ts";
import { gatedStop } from "./gated-stop.ts";
import type { SessionHooks } from "./hooked-calls.ts";
import { hookPrompt, promptIsHooked } from "./hooked-prompt.ts";
import { endReason, hookedRun, hookedStop } from "./hooked-run.ts";
import { LimitedTools } from "./limited-tools.ts";
import {
  type Incoming,
  type KeptRules,
  type PendingMessages,
  queuedMessage,
  type TurnRules,
} from "./pending-messages.ts";
import { formed, shownAs } from "./prompt-form.ts";
import type { SessionPreamble } from "./session-preamble.ts";
import { startRun } from "./start-run.ts";

export type Outcome = LoopOutcome | { readonly kind: "failed"; readonly error: Error };

/** The sender of the message that started the work, waiting for its acceptance. */
export interface Acceptance {
  readonly messageId: string;
  accepted(): void;
  refused(error: Error): void;
}

/** The rules of a message, and its id if one started the run. */
type RunRules = TurnRules & { readonly messageId?: string; readonly limits?: LimitedTools | undefined };

interface TurnRunnerParts {
  readonly settings: RunSettings & Pick<SessionOptions, "commandRules">;
  readonly log: EventLog;
  readonly emit: Emit;
  readonly conversation: Conversation;
  readonly history: History;
  readonly introduction: SessionPreamble;
  readonly budget: Budget;
  readonly inbox: PendingMessages;
  readonly broker: Broker;
  readonly hooks: SessionHooks | undefined;
  /** The agents that work for the main agent, if it may have any. */
  readonly company: AgentPorts | undefined;
  /** Returns the same, plus agents that the user has named and that models cannot choose. */
  companyNaming(agents: readonly string[]): AgentPorts | undefined;
  /** May replace the outcome of a message. */
  settle(outcome: Outcome): Promise<Outcome>;
  /** Rebuilds the conversation from the log. */
  refold(): void;
  /** Called when a message is in the log and its answer begins. */
  onTaken(messageId: string): void;
}

/** Answers messages with the main agent, one at a time. Failures become outcomes and events and are never thrown. */
export class TurnRunner {
  readonly #parts: TurnRunnerParts;
  readonly #source: "new" | "resume";
  readonly #switch = new ModelSwitch();
  readonly #checkpoints: UsageCheckpoints;
  #begun = false;
  #last: Outcome | undefined;

  constructor(parts: TurnRunnerParts) {
    this.#parts = parts;
    this.#source = parts.log.events.length > 0 ? "resume" : "new";
    this.#checkpoints = new UsageCheckpoints(parts.budget, parts.log.events);
  }

  /** Whether this process has accepted a message. */
  get begun(): boolean {
    return this.#begun;
  }

  async answer(message: Incoming, signal: AbortSignal, acceptance?: Acceptance): Promise<Outcome> {
    this.#last = await this.#parts.settle(await this.#answer(message, signal, acceptance));
    return this.#last;
  }

  /** Resumes a turn that an earlier process left. */
  async goOn(turn: PendingTurn, signal: AbortSignal): Promise<Outcome> {
    this.#last = await this.#parts.settle(await this.#goOn(turn, signal));
    return this.#last;
  }

  async #goOn(turn: PendingTurn, signal: AbortSignal): Promise<Outcome> {
    const { settings, emit, introduction } = this.#parts;
    try {
      await this.#parts.log.repair();
      const { offer, model } = settings;
      await untilAborted(offer.ready?.(signal), signal);
      introduction.before(emit, { model: modelName(model), offer });
      const outcome = await this.#run(signal, await this.#rulesOfLeft(), turn);
      await conclude(outcome, { emit, seat: settings.modelSelection });
      return redacted(outcome, settings.redactor);
    } catch (cause) {
      return this.#failed(cause);
    }
  }

  /** The main agent's context. */
  get context(): AgentContext | undefined {
    const { settings, emit, hooks, history, budget } = this.#parts;
    const { log, limits = {}, offer } = settings;
    return settings.compactions?.of({
      ...settings,
      shown: offer,
      ...{ emit, hooks, history },
      cacheKey: log.sessionId,
      origin: originOf(log.sessionId),
      limitReached: () => budget.reached(limits),
      settled: () => undefined,
    });
  }

  /** Runs one tool for a client, outside the conversation. */
  async callTool(call: ToolCall, signal: AbortSignal): Promise<RequestedEnd> {
    const { settings, emit, hooks, history, broker, company } = this.#parts;
    await this.#parts.log.repair();
    await untilAborted(settings.offer.ready?.(signal), signal);
    const run = startRun({
      ...settings,
      ports: { ...settings.ports, ...company },
      ...{ emit, hooks, history, broker, signal },
      inbox: { deliver: async () => undefined },
      source: "top_level",
      cacheKey: settings.log.sessionId,
      limitReached: () => undefined,
      settled: () => undefined,
      beforeStopping: async () => "stop",
    });
    return runRequestedCall(call, run);
  }

  /** Repairs the log after a failed write. Takes no time otherwise, so that events emitted together stay one write. */
  repair(): Promise<void> | undefined {
    return this.#parts.log.isBroken ? this.#parts.log.repair() : undefined;
  }

  /** Stores a waiting message. If that fails, withdraws it and throws. */
  async keepQueued(message: Incoming): Promise<void> {
    const repaired = this.repair();
    if (repaired) await repaired;
    try {
      await this.#parts.emit("troupe.message_queued", queuedMessage(message));
    } catch (error) {
      this.#unsay(message);
      throw error;
    }
  }

  /** Runs the `sessionEnd` hooks if a message was accepted, and emits the final cost. */
  async end(): Promise<void> {
    const { hooks } = this.#parts;
    if (this.#begun && hooks?.has("sessionEnd")) {
      await hooks.fire("sessionEnd", endReason(this.#last)).catch(() => undefined);
    }
    await this.checkpoint();
  }

  /** Emits the total cost. If that fails, it is emitted the next time. */
  async checkpoint(): Promise<void> {
    await this.#checkpoints.say(this.#parts.emit).catch(() => undefined);
  }

  async #answer(message: Incoming, signal: AbortSignal, acceptance?: Acceptance): Promise<Outcome> {
    const { settings, log, emit, hooks, introduction } = this.#parts;
    let waiting = acceptance;
    let taken = false;
    try {
      await log.repair();
      await this.#closeWhatIsOpen();
      const source = this.#begun ? undefined : this.#source;
      const rules = message.answering ?? (await this.#rulesFrom(message.rules));
      // A command's rules must also apply after a crash, so they are stored before the answer begins.
      if (waiting && (rules?.kept || takesTime({ offer: settings.offer, hooks, source }))) {
        await this.keepQueued(message);
        waiting.accepted();
        waiting = undefined;
      }
      await settings.modelSelection?.ready();
      const { offer, model } = settings;
      const delivery = acceptance ? "idle" : "queued";
      const most = settings.credits?.most;
      const status = most === undefined ? undefined : creditsStatus(most, this.#parts.budget);
      if (rules?.trace) settings.tracing?.expect(message.messageId, rules.trace);
      const limits = rules?.tools && new LimitedTools(rules.tools, settings.cwd);
      const deliverNotices = (say: Emit): Promise<void> =>
        this.#parts.inbox.deliverNotices(limits?.withoutAdvice(say) ?? say);
      const said = { source, delivery, signal, form: settings, status, deliverNotices } as const;
      const place = { emit, hooks, offer, introduction, model: modelName(model), ...said };
      const answer = await acceptPrompt(message, place);
      taken = true;
      this.#begun = true;
      waiting?.accepted();
      this.#parts.onTaken(message.messageId);
      const outcome = await (answer === undefined
        ? this.#run(signal, { ...rules, messageId: message.messageId, limits })
        : this.#say(answer));
      await conclude(outcome, { emit, seat: settings.modelSelection });
      return redacted(outcome, settings.redactor);
    } catch (cause) {
      return this.#failed(cause, taken ? undefined : (error) => this.#refuse(message, waiting, error));
    }
  }

  async #rulesFrom(kept: KeptRules | undefined): Promise<TurnRules | undefined> {
    return kept && this.#parts.settings.commandRules?.(kept);
  }

  /** Returns the rules of the message that an earlier process was answering. */
  async #rulesOfLeft(): Promise<RunRules> {
    const { log, settings } = this.#parts;
    const said = log.events.findLast(
      ({ type, agentId, data }) => type === "user.message" && agentId === undefined && data.interactionId !== undefined,
    );
    const messageId = said?.type === "user.message" ? said.data.interactionId : undefined;
    const queued = log.events.find(
      (event) => event.type === "troupe.message_queued" && event.data.messageId === messageId,
    );
    const rules = queued?.type === "troupe.message_queued" ? await this.#rulesFrom(queued.data.rules) : undefined;
    const limits = rules?.tools && new LimitedTools(rules.tools, settings.cwd);
    return { ...rules, ...(messageId !== undefined && { messageId }), limits };
  }

  #failed(cause: unknown, refuse?: (error: Error) => void): Outcome {
    const error = cause instanceof Error ? cause : new Error(String(cause));
    refuse?.(error);
    const errorType = error instanceof TroupeError && error.kind === "storage" ? "persistence" : "internal";
    const stack = error.stack === undefined ? {} : { stack: error.stack };
    this.#parts.log.announce("session.error", { errorType, message: error.message, ...stack });
    return redacted({ kind: "failed", error }, this.#parts.settings.redactor);
  }

  /** Runs the loop. After a limit, offers more credits or another model before the work ends. */
  async #run(signal: AbortSignal, rules: RunRules = {}, left?: PendingTurn): Promise<LoopOutcome> {
    const { settings, broker, budget, emit } = this.#parts;
    const { credits } = settings;
    for (let turn = left; ; turn = undefined) {
      const outcome = await this.#attempt(signal, rules, turn);
      if (outcome.kind === "limit") {
        if (await offerMoreCredits(outcome.reached, { credits, budget, broker, emit, signal })) continue;
        return signal.aborted ? { kind: "aborted" } : outcome;
      }
      if (outcome.kind !== "error") return outcome;
      const place = { seat: settings.modelSelection, broker, signal };
      const isSwitched = await this.#switch.offer(outcome.error, place);
      if (signal.aborted) return { kind: "aborted" };
      if (!isSwitched) return outcome;
    }
  }

  #attempt(signal: AbortSignal, rules: RunRules, left: PendingTurn | undefined): Promise<LoopOutcome> {
    const { settings, log: eventLog, emit, hooks, history, budget, inbox, broker, company } = this.#parts;
    const { log, limits = {} } = settings;
    const transcriptPath = transcriptOf(log);
    const parts = {
      ...settings,
      ports: { ...settings.ports, ...(rules.agents ? this.#parts.companyNaming(rules.agents) : company) },
      ...{ emit, hooks, history, broker, signal },
      inbox: { deliver: (say: Emit) => inbox.deliver(say, (prompt) => steered(prompt, { hooks, signal, settings })) },
      source: "top_level",
      cacheKey: log.sessionId,
      limitReached: (expected: Expected) => budget.reserve(undefined, { limits }, expected),
      settled: () => budget.settle(undefined),
      outside: broker,
      ...(left && { turnsBefore: Number(left.turnId) + 1 || 1 }),
      limitedTools: rules.limits,
      requestHeaders: rules.headers,
      responseFormat: rules.responseFormat,
      trace: rules.trace,
      ...(rules.messageId !== undefined && { originatingMessageId: rules.messageId }),
    } as const;
    const otherwise = hookedStop({ hooks, emit, signal, transcriptPath });
    const { gate } = rules;
    const seen = gate && eventLog.collect();
    const events = () => seen?.events ?? [];
    const beforeStopping = gate ? gatedStop({ gate: gate.ask, name: gate.name, events, emit, otherwise }) : otherwise;
    let turn = left;
    const run = (): Promise<LoopOutcome> => {
      const started = startRun({ ...parts, beforeStopping });
      const unfinished = turn;
      turn = undefined;
      return unfinished && !unfinished.isCutOff ? continueLoop(unfinished, started) : runLoop(started);
    };
    return hookedRun(run, { hooks, emit, signal })
      .catch((error: unknown): LoopOutcome => {
        // If a hook was running when the user aborted, the outcome is an abort.
        if (signal.aborted) return { kind: "aborted" };
        throw error;
      })
      .finally(() => {
        seen?.stop();
        budget.settle(undefined);
      });
  }

  /** Emits a hook's answer instead of the model's. */
  async #say(content: string): Promise<LoopOutcome> {
    const { emit, settings } = this.#parts;
    await emit("assistant.message", { messageId: settings.stamp.id("message"), content, toolRequests: [] });
    return { kind: "done", answer: content };
  }

  /** Handles a message that never reached the log: rejects it, or, if it was already acknowledged, keeps it waiting. */
  #refuse(message: Incoming, waiting: Acceptance | undefined, error: Error): void {
    this.#unsay(message);
    if (waiting) waiting.refused(error);
    else this.#parts.inbox.putBack(message);
  }

  /** Withdraws events that could not be written, so that no model sees a message that was reported as refused. */
  #unsay({ messageId, notice }: Incoming): void {
    const unsaid = this.#parts.log.unsay(
      (event) =>
        (event.type === "user.message" && event.data.interactionId === messageId) ||
        (event.type === "troupe.message_queued" && event.data.messageId === messageId) ||
        (event.type === "system.notification" && event.data.content === notice?.content),
    );
    if (unsaid) this.#parts.refold();
  }

  /** Ends a turn that failed because of an internal error, before the next one begins. */
  async #closeWhatIsOpen(): Promise<void> {
    const { conversation, emit } = this.#parts;
    await closeOpenCalls(conversation, emit);
    const { openTurn: turnId } = conversation;
    if (turnId !== undefined) await emit("assistant.turn_end", { turnId });
  }
}

/** Runs the prompt hooks for a message to a working agent. */
async function steered(
  prompt: EventData<"user.message">,
  place: { hooks: SessionHooks | undefined; signal: AbortSignal; settings: RunSettings },
): Promise<readonly EventData<"user.message">[]> {
  const { hooks, signal, settings } = place;
  const form = (words: string): Promise<string> => formed(words, prompt.attachments, settings);
  if (!promptIsHooked(hooks, false)) return [await shownAs(prompt, form)];
  const { before, prompt: heard, after, answer } = await hookPrompt(hooks, prompt, { signal, form });
  // A hook cannot answer instead of a working model; its answer is passed on as context.
  const said = answer ? [{ content: answer, source: "hook-userPromptSubmitted" }] : [];
  return [...before, heard, ...after, ...said];
}

/** Redacts an outcome, so that callers get the same text as the log. */
function redacted<T extends Outcome>(outcome: T, redactor: Redactor | undefined): T {
  if (!redactor) return outcome;
  if (outcome.kind === "done") return { ...outcome, answer: redactor.text(outcome.answer) };
  if (outcome.kind === "error" || outcome.kind === "failed") redactError(outcome.error, redactor);
  return outcome;
}

/** Redacts in place, because an error's class carries its kind. */
function redactError(error: Error & { hint?: string | undefined }, redactor: Redactor): void {
  const clean = (text: string): string => redactor.text(text);
  for (const name of ["message", "stack", "hint"] as const) {
    const text = error[name];
    if (typeof text === "string" && clean(text) !== text) {
      Object.defineProperty(error, name, { value: clean(text), configurable: true, writable: true });
    }
  }
}
