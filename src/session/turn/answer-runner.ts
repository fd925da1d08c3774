/**
 * This folder turns messages into runs of the loop: accepting and queueing messages, running turns and hooks, and
 * concluding with an outcome. `AnswerRunner` is its main part.
 */
import type { Redactor } from "../../lib/redact/redact.ts";
import { continueLoop, type LoopOutcome, runLoop } from "../../loop/loop.ts";
import type { PendingTurn } from "../../loop/run.ts";
import { type RequestedEnd, runRequestedCall } from "../../loop/run-calls.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { Emit } from "../../protocol/event.ts";
import type { ToolCall } from "../../protocol/message.ts";
import type { AgentPorts } from "../agents/agent-pool.ts";
import type { Budget } from "../budget/budget.ts";
import { CostEmitter, creditsStatus } from "../budget/credits.ts";
import type { AgentContext } from "../compaction/agent-context.ts";
import type { Conversation } from "../conversation.ts";
import type { EventLog } from "../event-log.ts";
import type { History } from "../history.ts";
import { modelName } from "../model-selection.ts";
import { ModelSwitch } from "../model-switch.ts";
import { closeOpen } from "../recover.ts";
import type { Broker } from "../requests/broker.ts";
import { requestOrigin } from "../requests/request-origin.ts";
import type { RunSettings } from "../run-settings.ts";
import type { SessionOptions } from "../session-options.ts";
import { acceptPrompt, awaitUnlessAborted, takesTime } from "./accept-prompt.ts";
import { Attempts, type RunRules } from "./attempts.ts";
import { conclude } from "./conclude.ts";
import type { BoundHooks } from "./hooked-calls.ts";
import { endReason } from "./hooked-run.ts";
import { LimitedTools } from "./limited-tools.ts";
import {
  type AnswerRules,
  type PendingMessage,
  type PendingMessages,
  queuedMessage,
  type StoredRules,
} from "./pending-messages.ts";
import type { SessionPreamble } from "./session-preamble.ts";
import { startRun } from "./start-run.ts";

export type Outcome = LoopOutcome | { readonly kind: "failed"; readonly error: Error };

/** The sender of the message that started the work, waiting for its acceptance. */
export interface SenderCallbacks {
  readonly messageId: string;
  accepted(): void;
  refused(error: Error): void;
}

/** How far a message has come. */
interface Delivery {
  /** Its sender, until the message is accepted. */
  waiting: SenderCallbacks | undefined;
  /** Whether it is in the log. */
  isLogged: boolean;
}

interface AcceptedMessage {
  readonly rules: RunRules;
  readonly answer?: string | undefined;
}

export interface AnswerRunnerParts {
  readonly settings: RunSettings & Pick<SessionOptions, "commandRules">;
  readonly log: EventLog;
  readonly emit: Emit;
  readonly conversation: Conversation;
  readonly history: History;
  readonly preamble: SessionPreamble;
  readonly budget: Budget;
  readonly pending: PendingMessages;
  readonly broker: Broker;
  readonly hooks: BoundHooks | undefined;
  /** The agents that work for the main agent, if it may have any. */
  readonly agentPorts: AgentPorts | undefined;
  /** Returns the same, plus agents that the user has named and that models cannot choose. */
  agentPortsFor(agents: readonly string[]): AgentPorts | undefined;
  /** May replace the outcome of a message. */
  replaceOutcome(outcome: Outcome): Promise<Outcome>;
  /** Rebuilds the conversation from the log. */
  refold(): void;
  /** Called when a message is in the log and its answer begins. */
  onAnswerBegins(messageId: string): void;
}

/** Answers messages with the main agent, one at a time. Failures become outcomes and events and are never thrown. */
export class AnswerRunner {
  readonly #parts: AnswerRunnerParts;
  readonly #source: "new" | "resume";
  readonly #switch = new ModelSwitch();
  readonly #costEmitter: CostEmitter;
  #begun = false;
  #last: Outcome | undefined;

  constructor(parts: AnswerRunnerParts) {
    this.#parts = parts;
    this.#source = parts.log.events.length > 0 ? "resume" : "new";
    this.#costEmitter = new CostEmitter(parts.budget, parts.log.events);
  }

  /** Whether this process has accepted a message. */
  get begun(): boolean {
    return this.#begun;
  }

  /** Answers a message, or resumes the one that an earlier process left. Retries are in `Attempts`. */
  async answer(
    work: PendingMessage | PendingTurn,
    signal: AbortSignal,
    acceptance?: SenderCallbacks,
  ): Promise<Outcome> {
    const { settings, emit } = this.#parts;
    const [message, toResume] = "messageId" in work ? [work, undefined] : [undefined, work];
    const delivery: Delivery = { waiting: acceptance, isLogged: false };
    let ended: Outcome;
    try {
      let outcome: LoopOutcome | undefined;
      await this.#parts.log.repair();
      const begun = await (message ? this.#accept(message, signal, delivery) : this.#resume(signal));
      if (begun.answer !== undefined) outcome = await this.#emitAnswer(begun.answer);
      const attempts = new Attempts(
        { ...this.#parts, modelSwitch: this.#switch },
        { rules: begun.rules, signal, toResume },
      );
      try {
        for (let turn = toResume; !outcome; turn = undefined) {
          const run = attempts.next();
          outcome = await attempts.judge(await (turn && !turn.isCutOff ? continueLoop(turn, run) : runLoop(run)));
        }
      } catch (error) {
        // If a hook was running when the user aborted, the outcome is an abort.
        if (!signal.aborted) throw error;
        outcome = { kind: "aborted" };
      } finally {
        attempts.close();
      }
      await conclude(outcome, { emit, modelSelection: settings.modelSelection });
      ended = redacted(outcome, settings.redactor);
    } catch (cause) {
      const isRefused = message && !delivery.isLogged;
      ended = this.#failure(cause, isRefused ? (error) => this.#refuse(message, delivery.waiting, error) : undefined);
    }
    this.#last = await this.#parts.replaceOutcome(ended);
    return this.#last;
  }

  /** The main agent's context. */
  get context(): AgentContext | undefined {
    const { settings, emit, hooks, history, budget } = this.#parts;
    const { log, limits = {}, promptAndTools } = settings;
    return settings.compactions?.of({
      ...settings,
      shown: promptAndTools,
      emit,
      hooks,
      history,
      cacheKey: log.sessionId,
      origin: requestOrigin(log.sessionId),
      limitReached: () => budget.reached(limits),
      usageCounted: () => undefined,
    });
  }

  /** Runs one tool for a client, outside the conversation. */
  async callTool(call: ToolCall, signal: AbortSignal): Promise<RequestedEnd> {
    const { settings, emit, hooks, history, broker, agentPorts } = this.#parts;
    await this.#parts.log.repair();
    await awaitUnlessAborted(settings.promptAndTools.ready?.(signal), signal);
    const run = startRun({
      ...settings,
      ports: { ...settings.ports, ...agentPorts },
      emit,
      hooks,
      history,
      broker,
      signal,
      pendingMessages: { deliver: async () => undefined },
      source: "top_level",
      cacheKey: settings.log.sessionId,
      limitReached: () => undefined,
      usageCounted: () => undefined,
      beforeStopping: async () => "stop",
    });
    return runRequestedCall(call, run);
  }

  /** Repairs the log after a failed write. Takes no time otherwise, so that events emitted together stay one write. */
  repair(): Promise<void> | undefined {
    return this.#parts.log.isBroken ? this.#parts.log.repair() : undefined;
  }

  /** Stores a waiting message. If that fails, withdraws it and throws. */
  async storeQueued(message: PendingMessage): Promise<void> {
    const repaired = this.repair();
    if (repaired) await repaired;
    try {
      await this.#parts.emit("troupe.message_queued", queuedMessage(message));
    } catch (error) {
      this.#discard(message);
      throw error;
    }
  }

  /** Runs the `sessionEnd` hooks if a message was accepted, and emits the final cost. */
  async end(): Promise<void> {
    const { hooks } = this.#parts;
    if (this.#begun && hooks?.has("sessionEnd")) {
      await hooks.fire("sessionEnd", endReason(this.#last)).catch(() => undefined);
    }
    await this.emitCost();
  }

  /** Emits the total cost. If that fails, it is emitted the next time. */
  async emitCost(): Promise<void> {
    await this.#costEmitter.emitIfHigher(this.#parts.emit).catch(() => undefined);
  }

  /** Puts a message into the log. Returns its rules, and the answer if a hook has given one. */
  async #accept(message: PendingMessage, signal: AbortSignal, delivery: Delivery): Promise<AcceptedMessage> {
    const { settings, emit, hooks, preamble } = this.#parts;
    await closeOpen(this.#parts.conversation, this.#parts.emit);
    const source = this.#begun ? undefined : this.#source;
    const wasIdle = delivery.waiting !== undefined;
    const rules = message.rules ?? (await this.#rulesFrom(message.storedRules));
    // A command's rules must also apply after a crash, so they are stored before the answer begins.
    if (wasIdle && (rules?.stored || takesTime({ promptAndTools: settings.promptAndTools, hooks, source }))) {
      await this.storeQueued(message);
      delivery.waiting?.accepted();
      delivery.waiting = undefined;
    }
    await settings.modelSelection?.ready();
    const { promptAndTools, model } = settings;
    const most = settings.credits?.most;
    const status = most === undefined ? undefined : creditsStatus(most, this.#parts.budget);
    if (rules?.trace) settings.tracing?.expect(message.messageId, rules.trace);
    const limits = rules?.tools && new LimitedTools(rules.tools, settings.cwd);
    const answer = await acceptPrompt(message, {
      emit,
      hooks,
      promptAndTools,
      preamble,
      model: modelName(model),
      source,
      signal,
      form: settings,
      status,
      delivery: wasIdle ? "idle" : "queued",
      deliverNotices: (say) => this.#parts.pending.deliverNotices(limits?.withoutAdvice(say) ?? say),
    });
    delivery.isLogged = true;
    this.#begun = true;
    delivery.waiting?.accepted();
    this.#parts.onAnswerBegins(message.messageId);
    return { rules: { ...rules, messageId: message.messageId, limits }, answer };
  }

  /** Prepares the rest of a turn that an earlier process left. */
  async #resume(signal: AbortSignal): Promise<AcceptedMessage> {
    const { settings, emit, preamble } = this.#parts;
    const { promptAndTools, model } = settings;
    await awaitUnlessAborted(promptAndTools.ready?.(signal), signal);
    preamble.before(emit, { model: modelName(model), promptAndTools });
    return { rules: await this.#rulesToResume() };
  }

  async #rulesFrom(stored: StoredRules | undefined): Promise<AnswerRules | undefined> {
    return stored && this.#parts.settings.commandRules?.(stored);
  }

  /** Returns the rules of the message that an earlier process was answering. */
  async #rulesToResume(): Promise<RunRules> {
    const { log, settings } = this.#parts;
    const lastMessage = log.events.findLast(
      ({ type, agentId, data }) => type === "user.message" && agentId === undefined && data.interactionId !== undefined,
    );
    const messageId = lastMessage?.type === "user.message" ? lastMessage.data.interactionId : undefined;
    const queued = log.events.find(
      (event) => event.type === "troupe.message_queued" && event.data.messageId === messageId,
    );
    const rules = queued?.type === "troupe.message_queued" ? await this.#rulesFrom(queued.data.rules) : undefined;
    const limits = rules?.tools && new LimitedTools(rules.tools, settings.cwd);
    return { ...rules, messageId, limits };
  }

  #failure(cause: unknown, refuse?: (error: Error) => void): Outcome {
    const error = cause instanceof Error ? cause : new Error(String(cause));
    refuse?.(error);
    const errorType = error instanceof TroupeError && error.kind === "storage" ? "persistence" : "internal";
    const stack = error.stack === undefined ? {} : { stack: error.stack };
    this.#parts.log.announce("session.error", { errorType, message: error.message, ...stack });
    return redacted({ kind: "failed", error }, this.#parts.settings.redactor);
  }

  /** Emits a hook's answer instead of the model's. */
  async #emitAnswer(content: string): Promise<LoopOutcome> {
    const { emit, settings } = this.#parts;
    await emit("assistant.message", { messageId: settings.stamp.id("message"), content, toolRequests: [] });
    return { kind: "done", answer: content };
  }

  /** Handles a message that never reached the log: rejects it, or, if it was already acknowledged, keeps it waiting. */
  #refuse(message: PendingMessage, waiting: SenderCallbacks | undefined, error: Error): void {
    this.#discard(message);
    if (waiting) waiting.refused(error);
    else this.#parts.pending.putBack(message);
  }

  /** Withdraws events that could not be written, so that no model sees a message that was reported as refused. */
  #discard({ messageId, notice }: PendingMessage): void {
    const isDiscarded = this.#parts.log.discard(
      (event) =>
        (event.type === "user.message" && event.data.interactionId === messageId) ||
        (event.type === "troupe.message_queued" && event.data.messageId === messageId) ||
        (event.type === "system.notification" && event.data.content === notice?.content),
    );
    if (isDiscarded) this.#parts.refold();
  }
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
